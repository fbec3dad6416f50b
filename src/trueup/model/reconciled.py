"""A reconciliation as a whole: what was found, who signed it, what was done and what was seen later."""

from __future__ import annotations

from pydantic import Field

from trueup.model.base import Instant, Sha256, Value
from trueup.model.evidence import GateEvidence
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import Action, RepairOutcome, RepairReport, Verification
from trueup.model.states import RunStatus


class ItemLine(Value):
    """One item of a repair: what became of it, and what a later look said, where there was one."""

    key: tuple[str, ...]
    action: Action
    outcome: RepairOutcome
    detail: str = ""
    later: Verification | None = None


class UndoLine(Value):
    """A run that took repairs back, or was asked to."""

    run_id: str
    status: RunStatus
    reason: str = ""


class Reconciled(Value):
    """All that the page of a reconciliation tells.

    `report` is None for a run that takes repairs back, `repair` where nothing was repaired. Each comes with
    the SHA-256 that it is stored under. `items` are the first ones of each outcome, and `changed` says which
    of their objects are not what they were. `undone_by` are the runs that took its
    repairs back, or were asked to. `evidence` is where the manifest lies, once the run has ended.
    """

    run_id: str
    job: str
    status: RunStatus
    reason: str = ""
    requester: str
    comment: str = ""
    created_at: Instant
    undoes: str | None = None
    report: ReconcileReport | None = None
    report_sha256: Sha256 | None = None
    repair: RepairReport | None = None
    repair_sha256: Sha256 | None = None
    gates: list[GateEvidence] = Field(default_factory=list)
    items: list[ItemLine] = Field(default_factory=list)
    changed: list[str] = Field(default_factory=list)
    undone_by: list[UndoLine] = Field(default_factory=list)
    evidence: str | None = None
    evidence_sha256: Sha256 | None = None

    @property
    def verdict(self) -> str:
        """What it came to in the end, or how it stands."""
        last = self.repair or self.report
        return last.verdict if last else self.status.value
