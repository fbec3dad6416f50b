"""`start`: a request or a schedule becomes a run, once, and the run its execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.ledger import Ledger, keys
from trueup.model.job import JobFile
from trueup.model.ledger import Run
from trueup.model.states import RunStatus
from trueup.platform import Executions
from trueup.requests import check_request
from trueup.starting import Starter


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts runs; asked again, it starts what is missing."""

    ledger: Ledger
    starter: Starter
    executions: Executions
    jobs: Mapping[str, JobFile]

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Start the run of a request, or of `{schedule, scheduledTime, request}`.

        Raises RequestError; then nothing was created. Raises StoreUnavailable: ask again.
        """
        run = self._scheduled(event) if "schedule" in event else self._asked_for(event)
        start_execution(run, self.executions)
        return {"runId": run.run_id, "status": run.status.value, "execution": run.execution}

    def _asked_for(self, event: Mapping[str, Any]) -> Run:
        job, request, _ = check_request(event, self.jobs)
        return self.starter.create(job, request)

    def _scheduled(self, event: Mapping[str, Any]) -> Run:
        # Scheduler delivers at least once, so the time that it was scheduled for is the run's identity.
        schedule, at = str(event["schedule"]), str(event["scheduledTime"])
        who = {"requestId": f"schedule/{schedule}/{at}", "requester": f"schedule:{schedule}"}
        job, request, _ = check_request({**event["request"], **who}, self.jobs)
        run_id = f"{schedule}-{at.replace(':', '')}"
        return self.starter.create(job, request, run_id=run_id, asked=keys.schedule(schedule, at))


def start_execution(run: Run, executions: Executions) -> None:
    """Start the execution that serves an open run, under its own name and with its stored input."""
    if run.status is RunStatus.RUNNING and run.execution:
        executions.start(run.execution, run.execution_input)
