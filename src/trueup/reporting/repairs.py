"""What a repair came to, from the ledger and from what its tasks left in S3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from trueup.artifacts import Artifacts, comparison_key, repair_key, so_far_key
from trueup.artifacts.findings import is_told, repaired
from trueup.errors import ArtifactExists, ArtifactMissing
from trueup.ledger import Ledger
from trueup.model.base import canonical, sha256
from trueup.model.compared import Compared
from trueup.model.gate import Gate
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import Plan
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ObjectList, ReconcileReport
from trueup.model.repair import (
    DELETE_GATE,
    REPAIR_GATE,
    TOUCHED,
    UNDO_GATE,
    Action,
    OutcomeLine,
    RepairOutcome,
    RepairReport,
    RepairVerdict,
    Verification,
    confirmed,
    deletes,
)
from trueup.model.states import RUN_ENDS, GateStatus, PartitionStatus, Phase
from trueup.watching.planned import planned_items

_Listed = tuple[Compared, str, str]
_ACTIONS = frozenset(Action)


class Repairs:
    """Makes the reports of repairs, once each: what is stored first stands."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def of(self, run: Run) -> RepairReport | None:
        """The report, made now where the repair is through or its run ended; None where nothing was approved.

        Raises StoreUnavailable, ArtifactError.
        """
        if not (run.repairs or run.undoes):
            return None
        with suppress(ArtifactMissing):
            return self._stored(run)
        gate = self._passed(run)
        if gate is None or (run.status not in RUN_ENDS and not self._is_through(run)):
            return None
        report = self._made(run, gate)
        with suppress(ArtifactExists):
            self._artifacts.store.put_once(repair_key(run.run_id), canonical(report.document()))
        return self._stored(run)

    def _stored(self, run: Run) -> RepairReport:
        return RepairReport.model_validate_json(self._artifacts.store.get(repair_key(run.run_id)))

    def _passed(self, run: Run) -> Gate | None:
        names = (REPAIR_GATE, DELETE_GATE, UNDO_GATE)
        gates = (self._ledger.gates.find(run.run_id, name) for name in names if name in run.passed)
        return next((gate for gate in gates if gate is not None and gate.status is GateStatus.SPENT), None)

    def _is_through(self, run: Run) -> bool:
        ended = self._ledger.verdicts.counts_by_phase(run.run_id)
        done = [ended[phase].tally().partitions if phase in ended else 0 for phase in run.phases[-2:]]
        return run.is_planned and all(number >= run.partitions for number in done)

    def _made(self, run: Run, gate: Gate) -> RepairReport:
        plan = self._artifacts.plan_of(run)
        gathered = _Gathered()
        for phase in (Phase.REPAIR, Phase.VERIFY):
            for compared, location, digest in self._compared(run, phase, plan, gathered):
                gathered.add(phase, compared, location, digest)
        assert gate.decided_at is not None  # it was spent, so somebody decided
        verdict, reasons = gathered.judged(run, self._asked(run, plan))
        return RepairReport(
            run_id=run.run_id,
            job=run.job,
            verdict=verdict,
            reasons=reasons,
            gate=gate.name,
            approved_by=gate.decided_by or "",
            approved_at=gate.decided_at,
            subject_sha256=gate.sha256,
            undoes=run.undoes,
            plan_sha256=plan.sha256(),
            code=plan.write_code,
            finished_at=max(gathered.finished, default=None),
            items=sum(gathered.states[Phase.REPAIR].values()),
            outcomes=list(_lines(gathered.states[Phase.REPAIR])),
            verified=list(_lines(gathered.states[Phase.VERIFY])),
            lists=gathered.lists,
        )

    def _asked(self, run: Run, plan: Plan) -> _Asked:
        """What was approved, and what that leaves as it is. Raises ArtifactError."""
        if run.undoes:
            undone = RepairReport.model_validate_json(self._artifacts.store.get(repair_key(run.undoes)))
            return _Asked(undone.to_undo - sum(one.settled for one in self._earlier(plan)))
        assert isinstance(plan.job, Reconciliation)
        assert plan.job.repair is not None  # else nothing was approved
        data = self._artifacts.store.get(comparison_key(run.run_id, "json"))
        report = ReconcileReport.model_validate_json(data)
        found = confirmed(report)
        left = 0 if deletes(report, plan.job.repair) else found[Action.DELETE]
        uncompared = "" if report.verdict == "DRIFT" else report.reasons[0]  # what it is INCOMPLETE for
        return _Asked(sum(found.values()) - left, left, uncompared)

    def _earlier(self, plan: Plan) -> Iterator[RepairReport]:
        """What the undos before one came to, as its plan has pinned them."""
        for one in plan.earlier:
            data = self._artifacts.check(repair_key(one.run_id), one.sha256)
            yield RepairReport.model_validate_json(data)

    def _compared(self, run: Run, phase: Phase, plan: Plan, gathered: _Gathered) -> Iterator[_Listed]:
        """How each partition ended, with the place and the hash of what says so."""
        for item, *_ in planned_items(self._ledger, self._artifacts, run, phase, plan):
            if item.status not in (PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED):
                why = item.error.message if item.error else item.status.value
                gathered.troubles.append(f"{item.partition_id} in the phase {phase.value}: {why}")
            if (compared := repaired(self._artifacts, run.run_id, phase, item)) is not None:
                yield (compared, *self._list(run, item, compared))

    def _list(self, run: Run, item: PartitionItem, compared: Compared) -> tuple[str, str]:
        """Where the list of a partition's objects lies, and its hash.

        Of one that did not get to its end no task left a list, so that is made now.
        """
        if item.entry is not None and item.entry.outputs and is_told(item):
            output = item.entry.outputs[0]
            return output.location, output.sha256
        data = canonical(compared.document())
        key = so_far_key(run.run_id, sha256(data))
        self._artifacts.store.put_once(key, data)
        return self._artifacts.store.location(key), sha256(data)


@dataclass(frozen=True, slots=True)
class _Asked:
    """How many items were approved, and what that leaves as it is."""

    items: int
    left: int = 0
    uncompared: str = ""

    @property
    def leaves(self) -> list[str]:
        """What of the report is as it was, however well the repair goes."""
        uncompared = [f"something could not be compared: {self.uncompared}"] if self.uncompared else []
        extra = f"{self.left} rows of the target are not in the truth, and were not to be deleted"
        return [*uncompared, *([extra] if self.left else [])]


@dataclass(slots=True)
class _Gathered:
    """What the partitions of a repair come to."""

    states: dict[Phase, Counter[str]] = field(
        default_factory=lambda: {Phase.REPAIR: Counter(), Phase.VERIFY: Counter()}
    )
    lists: list[ObjectList] = field(default_factory=list)
    finished: list[datetime] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def add(self, phase: Phase, compared: Compared, location: str, digest: str) -> None:
        """One more partition, with the place and the hash of its list."""
        self.states[phase].update(compared.states)
        self.finished.append(compared.finished_at)
        if compared.objects:
            self.lists.append(ObjectList.of(compared, location, digest))

    def judged(self, run: Run, asked: _Asked) -> tuple[RepairVerdict, list[str]]:
        """The verdict, and what speaks against REPAIRED."""
        done, seen = (_totals(self.states[phase]) for phase in (Phase.REPAIR, Phase.VERIFY))
        touched = sum(done.get(outcome, 0) for outcome in TOUCHED)
        untold = done.get(RepairOutcome.INTENDED, 0)
        done.pop(RepairOutcome.APPLIED, None)
        reasons = [f"{number} items: {name}" for name, number in sorted(done.items())]
        if (never := asked.items - sum(self.states[Phase.REPAIR].values())) > 0:
            reasons.append(f"{never} items were approved and never begun")
        reasons += self.troubles[:20]
        if run.status in RUN_ENDS and run.status.value != "SUCCEEDED" and not self.troubles:
            reasons.append(f"the run is {run.status.value}: {run.reason}")
        if unseen := touched - sum(seen.values()):
            what = "applied or intended" if untold else "applied"
            reasons.append(f"{unseen} items were {what} and not looked at again")
        if reappeared := seen.get(Verification.REAPPEARED, 0):
            return "REAPPEARED", [f"{reappeared} items differ again", *reasons, *asked.leaves]
        if reasons or asked.leaves:
            is_partial = asked.uncompared and not reasons
            return "PARTIAL" if is_partial else "UNREPAIRED", [*reasons, *asked.leaves]
        return ("UNDONE" if run.undoes else "REPAIRED"), []


def _totals(states: Mapping[str, int]) -> dict[str, int]:
    """By outcome alone."""
    totals: Counter[str] = Counter()
    for name, number in states.items():
        said, _, action = name.rpartition(" ")
        totals[said if action in _ACTIONS else name.strip()] += number
    return dict(totals)


def _lines(states: Mapping[str, int]) -> Iterator[OutcomeLine]:
    for name, number in sorted(states.items()):
        said, _, action = name.rpartition(" ")
        if action in _ACTIONS:
            yield OutcomeLine(outcome=said, action=Action(action), items=number)
