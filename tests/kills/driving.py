"""One run, driven by hand: launch a task, learn how it ended, accept, launch again, settle."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any

from trueup.accepting import Acceptance, Answer, Launch
from trueup.artifacts import Artifacts
from trueup.clock import SystemClock
from trueup.jobfile import load
from trueup.ledger import Ledger
from trueup.local.job_tasks import JobFolder
from trueup.local.packaging import project
from trueup.local.stores import BUCKET
from trueup.model.job import ErrorSettings, JobFile, Limits, Target
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import CodeIdentity, Partition, Slice
from trueup.model.request import Request
from trueup.model.states import Phase
from trueup.platform import Ended
from trueup.settling import Settled, Settlement
from trueup.starting import Code, Starter, first_phase, writes

from .warm import Warm

DEFINITION = "arn:aws:ecs:us-east-1:000000000000:task-definition/trueup-kills-write:1"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Stack:
    """The stores of a session, and the process that forks tasks on them."""

    ledger: Ledger
    artifacts: Artifacts
    dynamodb: Any
    s3: Any
    dsn: str
    environment: Mapping[str, str]
    warm: Warm
    days: Mapping[date, bytes]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run works, and how: days from `start` to before `end`, whose objects lie under `prefix`."""

    job: str
    start: str = "2013-11-28"
    end: str = "2013-11-30"
    batch: int = 100
    traits: tuple[str, ...] = ("witnessed",)
    checkpoint_seconds: float = 0.0
    prefix: str = "flights"
    dry_run: bool = False

    @property
    def dates(self) -> list[date]:
        """The days of the window."""
        low, high = date.fromisoformat(self.start), date.fromisoformat(self.end)
        return [date.fromordinal(day) for day in range(low.toordinal(), high.toordinal())]


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a task gets which signal: when it passes a point for the nth time."""

    point: str
    nth: int = 1
    signal: str = "SIGKILL"


@dataclass(slots=True)
class Task:
    """A launch, its task, and the cursors that the ledger held before it was started."""

    arn: str
    launch: Launch
    before: Mapping[str, str | None]


@dataclass(slots=True)
class Driven:
    """A run over `table`. Its launches are the test's own doing."""

    stack: Stack
    shape: Shape
    table: str
    run: Run = field(init=False)
    job: JobFile = field(init=False)
    parts: list[Partition] = field(init=False)
    launched: list[Task] = field(default_factory=list)
    phase: Phase = field(init=False)
    code: CodeIdentity = field(init=False)
    slice: Slice = field(init=False)
    ended: dict[str, PartitionItem] = field(default_factory=dict)

    def start(self) -> None:
        """Plan, create the run, take the lock, dispatch its one slice."""
        self.job = _shaped(self.shape, self.table)
        digest = JobFolder(self.job, project() / "containers" / self.shape.job).digest
        code = CodeIdentity(task_definition=DEFINITION, image_digest=digest)
        starter = Starter(self.stack.ledger, self.stack.artifacts, SystemClock(), random.Random())
        run, plan = starter.start(self.job, _request(self.shape, self.table), Code(code, code))
        self.phase = first_phase(plan)
        self.run = starter.lock(run) if writes(self.phase) else run
        self.code = plan.code(self.phase)
        (self.slice,) = starter.dispatch(self.run, self.phase, 1, 0).slices
        self.parts = self.stack.artifacts.slice(self.slice)

    def launch(self, stop: Stop | None = None) -> Task:
        """Start a task under the next launch number."""
        number = self.stack.ledger.runs.next_launch(self.run.run_id, self.run.generation)
        arn = f"arn:aws:ecs:us-east-1:000000000000:task/kills/{os.getpid()}-{next(_numbers)}"
        launch = Launch(self.run.run_id, self.run.generation, self.phase, self.slice, number)
        before = {part: item.cursor for part, item in self.items().items()}
        self.stack.warm.start(self._spec(arn, launch, stop))
        task = Task(arn, launch, before)
        self.launched.append(task)
        return task

    def accept(self, task: Task, ended: Ended) -> Answer:
        """Judge what a launch left behind."""
        return self._acceptance().accept(task.launch, ended)

    def finish(self) -> None:
        """Launch without harm until nothing is left, and settle. Fails where the slice does not make it."""
        task = self.launch()
        status = self.stack.warm.wait(task.arn)
        assert os.WIFEXITED(status)
        answer = self.accept(
            task, Ended(exit_code=os.WEXITSTATUS(status), stop_code="EssentialContainerExited")
        )
        assert Answer.DONE is answer, f"{answer}\n{self.stack.warm.log.read_text()}"
        assert Settled.ENDED is self.settle()

    def settle(self) -> Settled:
        """End the run, and keep what the ledger then says of its partitions as `ended`."""
        settlement = Settlement(self.stack.ledger, self.stack.artifacts, self._acceptance())
        settled = settlement.settle(self.run.run_id, self.phase)
        self.ended = self.items()
        return settled

    def items(self) -> dict[str, PartitionItem]:
        """Every partition as the ledger has it."""
        ids = [part.id for part in self.parts]
        return self.stack.ledger.partitions.get_many(self.run.run_id, self.phase, ids)

    def _acceptance(self) -> Acceptance:
        return Acceptance(self.stack.ledger, self.stack.artifacts, self.stack.warm, SystemClock())

    def _spec(self, arn: str, launch: Launch, stop: Stop | None) -> dict[str, Any]:
        return {
            "task": arn,
            "order": launch.order(self.run).document(),
            "code": self.code.document(),
            "job": self.shape.job,
            "traits": self.shape.traits,
            "secrets": {"dsn": self.stack.dsn},
            "checkpointSeconds": self.shape.checkpoint_seconds,
            "stop": stop and {"point": stop.point, "nth": stop.nth, "signal": stop.signal},
        }


@cache
def _job_file(job: str) -> JobFile:
    return load(project() / "containers" / job / "job.yaml")


def _shaped(shape: Shape, table: str) -> JobFile:
    """The job's own file, with one slice, a target and an input of this test's own, and room for rejects."""
    job = _job_file(shape.job)
    return job.model_copy(
        update={
            "order": "oldest",
            "limits": Limits(max_concurrency=1),
            "target": Target(name=table, guard=job.target.guard),
            "partitions": job.partitions.model_copy(update={"input": f"{shape.prefix}/{{date}}.csv"}),
            "batch": job.batch.model_copy(update={"size": shape.batch}),
            "errors": ErrorSettings(rejects=10_000),
        }
    )


def _request(shape: Shape, table: str) -> Request:
    return Request(
        job=shape.job,
        request_id=f"{table}-{next(_numbers)}",
        requester="kills",
        start=shape.start,
        end=shape.end,
        params={"bucket": BUCKET, "table": table},
        dry_run=shape.dry_run,
    )
