"""A task's life, from PROVISIONING to STOPPED: one coroutine, with clock, images and launcher handed in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from trueup.local.ecs.clock import Clock
from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.faults import UNHARMED, Fate
from trueup.local.ecs.images import Image, Images, digest_of
from trueup.local.ecs.launching import Launcher, Order, Process
from trueup.local.ecs.tasks import EXITED, HOST_LOST, INTERRUPTED, Status, Stop, StopCode, Task
from trueup.local.ecs.waiting import cancel, first, soon

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a life needs."""

    clock: Clock
    images: Images
    launcher: Launcher
    order: Callable[[Task, Image], Awaitable[Order]]
    """What to start for a task. Raises CannotStart."""
    changed: Callable[[Task], None]
    """Hears of every change of state."""
    cold_start: float = 0.0
    deprovision: float = 0.0
    """Seconds from a container's end to STOPPED; 33 in a real document (aws-facts section 2.4)."""


class _Stopped(Exception):
    """The task was stopped before its container was started."""


class Life:
    """One task's. `run()` it once; everything else may be called at any time on the same loop."""

    def __init__(self, task: Task, around: Surroundings, fate: Fate = UNHARMED) -> None:
        self.task = task
        self._around = around
        self._fate = fate
        self._stop = asyncio.Event()
        self._process: Process | None = None
        self._exit_code: int | None = None

    async def run(self) -> None:
        """Live. Every end is STOPPED; nothing is raised."""
        try:
            await self._provision()
            process = await self._start()
            exit_code = await self._work(process)
            self.task.container.reason = process.reason
            self.task.container.exit_code = exit_code if self._exit_code is None else self._exit_code
            self._note_stop(Stop(StopCode.CONTAINER_EXITED, EXITED))
        except CannotStart as error:
            self.task.container.reason = error.reason
            self._note_stop(Stop(StopCode.FAILED_TO_START, error.reason))
        except _Stopped:
            pass  # who stopped it has left the reason
        except Exception as error:
            # Whatever broke here, whoever waits for the task must hear of its end.
            log.exception("%s", self.task.arn)
            self._note_stop(Stop(StopCode.FAILED_TO_START, f"InternalError: {error!r}"))
        await self._give_back()

    def stop(self, stop: Stop) -> None:
        """Ask for its end; the first who asks gives the reason."""
        self._note_stop(stop)
        self._stop.set()

    def interrupt(self) -> bool:
        """Spot takes its capacity back. False where it has stopped, or was told to.

        Who listens for events hears of it while the task still runs.
        """
        if self.task.stopped or self._stop.is_set():
            return False
        self.stop(Stop(StopCode.SPOT, INTERRUPTED))
        if self.task.status is Status.RUNNING:
            self.task.version += 1
            self._around.changed(self.task)
        return True

    def kill(self) -> bool:
        """SIGKILL from nowhere. False where nothing runs; so in `freeze` and `thaw`."""
        return self._tell(lambda process: process.kill())

    def crash(self) -> bool:
        """SIGKILL because its host fails, which says nothing of what ran there. False where nothing runs."""
        if self._process is not None:
            self._note_stop(Stop(StopCode.INFRASTRUCTURE, HOST_LOST))
        return self.kill()

    def exit(self, code: int) -> bool:
        """Let it end with an exit code, without a word. False where nothing runs."""
        if self._process is not None and self._exit_code is None:
            self._exit_code = code
        return self.kill()

    def freeze(self) -> bool:
        """SIGSTOP: it lives, does nothing, and would outlast SIGTERM."""
        return self._tell(lambda process: process.freeze())

    def thaw(self) -> bool:
        """SIGCONT."""
        return self._tell(lambda process: process.thaw())

    def _tell(self, word: Callable[[Process], None]) -> bool:
        if self._process is None:
            return False
        word(self._process)
        return True

    def _note_stop(self, stop: Stop) -> None:
        if not self.task.stopped:
            self.task.stop_because(stop, self._around.clock.now())

    async def _provision(self) -> None:
        self._around.changed(self.task)
        await self._unless_stopped(self._around.clock.sleep(self._around.cold_start + self._fate.cold_start))
        self._move(Status.PENDING)

    async def _start(self) -> Process:
        task, container = self.task, self.task.container
        self._move(Status.ACTIVATING)
        self._mark("pullStartedAt")
        if self._fate.cannot_pull:
            raise CannotStart(_cannot_pull(container.image))
        image = await self._unless_stopped(self._around.images.pull(container.image))
        container.digest = digest_of(container.image, image)
        self._mark("pullStoppedAt")
        order = await self._unless_stopped(self._around.order(task, image))
        order = replace(order, environment={**order.environment, **self._fate.environment})
        process = self._process = await self._around.launcher.start(order)
        self._mark("startedAt", "connectivityAt")
        task.pid = process.pid or None
        container.status = "RUNNING"
        self._move(Status.RUNNING)
        return process

    async def _work(self, process: Process) -> int:
        befalls = asyncio.create_task(self._befall())
        ended = asyncio.create_task(process.wait())
        try:
            await first(ended, asyncio.create_task(self._stop.wait()))
            if not ended.done():
                self._move(Status.DEACTIVATING)
                self._move(Status.STOPPING)
                await self._end(process, ended)
            return ended.result()
        except BaseException:
            process.kill()  # nobody would wait for it any more
            raise
        finally:
            self._process = self.task.pid = None
            await cancel(befalls, ended)

    async def _end(self, process: Process, ended: asyncio.Task[int]) -> None:
        """SIGTERM, and SIGKILL for who is still there after stopTimeout (aws-facts section 3, row Stop)."""
        process.terminate()
        await first(ended, soon(self._around.clock.sleep(self.task.container.stop_timeout)))
        if not ended.done():
            process.kill()
            await asyncio.wait([ended])

    async def _befall(self) -> None:
        fate = self._fate
        thaw = None if fate.thaw is None else (fate.freeze or 0.0) + fate.thaw
        at: list[tuple[str, float | None, Callable[[], bool]]] = [
            ("kill", fate.kill, self.kill),
            ("crash", fate.crash, self.crash),
            ("exit", fate.exit, lambda: self.exit(fate.exit_code)),
            ("freeze", fate.freeze, self.freeze),
            ("thaw", thaw, self.thaw),
            ("interrupt", fate.interrupt, self.interrupt),
        ]
        await asyncio.gather(*(self._at(name, when, do) for name, when, do in at if when is not None))

    async def _at(self, name: str, seconds: float, do: Callable[[], bool]) -> None:
        if seconds > 0:
            await self._around.clock.sleep(seconds)
        self._fate.strike(name, do)

    async def _give_back(self) -> None:
        if "startedAt" in self.task.times:
            self._mark("executionStoppedAt")
        self.task.container.status = "STOPPED"
        self._move(Status.DEPROVISIONING)
        if self._around.deprovision:
            await self._around.clock.sleep(self._around.deprovision)
        self._mark("stoppedAt")
        self._move(Status.STOPPED)

    def _mark(self, *names: str) -> None:
        self.task.times |= dict.fromkeys(names, self._around.clock.now())

    def _move(self, status: Status) -> None:
        self.task.move(status)
        self._around.changed(self.task)

    async def _unless_stopped(self, awaited: Awaitable[T]) -> T:
        """What is awaited, unless somebody stops the task first. Raises _Stopped then."""
        work = soon(awaited)
        await first(work, asyncio.create_task(self._stop.wait()))
        if self._stop.is_set():
            await cancel(work)
            raise _Stopped
        return await work


def _cannot_pull(image: str) -> str:
    """By order. The wording: developer guide, "CannotPullContainer task errors"."""
    return (
        "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
        f"failed to resolve ref {image}: {image}: not found"
    )
