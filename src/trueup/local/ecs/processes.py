"""The launcher that starts real processes, by way of the nursery (see `_nursery.py`)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.launching import KILLED, Order
from trueup.local.process import Guard, Program

NURSERY = Path(__file__).with_name("_nursery.py")
WARM = (
    "trueup.worker",
    "trueup.worker.main",
    "trueup.ledger.dynamo",
    "trueup.artifacts.s3",
    "urllib.request",
    str(NURSERY.with_name("_warm.py")),
)
"""What to import beforehand, so that `python -m trueup.worker` starts by a fork."""


class NurseryProcess:
    """A task's process; its parent, the nursery, sends it signals, so that none goes astray."""

    def __init__(self, nursery: Nursery, name: str, pid: int) -> None:
        self._nursery = nursery
        self._name = name
        self.pid = pid
        self.reason: str | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await asyncio.shield(self.ended)

    def terminate(self) -> None:
        """SIGTERM to the first process."""
        self._signal(signal.SIGTERM, everyone=False)

    def kill(self) -> None:
        """SIGKILL to its group."""
        self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP to its group."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT to its group."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals, *, everyone: bool = True) -> None:
        self._nursery.send({"do": "signal", "name": self._name, "number": int(number), "all": everyone})


class Nursery:
    """Starts and ends the nursery, gives it orders, and hears its news.

    It runs under `guard`, which sees to it that nothing outlives us or the nursery, whoever is killed first.
    `warm` are the modules that it imports first; `log` takes what it says when it breaks.
    """

    def __init__(self, guard: Guard, log: Path, warm: Sequence[str] = ()) -> None:
        self._guard = guard
        self._log = log
        self._warm = tuple(warm)
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._starting: dict[str, asyncio.Future[NurseryProcess]] = {}
        self._alive: dict[str, NurseryProcess] = {}
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Start it, where it does not run: the first task then need not wait for its imports."""
        async with self._opening:
            if self._writer is None:
                await self._open()

    async def _open(self) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-P", str(NURSERY), json.dumps(self._warm)]
        program = Program(argv=argv, env=os.environ, folder=Path.cwd(), log=self._log)
        self._guard.start(program, theirs)
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._hearing = asyncio.create_task(self._hear(reader))

    async def start(self, order: Order) -> NurseryProcess:
        """Start a process. Raises CannotStart."""
        if not order.argv:
            raise CannotStart("CannotCreateContainerError: Error response from daemon: no command specified")
        await self.open()
        started = self._starting[order.name] = asyncio.get_running_loop().create_future()
        self.send(
            {
                "do": "start",
                "name": order.name,
                "argv": list(order.argv),
                "folder": str(order.folder),
                "environment": dict(order.environment),
                "log": str(order.log),
            }
        )
        process: NurseryProcess = await started
        return process

    def send(self, order: dict[str, Any]) -> None:
        """Give an order; where the nursery is gone, so is everyone whom it could concern."""
        if self._writer is not None:
            self._writer.write(json.dumps(order).encode() + b"\n")

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                self._take_in(json.loads(line))
        self._lost()

    def _take_in(self, news: dict[str, Any]) -> None:
        name = news["name"]
        if "status" in news:
            status = news["status"]
            _settle(self._alive.pop(name).ended, status if status >= 0 else 128 - status)
            return
        started = self._starting.pop(name)
        if "error" in news:
            _fail(started, f"CannotStartContainerError: {news['error']}")
            return
        process = self._alive[name] = NurseryProcess(self, name, news["pid"])
        _settle(started, process)

    def _lost(self) -> None:
        """The nursery is gone, and its children with it: the next task starts another one."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None
        for started in self._starting.values():
            _fail(started, f"CannotStartContainerError: the local stack's launcher ended, see {self._log}")
        for process in self._alive.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what the task itself had started
            _settle(process.ended, KILLED)
        self._starting, self._alive = {}, {}

    async def close(self) -> None:
        """Have everything killed; all of it is gone when the guard is."""
        if self._writer is not None:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()
        if self._hearing is not None:
            await self._hearing


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], reason: str) -> None:
    if not future.done():
        future.set_exception(CannotStart(reason))
