"""A run at its gates: asked for, waited at, passed, or where it ends. What wakes it decides nothing."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from trueup.artifacts import Artifacts, comparison_key, repair_key
from trueup.artifacts.findings import listed
from trueup.artifacts.together import together
from trueup.clock import Clock
from trueup.errors import (
    AlreadyDecided,
    ApprovalExpired,
    ArtifactError,
    GateRefused,
    RunClosed,
    Stale,
    StoreUnavailable,
)
from trueup.ledger import Ledger
from trueup.model.base import sha256
from trueup.model.gate import Asked, Canary, CanaryPartition, Gate, Subject, SubjectKind
from trueup.model.history import scope_of
from trueup.model.ledger import CANARY_GATE, PartitionItem, Run
from trueup.model.plan import Plan
from trueup.model.reconcile_report import ObjectList, ReconcileReport
from trueup.model.repair import UNDO_GATE, RepairReport, gate_of
from trueup.model.states import GateStatus, Phase, RunStatus
from trueup.platform import Waiting

log = logging.getLogger("trueup.gate")

GATEKEEPER = "trueup:gate"
MOST_CHECKED = 50_000
"""Objects that are looked at before a gate is passed: at 150 a second it takes six minutes."""

_G = GateStatus


@dataclass(frozen=True, slots=True)
class Passage:
    """Whether a run may go on: `waits` are the seconds that are left to decide, None where it need not wait.

    Neither open nor waiting: the run is on its way to its end.
    """

    is_open: bool
    waits: int | None = None


OPEN, SHUT = Passage(is_open=True), Passage(is_open=False)


class Gating:
    """Brings runs through their gates. Safe to ask at any time, and twice."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Clock, waiting: Waiting) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._clock = clock
        self._waiting = waiting

    def through(self, run: Run, asked: Asked) -> Passage:
        """Whether an open run may pass a gate: decided by the gate, the hash of the object and the trail.

        A run that may not, and need not wait, is closed with the reason. Raises StoreUnavailable, Stale.
        """
        try:
            self._artifacts.check(asked.subject.key, asked.subject.sha256)
            gate = self._ledger.gates.open(run, asked)
        except RunClosed:
            return SHUT
        except (ArtifactError, AlreadyDecided) as wrong:
            return self._close(run, RunStatus.FAILED, str(wrong))
        if gate.is_waiting and gate.kind is SubjectKind.REPORT:
            self.supersede_older(run, gate.opened_at)
        return self._answer(run, asked, gate)

    def _answer(self, run: Run, asked: Asked, gate: Gate) -> Passage:
        if gate.status in (_G.APPROVED, _G.SPENT):
            return self._pass(run, asked, gate)
        if gate.is_waiting:
            left = (gate.expires_at - self._clock.now()).total_seconds()
            return Passage(is_open=False, waits=max(1, round(left))) if left > 0 else self._expire(run, gate)
        if gate.status is _G.EXPIRED:
            return self._expire(run, gate)
        if gate.status is _G.REJECTED:
            why = f"rejected at gate {gate.name}" + (f": {gate.comment}" if gate.comment else "")
            return self._close(run, RunStatus.CANCELLED, why, who=gate.decided_by or GATEKEEPER)
        why = f"gate {gate.name} is {gate.status}"
        why += f": run {gate.superseded_by} has a newer report" if gate.superseded_by else ""
        return self._close(run, RunStatus.CANCELLED, why)

    def _pass(self, run: Run, asked: Asked, gate: Gate) -> Passage:
        try:
            self._ledger.gates.spend(run, asked.name, asked.subject.sha256, asked.roles)
        except RunClosed:
            return SHUT
        except ApprovalExpired:
            return self._expire(run, gate)
        except GateRefused as refused:
            return self._close(run, RunStatus.FAILED, str(refused))
        return OPEN

    def _expire(self, run: Run, gate: Gate) -> Passage:
        what = "was approved and not begun" if gate.status is _G.APPROVED else "nobody approved it"
        why = f"gate {gate.name} expired at {gate.expires_at:%Y-%m-%d %H:%M:%S} UTC: {what} in time"
        self._ledger.gates.end(gate, _G.EXPIRED, who=GATEKEEPER, why=why)
        return self._close(run, RunStatus.ABORTED, why)

    def _close(self, run: Run, goal: RunStatus, why: str, who: str = GATEKEEPER) -> Passage:
        with suppress(RunClosed):  # It is on its way to another end, or another generation serves it.
            self._ledger.runs.stop(run.run_id, goal, who=who, why=why, generation=run.generation)
        return SHUT

    def supersede_older(self, run: Run, found_at: datetime) -> None:
        """A run has a newer report about the same things: nobody should sign what was found before.

        Whatever it found: a report that asks for less, or for nothing, says as much about an older one.
        """
        for gate in list(self._ledger.gates.waiting()):
            alike = (gate.kind, gate.job) == (SubjectKind.REPORT, run.job)
            older = (gate.opened_at, gate.run_id) < (found_at, run.run_id)
            if alike and older and self._are_about_the_same(self._ledger.runs.get(gate.run_id), run):
                self._supersede(gate, run)

    def _are_about_the_same(self, older: Run, newer: Run) -> bool:
        """Whether two runs of a job may have found the same: with other parameters it may be other rows."""
        if not older.window.overlaps(newer.window):
            return False
        try:
            return self._scope(older) == self._scope(newer)
        except ArtifactError:  # Its plan is not what was hashed, as it finds out when it goes on.
            return False

    def _scope(self, run: Run) -> str | None:
        if run.kind != "reconcile":
            return None
        job = self._artifacts.plan_of(run).job
        assert job.kind == "reconcile"  # as its run is
        return scope_of(job.filled(run.params))

    def _supersede(self, gate: Gate, run: Run) -> None:
        why = f"run {run.run_id} has a newer report"
        with suppress(Stale):  # Somebody decided meanwhile, and what was signed stays signed.
            self.wake(self._ledger.gates.end(gate, _G.SUPERSEDED, who=GATEKEEPER, why=why, by=run.run_id))

    def wake(self, gate: Gate) -> None:
        """Let the execution that waits at a gate look again; the sweep does it where this cannot."""
        if gate.token is None:
            return
        try:
            self._waiting.wake(gate.token)
        except StoreUnavailable as error:
            log.warning("gate %s of %s: %s", gate.name, gate.run_id, error)

    def wake_all(self, run: Run) -> None:
        """Wake what still waits although it need not: a gate was decided, or the run is closed."""
        for gate in self._ledger.gates.of(run.run_id):
            if not gate.is_waiting or run.status is not RunStatus.RUNNING:
                self.wake(gate)


def before(run: Run, plan: Plan, phase: Phase) -> Asked | None:
    """The gate before a phase of a backfill: its plan is approved before anything is written."""
    if phase is not Phase.APPLY or not plan.job.approval.required:
        return None
    subject = Subject(kind=SubjectKind.PLAN, key=run.plan_key, sha256=run.plan_sha256)
    return _asked(plan, phase.value, subject)


def before_repair(artifacts: Artifacts, ledger: Ledger, run: Run, plan: Plan, *, whole: bool = True) -> Asked:
    """The gate before a repair: its report is approved, and with it every object behind it, hash by hash.

    What was asked about once is asked about: a report that was changed since is not what is there.
    Of an undo it is what the repair came to. `whole`: everything behind it is looked at; a task looks at
    what it reads in any case. Raises ArtifactError where an object is not what it says, or nothing is to be
    repaired.
    """
    kind = SubjectKind.UNDO if run.undoes else SubjectKind.REPORT
    asked = next((one for one in ledger.gates.of(run.run_id) if one.kind is kind), None)
    key = repair_key(run.undoes) if run.undoes else comparison_key(run.run_id, "json")
    if run.undoes and asked is None:
        _must_be_told(artifacts, ledger, run.undoes)
    data = artifacts.store.get(key) if asked is None else artifacts.check(key, asked.sha256)
    subject = Subject(kind=kind, key=key, sha256=sha256(data))
    if run.undoes:
        _check_objects(artifacts, RepairReport.model_validate_json(data).lists if whole else ())
        return _asked(plan, UNDO_GATE, subject)
    report = ReconcileReport.model_validate_json(data)
    _check_objects(artifacts, report.lists if whole else ())
    name = gate_of(report, plan.job.repair if plan.job.kind == "reconcile" else None)
    if name is None:
        raise ArtifactError("The report has nothing to repair.", remedy="It was changed: compare again.")
    return _asked(plan, name, subject)


def _must_be_told(artifacts: Artifacts, ledger: Ledger, undone: str) -> None:
    """Raises ArtifactError where nobody can tell what that run repaired; made now where nobody did yet."""
    from trueup.undos import Undos  # which most calls of `settle` need not load

    Undos(ledger, artifacts).told(ledger.runs.get(undone))


def _check_objects(artifacts: Artifacts, lists: Sequence[ObjectList]) -> None:
    """Read each list, and ask S3 for the checksum that it holds of each object. Raises ArtifactError.

    Of more than `MOST_CHECKED` objects the lists alone: the function has 15 minutes, and each task holds
    what it reads against its hash before it changes a row by it.
    """
    named = together(lambda one: listed(artifacts, one), lists)
    if sum(one.objects for one in lists) > MOST_CHECKED:
        deque(named, maxlen=0)
        return
    objects = [there for some in named for there in some]
    found = together(lambda one: artifacts.store.checksum(one.location), objects)
    for one, digest in zip(objects, found, strict=True):
        if digest != one.sha256:
            raise ArtifactError(
                f"{one.location} has SHA-256 {digest or 'none'}, not {one.sha256} as was reported.",
                remedy="It was changed: nothing is repaired; compare again.",
            )


def behind_canary(artifacts: Artifacts, ledger: Ledger, run: Run, plan: Plan) -> Asked:
    """The gate between the canary and the rest: what the canary came to is approved, with the plan's hash."""
    names = [one.id for one in artifacts.partitions(plan.partitions)[: run.canary]]
    items = ledger.partitions.get_many(run.run_id, Phase.APPLY, names)
    canary = Canary(
        run_id=run.run_id,
        plan_sha256=run.plan_sha256,
        of=plan.partition_count,
        partitions=tuple(_came_to(items[name]) for name in names),
    )
    return _asked(plan, CANARY_GATE, artifacts.put_canary(canary))


def _asked(plan: Plan, name: str, subject: Subject) -> Asked:
    approval = plan.job.approval
    return Asked(name=name, subject=subject, roles=approval.roles, hours=approval.expires_hours)


def _came_to(item: PartitionItem) -> CanaryPartition:
    return CanaryPartition(
        partition_id=item.partition_id,
        status=item.status,
        records=item.counters,
        outputs=tuple(item.entry.outputs) if item.entry else (),
    )
