"""The report of a run: gathered from the ledger and S3, told as JSON and as one page of HTML."""

from __future__ import annotations

from contextlib import suppress

from trueup.artifacts import Artifacts
from trueup.errors import ArtifactExists, ArtifactMissing, NotFound
from trueup.ledger import Ledger
from trueup.model.base import canonical
from trueup.model.evidence import CheckedEvidence, EvidencePart
from trueup.model.ledger import Run
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.reconciled import Reconciled
from trueup.model.repair import RepairReport
from trueup.model.report import Report
from trueup.model.states import RUN_ENDS
from trueup.reporting.comparison import Comparisons
from trueup.reporting.comparison_page import comparison_page
from trueup.reporting.evidence import MOST_IN_MANIFEST, Evidences
from trueup.reporting.gather import Gatherer
from trueup.reporting.page import page
from trueup.reporting.reconciled import Gathering
from trueup.reporting.repairs import Repairs

__all__ = ["Reports", "comparison_page", "page", "report_key"]


def report_key(run_id: str, kind: str) -> str:
    """Where a run's report is kept; `kind` is json or html."""
    return f"runs/{run_id}/report.{kind}"


class Reports:
    """Makes reports, once each: what is stored first stands."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def leave(self, run_id: str) -> None:
        """Make whatever a run leaves that has ended; asked again, what is missing of it.

        Raises NotFound, StoreUnavailable, ArtifactError.
        """
        self.of(run_id)
        # By itself: who died after the report was stored, or asked for that alone, left no manifest.
        Evidences(self._ledger, self._artifacts).keep(self._ledger.runs.get(run_id))

    def of(self, run_id: str) -> Report | None:
        """The report of a run that has ended, made now where there is none; None of one that has not.

        Raises NotFound, StoreUnavailable.
        """
        run = self._ledger.runs.get(run_id)
        if run.status not in RUN_ENDS:
            return None
        try:
            return self._stored(run_id)
        except ArtifactMissing:
            report = Gatherer(self._ledger, self._artifacts).report(run)
        with suppress(ArtifactExists):
            self._artifacts.store.put_once(report_key(run_id, "json"), canonical(report.document()))
        report = self._stored(run_id)
        Comparisons(self._ledger, self._artifacts).of(run)
        Repairs(self._ledger, self._artifacts).of(run)
        # After the report that it tells: whoever finds the one and not the other makes the same page again.
        with suppress(ArtifactExists):
            self._artifacts.store.put_once(report_key(run_id, "html"), page(report).encode())
        return report

    def page_of(self, run_id: str) -> str | None:
        """The same as one page of HTML."""
        report = self.of(run_id)
        if report is None:
            return None
        try:
            return self._artifacts.store.get(report_key(run_id, "html")).decode()
        except ArtifactMissing:
            return page(report)

    def comparison(self, run_id: str) -> ReconcileReport | None:
        """What a reconciliation found; None before it is through.

        Raises NotFound, also for a run that compares nothing, StoreUnavailable, ArtifactError.
        """
        run = self._reconciliation(run_id)
        if run.undoes:
            raise NotFound(
                f"Run {run_id} takes back what {run.undoes} repaired, and compares nothing.",
                remedy="Ask for its repair.",
            )
        return Comparisons(self._ledger, self._artifacts).of(run)

    def comparison_page(self, run_id: str) -> str | None:
        """All of a reconciliation as one page of HTML, as it stands; None before something is to be told."""
        return None if self.comparison(run_id) is None else self._page(run_id)

    def repair(self, run_id: str) -> RepairReport | None:
        """What a repair came to, or what was taken back; None before it is through.

        Raises NotFound, also for a run that repaired nothing and will not, StoreUnavailable, ArtifactError.
        """
        run = self._reconciliation(run_id)
        found = Repairs(self._ledger, self._artifacts).of(run)
        if found is None and (run.status in RUN_ENDS or not (run.repairs or run.undoes)):
            raise NotFound(f"Run {run_id} repaired nothing.", remedy="Ask for what it compared.")
        return found

    def repair_page(self, run_id: str) -> str | None:
        """The page of the whole reconciliation, once its repair is through."""
        return None if self.repair(run_id) is None else self._page(run_id)

    def _reconciliation(self, run_id: str) -> Run:
        run = self._ledger.runs.get(run_id)
        if run.kind != "reconcile":
            raise NotFound(
                f"Run {run_id} is a {run.kind}, which compares nothing.", remedy="Ask for its report."
            )
        return run

    def reconciled(self, run_id: str) -> Reconciled:
        """All that the page of a reconciliation tells, as it stands. Raises as `comparison` does."""
        return Gathering(self._ledger, self._artifacts).of(self._reconciliation(run_id))

    def _page(self, run_id: str) -> str:
        return comparison_page(self.reconciled(run_id))

    def evidence(
        self, run_id: str, *, limit: int = MOST_IN_MANIFEST, after: str | None = None
    ) -> CheckedEvidence:
        """A page of what a reconciliation left, checked now. Raises as `Evidences.checked` does."""
        run = self._ledger.runs.get(run_id)
        return Evidences(self._ledger, self._artifacts).checked(run, limit=limit, after=after)

    def evidence_part(self, run_id: str, digest: str, offset: int, *, who: str) -> EvidencePart:
        """Bytes of the evidence with that SHA-256, from an offset on; who reads them is on the trail.

        Raises NotFound, StoreUnavailable.
        """
        run = self._ledger.runs.get(run_id)
        return Evidences(self._ledger, self._artifacts).part(run, digest, offset, who=who)

    def location(self, run_id: str) -> str:
        """Where the page lies."""
        return self._artifacts.store.location(report_key(run_id, "html"))

    def _stored(self, run_id: str) -> Report:
        return Report.model_validate_json(self._artifacts.store.get(report_key(run_id, "json")))
