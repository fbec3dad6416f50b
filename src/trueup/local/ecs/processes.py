"""The launcher that starts real processes, by way of the nursery (see `_nursery.py`)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.launching import KILLED, Order

NURSERY = Path(__file__).with_name("_nursery.py")
END_SECONDS = 10.0
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

    `warm` are the modules that it imports first; `log` takes what it says when it breaks; `folder` is removed
    at its end, however this process goes.
    """

    def __init__(self, log: Path, warm: Sequence[str] = (), folder: Path | None = None) -> None:
        self._log = log
        self._folder = folder
        self._warm = tuple(warm)
        self._process: subprocess.Popen[bytes] | None = None
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
        with theirs, self._log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal is for the stack, which then ends its tasks.
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(NURSERY), json.dumps(self._warm), *self._to_remove()],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env=dict(os.environ),
                start_new_session=True,
            )
        reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._hearing = asyncio.create_task(self._hear(reader))

    def _to_remove(self) -> list[str]:
        return [] if self._folder is None else [str(self._folder)]

    async def start(self, order: Order) -> NurseryProcess:
        """Start a process. Raises CannotStart."""
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
        """Have everything killed, and return when it is gone."""
        if self._writer is not None:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()
        if self._hearing is not None:
            await self._hearing
        if self._process is not None:
            await asyncio.to_thread(self._bury, self._process)

    @staticmethod
    def _bury(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], reason: str) -> None:
    if not future.done():
        future.set_exception(CannotStart(reason))
