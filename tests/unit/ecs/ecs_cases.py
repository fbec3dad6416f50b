"""Fargate in a test: time that stands still until it is moved, and processes that do as they are told."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.local.ecs import Image, KnownImages
from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.fargate import Fargate, Settings
from trueup.local.ecs.launching import KILLED, Order
from trueup.local.ecs.tasks import Task

START = 1_800_000_000.0
IMAGE = "registry.example/app@sha256:" + "a" * 64


class ManualClock:
    """Time moves by `pass_` only, and whoever sleeps wakes in order."""

    def __init__(self) -> None:
        self._now = START
        self._asleep: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.get_running_loop().create_future()
        self._asleep.append((self._now + seconds, woken))
        await woken

    async def pass_(self, seconds: float) -> None:
        until = self._now + seconds
        await settle()
        while due := [sleeper for sleeper in self._asleep if sleeper[0] <= until]:
            first = min(due, key=lambda sleeper: sleeper[0])
            self._asleep.remove(first)
            self._now = first[0]
            if not first[1].done():
                first[1].set_result(None)
            await settle()
        self._now = until


async def settle() -> None:
    """Let everybody who can go on go on."""
    for _ in range(60):
        await asyncio.sleep(0)


@dataclass
class FakeProcess:
    """Does what `obeys` says when it is told to end."""

    order: Order
    obeys: bool = True
    pid: int = 1
    reason: str | None = None
    told: list[str] = field(default_factory=list)
    ended: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)

    def exit(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)

    def terminate(self) -> None:
        self.told.append("SIGTERM")
        if self.obeys:
            self.exit(75)

    def kill(self) -> None:
        self.told.append("SIGKILL")
        self.exit(KILLED)

    def freeze(self) -> None:
        self.told.append("SIGSTOP")

    def thaw(self) -> None:
        self.told.append("SIGCONT")


@dataclass
class FakeLauncher:
    """Starts processes that are none."""

    obey: bool = True
    fails: str | None = None
    processes: list[FakeProcess] = field(default_factory=list)

    async def start(self, order: Order) -> FakeProcess:
        if self.fails is not None:
            raise CannotStart(self.fails)
        self.processes.append(FakeProcess(order, obeys=self.obey))
        return self.processes[-1]

    async def close(self) -> None:
        """Nothing runs."""


class Case:
    """A Fargate with one definition, `job:1`, and what was told of its tasks."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        self.launcher = FakeLauncher()
        self.events: list[dict[str, Any]] = []
        images = KnownImages({"sha256:" + "a" * 64: Image(("run",), Path("/job"), ("slice",))})
        self.fargate = Fargate(
            Settings(
                images=images,
                launcher=self.launcher,
                logs=Path("/logs"),
                clock=self.clock,
                sink=self.events.append,
                **settings,
            )
        )
        self.fargate.address = "http://metadata"
        self.register()

    def register(self, family: str = "job", **container: Any) -> None:
        main = {"name": "main", "image": IMAGE, **container}
        self.fargate.definitions.register(
            {"family": family, "cpu": "256", "memory": "512", "containerDefinitions": [main]}, START
        )

    async def run(self, **call: Any) -> Task:
        """Start one task, and let it come as far as it gets while no time passes."""
        tasks, _ = self.fargate.run({"taskDefinition": "job", **call})
        await settle()
        return tasks[0]

    @property
    def process(self) -> FakeProcess:
        return self.launcher.processes[-1]

    def statuses(self) -> list[str]:
        return [event["detail"]["lastStatus"] for event in self.events]


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))  # type: ignore[arg-type]

    return run
