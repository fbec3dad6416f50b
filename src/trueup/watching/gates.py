"""Gates for people: what is asked about, in the facts that a decision needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from trueup.artifacts import Artifacts, repair_key
from trueup.errors import ArtifactError
from trueup.ledger import Ledger
from trueup.model.base import cut
from trueup.model.counters import Counters
from trueup.model.gate import Canary, Gate, SubjectKind
from trueup.model.ledger import Run
from trueup.model.plan import Plan
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import Action, RepairReport, confirmed, deletes
from trueup.model.states import Phase
from trueup.model.view import Fact, GateView

_LONGEST_VALUE = 400


class GateViews:
    """Shows gates. What they ask about is read from S3 and held against its hash."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def waiting(self) -> list[GateView]:
        """Every gate that nobody decided yet, without facts."""
        return [self.view(gate) for gate in self._ledger.gates.waiting()]

    def of(self, run_id: str) -> list[GateView]:
        """The gates of a run, with facts. Raises NotFound."""
        run = self._ledger.runs.get(run_id)
        return [self.view(gate, self._facts(run, gate)) for gate in self._ledger.gates.of(run_id)]

    def waited_at(self, run: Run) -> GateView | None:
        """The gate at which a run waits for a person."""
        gate = self._ledger.gates.find(run.run_id, run.waits_at) if run.waits_at else None
        return self.view(gate) if gate is not None and gate.is_waiting else None

    def view(self, gate: Gate, facts: Iterable[Fact] = ()) -> GateView:
        """A gate as people see it: without its token."""
        told = gate.model_dump(include=set(GateView.model_fields))
        return GateView(**told, location=self._artifacts.store.location(gate.key), facts=list(facts))

    def _facts(self, run: Run, gate: Gate) -> list[Fact]:
        try:
            data = self._artifacts.check(gate.key, gate.sha256)
            return list(self._told(run, gate, data))
        except ArtifactError as changed:
            return [Fact(name="changed", value=str(changed))]
        except ValidationError as other:
            return [_fact("unreadable", f"Not in the form of this version: {other}")]

    def _told(self, run: Run, gate: Gate, data: bytes) -> Iterator[Fact]:
        if gate.kind is SubjectKind.REPORT:
            report = ReconcileReport.model_validate_json(data)
            yield from _of_report(report)
            yield from _of_its_repair(run, self._artifacts.plan_of(run), report)
            return
        if gate.kind is SubjectKind.UNDO:
            yield from _of_repair(RepairReport.model_validate_json(data))
            yield from self._taken_back(self._artifacts.plan_of(run))
            yield _fact("writes", f"{run.target}, each row only where it is still what was written")
            return
        if gate.kind is SubjectKind.CANARY:
            yield from _of_canary(Canary.model_validate_json(data))
        yield from self._of_plan(run, self._artifacts.plan_of(run))

    def _taken_back(self, plan: Plan) -> Iterator[Fact]:
        """What earlier undos have settled, and this one leaves alone."""
        for one in plan.earlier:
            data = self._artifacts.check(repair_key(one.run_id), one.sha256)
            report = RepairReport.model_validate_json(data)
            yield _fact("left out", f"{report.settled:,} rows that {one.run_id} settled")

    def _of_plan(self, run: Run, plan: Plan) -> Iterator[Fact]:
        yield _fact("window", plan.window)
        yield _fact("partitions", f"{plan.partition_count:,}")
        if plan.job.approval.canary:
            yield _fact("canary", f"the first {plan.job.approval.canary:,}, then a gate")
        yield from self._rehearsed(run)
        if estimate := self._artifacts.estimate(run.run_id):
            yield _fact("dollars", f"{estimate.dollars:.4f} estimated")
            yield _fact("takes", f"{estimate.wall_minutes:.0f} minutes with {estimate.tasks:,} tasks")
        yield _fact("writes", f"{run.target}, guard {run.guard.value}")
        yield _fact("cannot prevent", run.guard.cannot_prevent)
        yield _code(plan)
        yield _fact("parameters", json.dumps(plan.params, ensure_ascii=False))

    def _rehearsed(self, run: Run) -> Iterator[Fact]:
        if Phase.REHEARSE in run.phases:
            tally = self._ledger.verdicts.counts(run.run_id, Phase.REHEARSE).tally()
            yield _fact("rehearsed", f"{tally.partitions:,} partitions: {_records(tally.records)}")


def _of_canary(canary: Canary) -> Iterator[Fact]:
    total = Counters()
    for one in canary.partitions:
        total = total.plus(one.records)
    yield _fact("applied", f"{len(canary.partitions):,} of {canary.of:,} partitions: {_records(total)}")
    for one in canary.partitions[:5]:
        yield _fact(one.partition_id, f"{one.status.value}: {_records(one.records)}")


def _of_report(report: ReconcileReport) -> Iterator[Fact]:
    """Its verdict, and whatever it counted."""
    yield _fact("verdict", report.verdict)
    for reason in report.reasons[:5]:
        yield _fact("reason", reason)
    for line in report.states:
        yield _fact(f"{line.state} {line.kind}".lower(), f"{line.findings:,}")


def _of_its_repair(run: Run, plan: Plan, report: ReconcileReport) -> Iterator[Fact]:
    """What is changed once the report is approved, where, and by which code."""
    assert plan.job.kind == "reconcile"  # as its run has such a gate
    assert plan.job.repair is not None
    found = confirmed(report)
    deleted = found[Action.DELETE] if deletes(report, plan.job.repair) else 0
    yield _fact("puts", f"{found[Action.INSERT] + found[Action.UPDATE]:,} rows")
    yield _fact("deletes", f"{deleted:,} rows")
    yield _fact("writes", f"{run.target}, each row only where both sides are still as they are reported")
    yield _code(plan)


def _of_repair(report: RepairReport) -> Iterator[Fact]:
    """What was done, which is taken back."""
    yield _fact("undoes", f"{report.run_id}, approved by {report.approved_by}")
    for line in report.outcomes:
        yield _fact(f"{line.outcome} {line.action.value}".lower(), f"{line.items:,}")


def _records(records: Counters) -> str:
    return (
        f"read {records.read:,}, skipped {records.skipped:,}, rejected {records.rejected:,}, "
        f"written {records.written:,}, unchanged {records.unchanged:,}, refused {records.refused:,}"
    )


def _code(plan: Plan) -> Fact:
    return _fact("code", f"{plan.write_code.task_definition} {plan.write_code.image_digest}")


def _fact(name: str, value: object) -> Fact:
    return Fact(name=name, value=cut(str(value), _LONGEST_VALUE))
