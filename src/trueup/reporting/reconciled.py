"""Everything that the page of a reconciliation tells, from the ledger and from what is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trueup.artifacts import Artifacts, comparison_key, evidence_key, repair_key
from trueup.artifacts.findings import lines_in, listed
from trueup.errors import ArtifactError, ArtifactMissing
from trueup.ledger import Ledger
from trueup.model.base import sha256
from trueup.model.compared import FindingsObject
from trueup.model.evidence import GateEvidence
from trueup.model.ledger import Run
from trueup.model.reconciled import ItemLine, Reconciled, UndoLine
from trueup.model.repair import Outcomes, RepairOutcome, RepairReport
from trueup.model.states import Phase
from trueup.reporting.comparison import Comparisons
from trueup.reporting.repairs import Repairs

SHOWN_OF_EACH = 25
"""So many items of each outcome are shown; the counts are exact, and all items are in the objects."""
LINES_READ = 20_000


class Gathering:
    """Reads what a page needs."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def of(self, run: Run) -> Reconciled:
        """All of a reconciliation as it stands. Raises StoreUnavailable, ArtifactError."""
        report = Comparisons(self._ledger, self._artifacts).of(run)
        repair = Repairs(self._ledger, self._artifacts).of(run)
        changed: list[str] = []
        manifest = self._digest(evidence_key(run.run_id))
        return Reconciled(
            run_id=run.run_id,
            job=run.job,
            status=run.status,
            reason=run.reason or "",
            requester=run.requester,
            comment=run.request.comment if run.request else "",
            created_at=run.created_at,
            undoes=run.undoes,
            report=report,
            report_sha256=self._digest(comparison_key(run.run_id, "json")) if report else None,
            repair=repair,
            repair_sha256=self._digest(repair_key(run.run_id)) if repair else None,
            gates=[GateEvidence.of(gate) for gate in self._ledger.gates.of(run.run_id)],
            items=self._items(repair, changed) if repair else [],
            changed=changed,
            undone_by=list(self._undos(run)),
            evidence=self._artifacts.store.location(evidence_key(run.run_id)) if manifest else None,
            evidence_sha256=manifest,
        )

    def _digest(self, key: str) -> str | None:
        """The SHA-256 of what lies at a key; None where nothing does."""
        with suppress(ArtifactMissing):
            return sha256(self._artifacts.store.get(key))
        return None

    def _undos(self, run: Run) -> Iterator[UndoLine]:
        for one, _ in self._ledger.runs.many([(run_id, "") for run_id in run.undone_by]):
            yield UndoLine(run_id=one.run_id, status=one.status, reason=one.reason or "")

    def _items(self, repair: RepairReport, changed: list[str]) -> list[ItemLine]:
        """The first items of each outcome, those that were not applied before the others."""
        shown: Counter[str] = Counter()
        kept: dict[tuple[str, ...], dict[str, Any]] = {}
        for line in self._outcomes(repair, changed):
            if shown[line["outcome"]] == SHOWN_OF_EACH:
                continue
            shown[line["outcome"]] += 1
            kept[tuple(line["key"])] = {name: line[name] for name in ("key", "action", "outcome")} | {
                "detail": line.get("detail", "")
            }
        for _, line in self._lines(repair, Phase.VERIFY, changed):
            if not line.get("again") and (one := kept.get(tuple(line["key"]))):
                one["later"] = line["verification"]
        items = [ItemLine.model_validate(one) for one in kept.values()]
        return sorted(items, key=lambda one: one.outcome is RepairOutcome.APPLIED)

    def _outcomes(self, repair: RepairReport, changed: list[str]) -> Iterator[dict[str, Any]]:
        """The first items; those whose outcome nobody told only where all was read that could tell it."""
        found: defaultdict[str, Outcomes] = defaultdict(Outcomes)
        for partition_id, line in self._lines(repair, Phase.REPAIR, changed):
            yield from found[partition_id].of([line])
        lines = sum(one.lines for one in repair.lists if one.phase is Phase.REPAIR)
        are_some = any(one.outcome == RepairOutcome.INTENDED for one in repair.outcomes)
        if are_some and lines <= LINES_READ and not changed:
            yield from (item for one in found.values() for item in one.untold())

    def _lines(
        self, repair: RepairReport, phase: Phase, changed: list[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The first lines of a phase, if they are what the report names."""
        left = LINES_READ
        for partition_id, one in self._objects(repair, phase, changed):
            if left <= 0:
                return
            left -= one.lines
            try:
                for line in lines_in(self._artifacts, phase, one):
                    yield partition_id, line
            except ArtifactError as other:
                changed.append(str(other))

    def _objects(
        self, repair: RepairReport, phase: Phase, changed: list[str]
    ) -> Iterator[tuple[str, FindingsObject]]:
        """The objects of a phase with their partitions, of those lists that are what the report names."""
        for one in repair.lists:
            if one.phase is phase:
                try:
                    yield from ((one.partition_id, there) for there in listed(self._artifacts, one))
                except ArtifactError as other:
                    changed.append(str(other))
