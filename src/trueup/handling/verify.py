"""Verifies what a backfill has written, by a reconciliation that is a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trueup.artifacts import Artifacts
from trueup.errors import ArtifactError, RequestError
from trueup.handling.start import start_execution
from trueup.ledger import Ledger
from trueup.model.base import cut
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Run
from trueup.model.request import Request
from trueup.model.result import LONGEST_MESSAGE
from trueup.model.states import RUN_ENDS
from trueup.model.verification import VerifiedBy
from trueup.platform import Machines
from trueup.reporting.comparison import Comparisons
from trueup.starting import Starter

VERIFIER = "trueup:verify"
# A look costs nine events of the 25,000 that an execution may have: a tenth of what it has taken so far is
# late enough, and soon enough.
_SOONEST, _LATEST, _SHARE = 5.0, 3600.0, 0.1


def asked_for(run_id: str) -> str:
    """The request of a run's verification: however often it is asked for, one run is started."""
    return f"verify/{run_id}"


@dataclass(frozen=True, slots=True)
class Verifying:
    """Starts verifications, and reads what they come to."""

    ledger: Ledger
    artifacts: Artifacts
    starter: Starter
    executions: Machines
    jobs: Callable[[], Mapping[str, AnyJob]]

    def look(self, run: Run) -> float | None:
        """Begin the verification of a run that is through, or look at it: the seconds until the next look.

        None: the verdict is on the run. Raises StoreUnavailable, Stale: call it again.
        """
        asked = run.verification
        assert asked is not None  # who has none is not looked at
        if asked.verdict is not None:
            return None
        try:
            by = self._begun(run)
        except RequestError as refused:
            self._conclude(run, f"{asked.job} could not be started: {refused}")
            return None
        run = self._note(run, asked.model_copy(update={"run_id": by.run_id}))
        try:
            return self._read(run, by)
        except ArtifactError as changed:
            self._conclude(run, str(changed))
            return None

    def _begun(self, run: Run) -> Run:
        """The run that verifies this one, started where nobody did yet. Raises RequestError."""
        request_id = asked_for(run.run_id)
        by = self.ledger.runs.of_request(request_id)
        if by is None:
            from trueup.requests import verifying  # which most calls of `settle` need not load

            job = self.artifacts.plan_of(run).job
            assert job.kind == "backfill"
            assert job.verify is not None
            found, params = verifying(job.verify, run.params, run.window, self.jobs())
            request = Request(
                job=found.name,
                request_id=request_id,
                requester=run.requester,
                params=params,
                comment=f"verification of {run.run_id}",
            )
            by = self.starter.create(found, request, verifies=run.run_id)
        if by.verifies != run.run_id:
            raise RequestError(
                f"{by.requester} started {by.run_id} under {request_id!r}, which is not for people to use.",
                remedy=f"Start {by.job} again to see what it finds now.",
                field="requestId",
            )
        if run.verification is None or run.verification.run_id is None:
            start_execution(by, self.executions)
        return by

    def _read(self, run: Run, by: Run) -> float | None:
        made = Comparisons(self.ledger, self.artifacts)
        # Before its end it is for that run's own settling to say that all is compared.
        report = made.of(by) if by.status in RUN_ENDS else made.stored(by)
        if report is None:
            return min(_LATEST, max(_SOONEST, _SHARE * self.starter.open_for(by)))
        assert run.verification is not None
        found = {
            "verdict": report.verdict,
            "reasons": tuple(report.reasons),
            "report_sha256": made.sha256_of(by),
        }
        self._note(run, run.verification.model_copy(update=found))
        return None

    def _conclude(self, run: Run, why: str) -> None:
        """What could not be compared is never clean."""
        assert run.verification is not None
        found = {"verdict": "ERROR", "reasons": (cut(why, LONGEST_MESSAGE),)}
        self._note(run, run.verification.model_copy(update=found))

    def _note(self, run: Run, verification: VerifiedBy) -> Run:
        return self.ledger.runs.verify(run, verification, who=VERIFIER)
