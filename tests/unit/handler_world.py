"""The handlers over stores in memory, and a driver that plays the arrows of the machines.

One arrow is one call of `step`: a handler's call, a write of the gate, a launch, a task's next point.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from trueup.accepting import Acceptance
from trueup.artifacts import Artifacts
from trueup.artifacts.store import MemoryStore
from trueup.errors import RunClosed
from trueup.gating import Gating
from trueup.handling.accept import Accepting
from trueup.handling.ask import Asking
from trueup.handling.close import Closing
from trueup.handling.plan import Planning
from trueup.handling.settle import Settling
from trueup.handling.start import Starting
from trueup.handling.sweep import Sweeping
from trueup.handling.tasks import Tasks
from trueup.handling.verify import Verifying
from trueup.jobs import Reconcile
from trueup.ledger import Ledger, keys
from trueup.ledger.table import Write
from trueup.model.gate import Gate
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Run
from trueup.model.naming import NamingOrder
from trueup.model.plan import CodeIdentity, Slice, TaskOrder
from trueup.model.reconcile_job import Reconciliation
from trueup.naming import Naming
from trueup.platform import Ended
from trueup.reporting import Reports
from trueup.reporting.comparison import Comparisons
from trueup.settling import Settlement
from trueup.starting import Starter
from trueup.testing import ManualClock
from trueup.testing.rows import rows_opener
from trueup.worker import Control, Exit, Identity, Tools, Worker
from trueup.worker.naming import name_partitions

from .handler_fakes import (
    READ,
    WRITE,
    Child,
    Execution,
    FakeEcs,
    FakePeople,
    FakeSteps,
    FakeTask,
    KeptMetrics,
)
from .worker_cases import FailingTable, Numbers


class World:
    """Stores, fakes and handlers. `job` works what `job_file` declares; `rows` are those of a comparison.

    `verified_by` is the reconciliation that the job file names.
    """

    def __init__(
        self,
        job: type[Numbers] | type[Reconcile],
        job_file: AnyJob,
        *,
        table: FailingTable | None = None,
        rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        verified_by: Reconciliation | None = None,
    ) -> None:
        self.job = job
        self.rows = rows
        self.table = table or FailingTable()
        self.clock = ManualClock()
        self.ledger = Ledger(self.table, self.clock)
        self.artifacts = Artifacts(MemoryStore())
        self.metrics = KeptMetrics()
        self.ecs, self.steps, self.people = FakeEcs(), FakeSteps(), FakePeople()
        self.jobs = {job_file.name: job_file}
        if verified_by is not None:
            self._declare(verified_by)
        self._count()
        self._wire()

    def _declare(self, job: Reconciliation) -> None:
        self.jobs[job.name] = job
        self.ecs.families |= {f"trueup-{job.name}-read": READ, f"trueup-{job.name}-write": WRITE}

    def _count(self) -> None:
        """What was done to whom, by launch: for tests that count for themselves."""
        self.launches = self.dispatches = 0
        self.slices: dict[int, Slice] = {}
        self.heard: dict[int, dict[str, Any]] = {}
        self.judged: set[int] = set()
        self.pauses: list[int] = []
        self.there: set[str] = set()

    def _wire(self) -> None:
        """The functions, as the entry points of lambdas/ wire them, over these stores and fakes."""
        ledger, artifacts, ecs = self.ledger, self.artifacts, self.ecs
        starter = Starter(ledger, artifacts, self.clock, random.Random(0), self.metrics)
        self.acceptance = Acceptance(ledger, artifacts, ecs, self.clock)
        self.reports = Reports(ledger, artifacts)
        made = Comparisons(ledger, artifacts)
        settlement = Settlement(
            ledger,
            artifacts,
            self.acceptance,
            self.reports.leave,
            made.verdict,
            made.is_through,
            self.metrics,
        )
        machines = {"backfill": self.steps, "reconcile": self.steps}
        self.start = Starting(ledger, starter, machines, self.jobs)
        tasks = Tasks({"AwsvpcConfiguration": {}})
        naming = Naming(ledger, artifacts)
        self.plan = Planning(ledger, starter, naming, ecs, self.jobs, "trueup", lambda prefix: [], tasks)
        self.accept = Accepting(ledger, artifacts, self.acceptance, ecs, self.metrics)
        self.gating = Gating(ledger, artifacts, self.clock, self.people)
        self.ask_people = Asking(ledger, self.people, self.people)
        verifying = Verifying(ledger, artifacts, starter, machines, lambda: self.jobs)
        self.settle = Settling(
            ledger, artifacts, settlement, starter, tasks, self.gating, verifying, self.there.__contains__
        )
        self.close = Closing(ledger, settlement, machines)
        self.sweep = Sweeping(ledger, settlement, machines, self.close, self.gating, self.clock, self.metrics)

    # What a test does.

    def ask(self, **changes: Any) -> Run:
        """Start a run by a request."""
        request = {"job": "numbers", "requestId": "r-1", "requester": "ann", "keys": ["a", "b", "c"]}
        return self.run(self.start.handle({**request, **changes})["runId"])

    def run(self, run_id: str) -> Run:
        """The run as it stands."""
        return self.ledger.runs.get(run_id)

    def execution(self, run: Run) -> Execution:
        """The execution that serves a run."""
        return self.steps.executions[run.execution or ""]

    def event(self, execution: Execution) -> dict[str, Any]:
        """What EventBridge tells of an execution that ended."""
        return {"detail": {"name": execution.name, "status": execution.status}}

    def swept(self) -> dict[str, Any]:
        """One sweep."""
        return self.sweep.handle({})

    def abort(self, execution: Execution) -> None:
        """StopExecution: the machine stands still, and nobody tells the tasks."""
        if execution.status == "RUNNING":
            execution.status = "ABORTED"

    def redrive(self, execution: Execution) -> None:
        """RedriveExecution: on from where it stood."""
        if execution.status in ("FAILED", "ABORTED", "TIMED_OUT"):
            execution.status = "RUNNING"

    def play(self, execution: Execution, most: int = 2_000) -> None:
        """One execution, with its children and tasks in turn, to its end."""
        for _ in range(most):
            if execution.status != "RUNNING":
                return
            self._turn(execution)
        raise AssertionError(f"{execution.name} did not end: {execution.told}")

    def _turn(self, execution: Execution) -> None:
        self.step(execution)
        for child in list(execution.children):
            self.step_child(child)
            if child.task is not None:
                child.task.step()

    # The arrows of the backfill machine.

    def fan_out(self, execution: Execution) -> list[Child]:
        """Step to where the fan-out has begun, and give its children, which have yet to begin."""
        for _ in range(3):
            self.step(execution)
        return execution.children

    def launched(self, execution: Execution) -> Child:
        """Step to where the first child of the fan-out has launched its task, and give it."""
        child = self.fan_out(execution)[0]
        for _ in range(2):
            self.step_child(child)
        return child

    def step(self, execution: Execution) -> None:
        """The execution's next arrow."""
        if execution.status != "RUNNING":
            return
        told = execution.told
        if told is None:
            execution.told = self.plan.handle(execution.data)
        elif told["do"] == "name":
            self._name(execution, told)
        elif told["do"] == "approve":
            self._approve(execution, told)
        elif told["do"] in ("end", "fail"):
            execution.status = "SUCCEEDED" if told["do"] == "end" else "FAILED"
        elif told["do"] == "work" and not execution.working:
            execution.children, execution.working = self._children(told["input"]), True
            self.dispatches += 1
        elif told["do"] != "work" or all(child.at == "over" for child in execution.children):
            if "seconds" in told:  # what a reconciliation waits for
                self.clock.sleep(told["seconds"])
            execution.told = self.settle.handle({**execution.data, "at": told["at"]})
            execution.working = False

    def _approve(self, execution: Execution, told: dict[str, Any]) -> None:
        """Waiting at a gate: asked once, and on again when the token comes back."""
        if execution.token is None:
            token, asked = self.people.token(), {name: told[name] for name in ("gate", "sha256")}
            self.ask_people.handle({**execution.data, **asked, "token": token})
            execution.token = token
        elif execution.token in self.people.woken:
            self._look_again(execution, told)

    def _look_again(self, execution: Execution, told: dict[str, Any]) -> None:
        execution.token = None
        execution.told = self.settle.handle({**execution.data, "at": told["at"]})

    def time_out(self, execution: Execution) -> None:
        """The state that waits is left by its timeout, after the seconds that it was told."""
        assert execution.told is not None
        self.clock.pass_(execution.told["seconds"])
        self._look_again(execution, execution.told)

    def wait(self, execution: Execution, most: int = 500) -> Gate:
        """One execution until it waits at a gate, and the gate."""
        for _ in range(most):
            if execution.token is not None and execution.token not in self.people.woken:
                return self.ledger.gates.get(execution.data["runId"], (execution.told or {})["gate"])
            self._turn(execution)
        raise AssertionError(f"{execution.name} did not wait: {execution.told}")

    def go_on(self, execution: Execution, most: int = 2_000) -> None:
        """One execution to its end, or to a gate where nobody has woken it."""
        for _ in range(most):
            waits = execution.token is not None and execution.token not in self.people.woken
            if waits or execution.status != "RUNNING":
                return
            self._turn(execution)
        raise AssertionError(f"{execution.name} neither waits nor ended: {execution.told}")

    def _name(self, execution: Execution, told: dict[str, Any]) -> None:
        """The task that names the partitions, and planning again with what it left."""
        ended = self.naming_task(NamingOrder.model_validate(told["order"]))
        after = {**execution.data, "told": {"next": told}, "ended": left_by(ended)}
        execution.told = self.plan.handle(after)

    def naming_task(self, order: NamingOrder) -> Ended:
        """One such task, from its start to its end, under the code that reads."""
        brief = self.artifacts.brief(order.brief_key, order.brief_sha256)
        arn = self._arn()
        exited = name_partitions(self.job, order, brief, self._tools(arn, Control(), READ))
        self.ecs.stopped.add(arn)
        return Ended(exit_code=exited, stop_code="EssentialContainerExited")

    def _children(self, data: dict[str, Any]) -> list[Child]:
        slices = json.loads(self.artifacts.store.get(data["dispatch"]["key"]))
        return [Child({"task": data["task"], "order": {**data["order"], "slice": one}}) for one in slices]

    # The arrows of one child.

    def step_child(self, child: Child) -> None:
        """The child's next arrow; while its task runs there is none."""
        if child.at == "take":
            self._take(child)
        elif child.at == "run":
            child.task, child.at = self.launch(child), "running"
        elif child.at == "running" and child.task is not None and child.task.ended is not None:
            self.hear(child, left_by(child.task.ended))
        elif child.at == "accept":
            self._accept(child)

    def _take(self, child: Child) -> None:
        order = child.data["order"]
        try:
            number = self.ledger.runs.next_launch(order["runId"], order["generation"], order["dispatch"])
        except RunClosed:
            child.at = "over"
            return
        asked_at = self.clock.now().isoformat().replace("+00:00", "Z")
        child.data["number"], child.at = {"launch": number, "launchedAt": asked_at}, "run"

    def _accept(self, child: Child) -> None:
        accepted = self.accept.handle(child.data)
        child.answer = accepted["answer"]
        if child.answer != "stopping":
            self.judged.add(child.data["number"]["launch"])
        if child.answer == "again" and self.rows is not None:  # a second look has to wait for its lag
            self.pauses.append(accepted["seconds"])
            self.clock.sleep(accepted["seconds"])
        child.at = {"again": "take", "stopping": "accept"}.get(child.answer, "over")

    def hear(self, child: Child, left: dict[str, Any]) -> None:
        """The state of the launch is left, with an answer or an error."""
        child.data["ended"], child.at, child.task = left, "accept", None
        self.heard[child.data["number"]["launch"]] = left

    def launch(self, child: Child, *, code: CodeIdentity | None = None) -> FakeTask:
        """RunTask: a task that has yet to register."""
        order = TaskOrder.model_validate({**child.data["order"], **child.data["number"]})
        self.slices[order.launch] = order.slice
        arn, control = self._arn(), Control()
        code = code or (READ if "read" in child.data["task"]["definition"] else WRITE)
        verifies = self.run(order.run_id).verifies is not None
        worker = Worker(Reconcile if verifies else self.job, order, self._tools(arn, control, code))
        task = FakeTask(arn, order, worker, control, worker.steps())
        self.ecs.tasks[arn] = task
        return task

    def _arn(self) -> str:
        self.launches += 1
        return f"arn:aws:ecs:eu-west-1:123456789012:task/trueup/{self.launches:032x}"

    def _tools(self, arn: str, control: Control, code: CodeIdentity) -> Tools:
        return Tools(
            ledger=self.ledger,
            artifacts=self.artifacts,
            identity=Identity(arn, code),
            clock=self.clock,
            control=control,
            rng=random.Random(0),
            sources=None if self.rows is None else rows_opener(self.rows),
            checkpoint_seconds=0,
        )


def left_by(ended: Ended) -> dict[str, Any]:
    """What `.sync` leaves of a task that ended."""
    if ended.exit_code == Exit.DONE:
        return {"taskArn": "arn"}
    cause = {
        "Containers": [{"ExitCode": ended.exit_code}] if ended.exit_code is not None else [{}],
        "StopCode": ended.stop_code,
        "StoppedReason": ended.reason or "Essential container in task exited",
    }
    return {"Error": "States.TaskFailed", "Cause": json.dumps(cause)}


def resumed(here: World, run: Run) -> Execution:
    """The next generation, with its execution."""
    name = f"{run.run_id}-{run.generation + 1}"
    data = {"runId": run.run_id, "generation": run.generation + 1}
    sets = {"status": "RUNNING", "generation": run.generation + 1, "execution": name, "executionInput": data}
    here.table.write(Write(keys.run(run.run_id), sets=sets))
    here.steps.start(name, data)
    return here.steps.executions[name]


def dying_at(world: World, number: int) -> None:
    """Let whatever writes next die after its write of that number."""
    world.table.writes, world.table.dies_at = 0, number
