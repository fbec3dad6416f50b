"""What a reconciliation takes over from those before it, and what it leaves to the next."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.artifacts import Artifacts, comparison_key
from trueup.errors import ArtifactMissing
from trueup.ledger import Ledger
from trueup.model.base import sha256
from trueup.model.history import EarlierRun, scope_of
from trueup.model.ledger import Run
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport


def earlier_of(ledger: Ledger, artifacts: Artifacts, run: Run, job: Reconciliation) -> Iterator[EarlierRun]:
    """The runs that the ages of a run's findings come from, pinned by their reports as they are now.

    They are the newest run of the job about the same rows and, where something was left out of that one, the
    newest that compared everything. One whose report is gone is none. Raises StoreUnavailable.
    """
    scope = scope_of(job.filled(run.params), run.window)
    for run_id in ledger.history.of(run.job, scope):
        try:
            data = artifacts.store.get(comparison_key(run_id, "json"))
        except ArtifactMissing:
            continue
        yield EarlierRun(run_id=run_id, sha256=sha256(data))


def leave(ledger: Ledger, run: Run, job: Reconciliation, report: ReconcileReport) -> None:
    """Let the next run know of this one, if it looked at anything twice, or found nothing anywhere."""
    whole = report.verdict in ("CLEAN", "DRIFT")
    if whole or report.confirmed:
        scope = scope_of(job.filled(run.params), run.window)
        ledger.history.note(run.job, scope, run.run_id, run.created_at, whole=whole)
