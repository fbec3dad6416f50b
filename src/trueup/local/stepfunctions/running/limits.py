"""TimeoutSeconds and HeartbeatSeconds of a Task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import HEARTBEAT, TIMEOUT, StateError

T = TypeVar("T")


@dataclass(slots=True)
class Limits:
    """The limits of one attempt; both clocks start when it is made."""

    clock: Clock
    timeout: int | None = None
    heartbeat: int | None = None
    beats: asyncio.Event = field(default_factory=asyncio.Event)
    expired: bool = False
    """Whether a limit was reached: what is cut off by it is not stopped (aws-facts section 2.3)."""

    async def keep(self, work: Coroutine[object, object, T]) -> T:
        """The work's result. Raises StateError (States.Timeout) when a limit is reached first.

        A missed heartbeat is written as States.Timeout, without a cause (recorded on AWS:
        test_heartbeat_no_timeout), and also matches States.HeartbeatTimeout.
        """
        if self.timeout is None and self.heartbeat is None:
            return await work
        task = asyncio.ensure_future(work)
        try:
            return await self._watch(task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _watch(self, task: asyncio.Task[T]) -> T:
        loop = asyncio.get_running_loop()
        end = None if self.timeout is None else self.clock.deadline(self.timeout)
        while True:
            silence = None if self.heartbeat is None else self.clock.deadline(self.heartbeat)
            limit = min(moment for moment in (end, silence) if moment is not None)
            beat = asyncio.ensure_future(self.beats.wait())
            try:
                await asyncio.wait(
                    {task, beat}, timeout=limit - loop.time(), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                beat.cancel()
            if task.done():
                return task.result()
            if not self.beats.is_set():
                self.expired = True
                raise StateError(TIMEOUT, alias=HEARTBEAT if limit == silence and limit != end else None)
            self.beats.clear()
