"""Comparing tasks killed with SIGKILL at every point of their loop: no line is lost, and none is told twice.

Real processes compare two tables of PostgreSQL, and keep their checkpoints in MiniStack.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
from typing import Any

import psycopg
import pytest
from psycopg import sql

from trueup.accepting import Acceptance, Answer, Launch
from trueup.artifacts.findings import lines_in, listed
from trueup.clock import SystemClock
from trueup.gating import before_repair
from trueup.model.ledger import Run
from trueup.model.plan import CodeIdentity
from trueup.model.reconcile import PostgresSource, RepairSettings
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairReport
from trueup.model.request import Request
from trueup.model.states import GateStatus, Phase, RunStatus
from trueup.platform import Ended
from trueup.reporting.comparison import Comparisons
from trueup.reporting.repairs import Repairs
from trueup.settling import Settled, Settlement
from trueup.starting import Code, Starter

from .driving import Stack

CODE = CodeIdentity(
    task_definition="arn:aws:ecs:us-east-1:000000000000:task-definition/trueup-kills-read:1",
    image_digest=f"sha256:{'0' * 64}",
)
WRONG = dict.fromkeys(range(0, 200, 20), "MISMATCHED") | dict.fromkeys(range(3, 200, 25), "MISSING")
POINTS = ("begun", "registered", "taken", "written", "findings", "advanced", "reported", "stored")
PLACES = [
    (phase, point, nth)
    for phase in (Phase.COMPARE, Phase.CONFIRM)
    for point in POINTS
    for nth in ((1, 2, 3) if point in ("written", "findings", "advanced") else (1,))
]
_numbers = itertools.count(1)


@pytest.fixture
def job(stack: Stack) -> Reconciliation:
    """A job over two tables of its own, of which some rows are wrong."""
    names = {side: f"{side}_{os.getpid()}_{next(_numbers)}" for side in ("truth", "target")}
    with psycopg.connect(stack.dsn) as db:
        for name in names.values():
            statement = "create table {} (id int primary key, v text)"
            db.execute(sql.SQL(statement).format(sql.Identifier(name)))
            fill = "insert into {} select n, 'v' || n from generate_series(0, 199) n"
            db.execute(sql.SQL(fill).format(sql.Identifier(name)))
        target = sql.Identifier(names["target"])
        for number, kind in WRONG.items():
            change = (
                "delete from {} where id = {}" if kind == "MISSING" else "update {} set v = '' where id = {}"
            )
            db.execute(sql.SQL(change).format(target, sql.Literal(number)))
    sides = {side: {"kind": "postgres", "table": name} for side, name in names.items()}
    columns = {"id": "integer", "v": "text"}
    base = {"name": "reconcile", "kind": "reconcile", "key": ["id"], "columns": columns}
    limits = {"maxConcurrency": 1}
    partitions = {"by": "splits", "splits": [100]}
    return Reconciliation.of({**base, **sides, "limits": limits, "partitions": partitions})


class Compared:
    """A run whose launches are the test's own doing."""

    def __init__(self, stack: Stack, job: Reconciliation, undo: str | None = None) -> None:
        self.stack = stack
        self.starter = Starter(stack.ledger, stack.artifacts, SystemClock(), random.Random())
        request_id = f"kills-{os.getpid()}-{next(_numbers)}"
        request = Request(job=job.name, request_id=request_id, requester="kills", undo=undo)
        self.run, _ = self.starter.start(job, request, Code(CODE, CODE))
        self.acceptance = Acceptance(stack.ledger, stack.artifacts, stack.warm, SystemClock())

    def work(self, phase: Phase, number: int, stops: list[dict[str, Any]]) -> None:
        """Launch the one slice of a phase, killed as planned, until it is done."""
        slices = self.starter.dispatch(self.run, phase, number, number * 100).slices
        for slice_ in slices:
            for stop in [*stops, None, None]:
                launch = Launch(self.run.run_id, 1, phase, slice_, self._number())
                status = self._ended(launch, stop)
                assert os.WIFSIGNALED(status) == (stop is not None), self.stack.warm.log.read_text()[-3000:]
                answer = self.acceptance.accept(launch, _truth(status))
                if answer is Answer.DONE:
                    break
                assert Answer.AGAIN is answer, self.stack.warm.log.read_text()[-3000:]

    def _number(self) -> int:
        return self.stack.ledger.runs.next_launch(self.run.run_id, 1)

    def _ended(self, launch: Launch, stop: dict[str, Any] | None) -> int:
        arn = f"arn:aws:ecs:us-east-1:000000000000:task/kills/{os.getpid()}-c{next(_numbers)}"
        spec = {
            "task": arn,
            "order": launch.order(self.run).document(),
            "code": CODE.document(),
            "job": "reconcile",
            "traits": (),
            "secrets": {"dsn": self.stack.dsn},
            "checkpointSeconds": 0.0,
            "stop": stop,
        }
        self.stack.warm.start(spec)
        return self.stack.warm.wait(arn)

    def settle(self, phase: Phase) -> Settled:
        """Settle a phase."""
        made = Comparisons(self.stack.ledger, self.stack.artifacts)
        settlement = Settlement(
            self.stack.ledger,
            self.stack.artifacts,
            self.acceptance,
            verdict=made.verdict,
            is_through=made.is_through,
        )
        return settlement.settle(self.run.run_id, phase)

    def ended(self) -> tuple[Run, ReconcileReport]:
        """The run as it ended, and its report."""
        run = self.stack.ledger.runs.get(self.run.run_id)
        report = Comparisons(self.stack.ledger, self.stack.artifacts).of(run)
        assert report is not None
        return run, report

    def told(self, report: ReconcileReport, phase: Phase) -> dict[int, str]:
        """The kind of each key, each told once."""
        lines = [
            line
            for one in report.lists
            if one.phase is phase
            for there in listed(self.stack.artifacts, one)
            for line in lines_in(self.stack.artifacts, phase, there)
        ]
        assert len(lines) == len({tuple(line["key"]) for line in lines})
        return {int(line["key"][0]): line["kind"] for line in lines}


def _truth(status: int) -> Ended:
    if os.WIFSIGNALED(status):
        return Ended(exit_code=128 + signal.SIGKILL, stop_code="SpotInterruption")
    return Ended(exit_code=os.WEXITSTATUS(status), stop_code="EssentialContainerExited")


@pytest.mark.parametrize(("phase", "point", "nth"), PLACES)
def test_killed_at_a_point_a_comparison_tells_each_line_once(
    stack: Stack, job: Reconciliation, phase: Phase, point: str, nth: int
) -> None:
    compared = Compared(stack, job)
    stop = {"point": point, "nth": nth, "signal": "SIGKILL"}
    compared.work(Phase.COMPARE, 1, [stop] if phase is Phase.COMPARE else [])
    assert Settled.COMPLETE is compared.settle(Phase.COMPARE)
    compared.work(Phase.CONFIRM, 2, [stop] if phase is Phase.CONFIRM else [])
    assert Settled.ENDED is compared.settle(Phase.CONFIRM)
    run, report = compared.ended()
    assert (RunStatus.SUCCEEDED, f"DRIFT: {len(WRONG)} differences are confirmed") == (run.status, run.reason)
    assert WRONG == compared.told(report, Phase.COMPARE) == compared.told(report, Phase.CONFIRM)
    assert (200 - len(WRONG), len(WRONG)) == (
        report.counts["matched"],
        report.counts["missing"] + report.counts["mismatched"],
    )


REPAIR_PLACES = [
    (undoes, phase, point, nth)
    for undoes in (False, True)
    for phase in (Phase.REPAIR, Phase.VERIFY)
    for point, nth in (("registered", 1), ("written", 1), ("findings", 2), ("advanced", 1), ("advanced", 2))
    if phase is Phase.REPAIR or nth == 1
] + [(undoes, Phase.REPAIR, "changed", nth) for undoes in (False, True) for nth in (1, 5)]


def rows(stack: Stack, job: Reconciliation) -> tuple[dict[int, str], dict[int, str]]:
    """What both tables hold."""
    with psycopg.connect(stack.dsn) as db:
        found = []
        for source in (job.truth, job.target):
            assert isinstance(source, PostgresSource)
            select = sql.SQL("select id, v from {}").format(sql.Identifier(source.table))
            found.append(dict(db.execute(select).fetchall()))
    return found[0], found[1]


def repaired(compared: Compared, stop: tuple[Phase, dict[str, Any]] | None, number: int) -> RepairReport:
    """Approve, repair and verify, killed as planned in one of these phases."""
    stack = compared.stack
    run = stack.ledger.runs.get(compared.run.run_id)
    asked = before_repair(stack.artifacts, stack.ledger, run, stack.artifacts.plan_of(run))
    word = {"who": "eve", "sha256": asked.subject.sha256}
    stack.ledger.gates.open(run, asked)
    stack.ledger.gates.decide(run.run_id, asked.name, GateStatus.APPROVED, **word)
    stack.ledger.gates.spend(run, asked.name, asked.subject.sha256, asked.roles)
    compared.starter.lock(stack.ledger.runs.get(run.run_id))
    for phase in (Phase.REPAIR, Phase.VERIFY):
        compared.work(phase, number, [stop[1]] if stop and stop[0] is phase else [])
        number += 1
        compared.settle(phase)
    report = Repairs(stack.ledger, stack.artifacts).of(stack.ledger.runs.get(run.run_id))
    assert report is not None
    return report


@pytest.mark.parametrize(("undoes", "phase", "point", "nth"), REPAIR_PLACES)
def test_killed_at_a_point_each_item_is_repaired_once_and_taken_back_once(
    stack: Stack, job: Reconciliation, undoes: bool, phase: Phase, point: str, nth: int
) -> None:
    job = job.model_copy(update={"repair": RepairSettings()})
    stop = phase, {"point": point, "nth": nth, "signal": "SIGKILL"}
    truth, damaged = rows(stack, job)
    compared = Compared(stack, job)
    for number, earlier in enumerate((Phase.COMPARE, Phase.CONFIRM), 1):
        compared.work(earlier, number, [])
        assert Settled.COMPLETE is compared.settle(earlier)
    report = repaired(compared, None if undoes else stop, 3)
    assert ("REPAIRED", len(WRONG)) == (report.verdict, report.items)
    assert (truth, truth) == rows(stack, job)
    if undoes:
        back = Compared(stack, job, undo=compared.run.run_id)
        report = repaired(back, stop, 1)
        assert ("UNDONE", len(WRONG)) == (report.verdict, report.items)
        assert (truth, damaged) == rows(stack, job)
