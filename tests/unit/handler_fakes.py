"""What the handlers are given in place of ECS, Step Functions, people and metrics, in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueup.errors import StoreUnavailable
from trueup.model.plan import CodeIdentity, TaskOrder
from trueup.platform import Ended, TaskState
from trueup.worker import Control, Step, Worker

READ, WRITE = (
    CodeIdentity(
        task_definition=f"arn:aws:ecs:eu-west-1:123456789012:task-definition/trueup-numbers-{mode}:{revision}",
        image_digest="sha256:" + str(revision) * 64,
    )
    for mode, revision in (("read", 3), ("write", 4))
)


@dataclass
class FakeTask:
    """A task: its worker, stepped. `stuck`: it does not hear SIGTERM, and dies of SIGKILL a step later.

    `pending`: ECS has not started its container yet.
    """

    arn: str
    order: TaskOrder
    worker: Worker
    control: Control
    loop: Iterator[Step]
    stuck: bool = False
    pending: bool = False
    killing: int = 0
    ended: Ended | None = None
    at: Step | None = None

    def step(self) -> None:
        """To its next point, or out."""
        if self.ended is None and (reached := next(self.loop, None)) is not None:
            self.at = reached
        elif self.ended is None:
            self.end(Ended(exit_code=self.worker.exit, stop_code="EssentialContainerExited"))

    def end(self, ended: Ended) -> None:
        """Gone, one way or another; what happened first stands."""
        self.ended = self.ended or ended


class FakeEcs:
    """Tasks by their ARN, and the code that there is."""

    def __init__(self) -> None:
        self.tasks: dict[str, FakeTask] = {}
        self.stopped: set[str] = set()
        self.unlisted: set[str] = set()  # so new that no list has them yet
        self.forgotten: set[str] = set()
        self.stops: list[tuple[str, str]] = []
        self.families = {"trueup-numbers-read": READ, "trueup-numbers-write": WRITE}

    def endings_of(self, run_id: str, job: str, launch: int) -> list[Ended]:
        started = [task for arn, task in self.tasks.items() if arn not in self.forgotten | self.unlisted]
        wanted = [task for task in started if (task.order.run_id, task.order.launch) == (run_id, launch)]
        return [task.ended for task in wanted if task.ended is not None]

    def latest(self, family: str) -> CodeIdentity:
        return self.families[family]

    def state(self, task: str) -> TaskState:
        if task in self.stopped:
            return TaskState.STOPPED
        if task in self.forgotten or task not in self.tasks:
            return TaskState.MISSING
        return TaskState.ALIVE if self.tasks[task].ended is None else TaskState.STOPPED

    def alive_of(self, run_id: str, job: str) -> dict[str, int]:
        return {
            arn: task.order.launch
            for arn, task in self.tasks.items()
            if task.ended is None
            and task.order.run_id == run_id
            and arn not in self.forgotten | self.unlisted
        }

    def stop(self, task: str, reason: str) -> None:
        self.stops.append((task, reason))
        found = self.tasks[task]
        found.control.signal = "SIGTERM"
        found.killing += 1
        if not found.stuck or found.killing > 2:  # SIGKILL comes after a while
            code = None if found.pending else 137
            found.end(Ended(exit_code=code, stop_code="UserInitiated", reason=reason))

    def ending(self, task: str) -> Ended | None:
        return None if task in self.forgotten or task not in self.tasks else self.tasks[task].ended


@dataclass
class Execution:
    """One execution of the backfill machine, between two arrows."""

    name: str
    data: dict[str, Any]
    status: str = "RUNNING"
    told: dict[str, Any] | None = None
    children: list[Child] = field(default_factory=list)
    working: bool = False
    token: str | None = None


@dataclass
class Child:
    """One child of the Distributed Map, between two arrows. `at` is the state that it enters next."""

    data: dict[str, Any]
    at: str = "take"
    task: FakeTask | None = None
    answer: str = ""


class FakeSteps:
    """Executions by name: started once, and described."""

    def __init__(self) -> None:
        self.executions: dict[str, Execution] = {}
        self.starts: list[str] = []

    def start(self, name: str, data: Mapping[str, Any]) -> None:
        self.starts.append(name)
        self.executions.setdefault(name, Execution(name, json.loads(json.dumps(data))))

    def status(self, name: str) -> str | None:
        found = self.executions.get(name)
        return found.status if found else None


class FakePeople:
    """What waits by token, what was woken, and what people were told."""

    def __init__(self) -> None:
        self.tokens = 0
        self.woken: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.unreachable = False

    def token(self) -> str:
        self.tokens += 1
        return f"token-{self.tokens}"

    def wake(self, token: str) -> None:
        if self.unreachable:
            raise StoreUnavailable("Step Functions did not do what was asked.")
        self.woken.add(token)

    def tell(self, title: str, text: str) -> None:
        self.told.append((title, text))


class KeptMetrics:
    """What functions measured, in the order in which they did."""

    def __init__(self) -> None:
        self.lines: list[tuple[dict[str, float], dict[str, str]]] = []

    def emit(self, values: Mapping[str, float], **dimensions: str) -> None:
        """Keep them."""
        self.lines.append((dict(values), dimensions))

    def of(self, name: str) -> list[tuple[float, dict[str, str]]]:
        """Each value of a metric, with its dimensions."""
        return [(values[name], by) for values, by in self.lines if name in values]
