"""What is on its way to a service, without anybody waiting for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


class Outbox(Generic[T]):
    """Takes things on the engine's loop, and delivers them in their order, together what came meanwhile.

    `deliver` raises nothing that it expects; `what` names the things, and `where` the service, to people.
    """

    def __init__(
        self, deliver: Callable[[list[T]], Awaitable[None]], what: str, where: str, most: int = 10_000
    ) -> None:
        self._deliver = deliver
        self._what = what
        self._where = where
        self._most = most
        self._waiting: asyncio.Queue[T] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def put(self, thing: T) -> None:
        """Take a thing."""
        self._waiting.put_nowait(thing)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def close(self, seconds: float = 1.0) -> None:
        """Send what is waiting, for that long at most, and stop."""
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._waiting.join(), seconds)
        except TimeoutError:
            log.warning("%d %s were not sent to %s", self._waiting.qsize(), self._what, self._where)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self) -> None:
        while True:
            things = [await self._waiting.get()]
            more = min(self._waiting.qsize(), self._most - 1)
            things += [self._waiting.get_nowait() for _ in range(more)]
            try:
                await self._deliver(things)
            finally:
                for _ in things:
                    self._waiting.task_done()
