"""The tasks of a run in one process, and what knows whether they live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trueup.accepting import Launch
from trueup.platform import TaskState
from trueup.worker import Control, Exit, Step, Worker


class LocalPlatform:
    """Tasks that live in this process.

    A frozen one is called stopped although it is not: that is the point of it.
    """

    def __init__(self) -> None:
        self._states: dict[str, TaskState] = {}

    def set(self, task: str, state: TaskState) -> None:
        """Say what a task is."""
        self._states[task] = state

    def state(self, task: str) -> TaskState:
        """What was said of it."""
        return self._states.get(task, TaskState.MISSING)

    def alive_of(self, run_id: str, job: str) -> Mapping[str, int]:
        """Every task registers in the step in which it is started."""
        return {}

    def stop(self, task: str, reason: str) -> None:
        """A task that has no process stops at once."""
        self._states[task] = TaskState.STOPPED


@dataclass(slots=True)
class LocalTask:
    """One task of a LocalRun: its worker, and the loop that is stepped."""

    arn: str
    launch: Launch
    worker: Worker
    control: Control
    loop: Iterator[Step]
    points: list[Step] = field(default_factory=list)
    hung: str | None = None

    def step(self) -> Step | None:
        """To its next point; None when it has left. The heart beats once at each point."""
        step = next(self.loop, None)
        if step is not None:
            self.points.append(step)
            if self.worker.heart is not None:
                self.worker.heart.beat()
        return None if self.hung else step

    def hang(self, reason: str) -> None:
        """Leave with 70, as a container does that made no progress for the declared time."""
        self.hung, self.loop, self.worker.exit = reason, iter(()), Exit.FAULT
