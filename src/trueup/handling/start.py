"""`start`: a request or a schedule becomes a run, once, and the run its execution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trueup.errors import RequestError
from trueup.ledger import Ledger, keys
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Run
from trueup.model.states import RunStatus
from trueup.platform import Machines
from trueup.requests import check_request
from trueup.starting import Starter

# A run that is named otherwise would be created and could never be executed.
_SCHEDULE = re.compile(r"[A-Za-z0-9._-]{1,40}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts runs; asked again, it starts what is missing."""

    ledger: Ledger
    starter: Starter
    executions: Machines
    jobs: Mapping[str, AnyJob]

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Start the run of a request, or of `{schedule, scheduledTime, request}` with the time in UTC.

        Raises RequestError; then nothing was created. Raises StoreUnavailable: ask again.
        """
        _mapping(event, "the event")
        run = self._scheduled(event) if "schedule" in event else self._asked_for(event)
        start_execution(run, self.executions)
        return {"runId": run.run_id, "status": run.status.value, "execution": run.execution}

    def _asked_for(self, event: Mapping[str, Any]) -> Run:
        job, request, _ = check_request(event, self.jobs)
        return self.starter.create(job, request)

    def _scheduled(self, event: Mapping[str, Any]) -> Run:
        # Scheduler delivers at least once, so the time that it was scheduled for is the run's identity.
        schedule, at = _named(event["schedule"]), _timed(event.get("scheduledTime"))
        who = {"requestId": f"schedule/{schedule}/{at}", "requester": f"schedule:{schedule}"}
        job, request, _ = check_request({**_mapping(event.get("request"), "request"), **who}, self.jobs)
        run_id = f"{schedule}-{at.replace(':', '')}"
        return self.starter.create(job, request, run_id=run_id, asked=keys.schedule(schedule, at))


def start_execution(run: Run, executions: Machines) -> None:
    """Start the execution that serves an open run, under its own name and with its stored input."""
    if run.status is RunStatus.RUNNING and run.execution:
        executions[run.kind].start(run.execution, run.execution_input)


def _mapping(given: object, what: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    raise RequestError(
        f"{what} is {type(given).__name__}, not an object.",
        remedy='Give {"job": ...}, or {"schedule": ..., "scheduledTime": ..., "request": {"job": ...}}.',
        field="request",
    )


def _named(schedule: object) -> str:
    """A schedule's name, which its runs and their executions are named after."""
    if isinstance(schedule, str) and _SCHEDULE.fullmatch(schedule):
        return schedule
    raise RequestError(
        f"{schedule!r} cannot name a run.",
        remedy="Use at most 40 letters, digits, dots, dashes and underscores.",
        field="schedule",
    )


def _timed(at: object) -> str:
    if isinstance(at, str) and _TIME.fullmatch(at):
        with suppress(ValueError):  # the right form, but no such month or hour
            datetime.fromisoformat(at)
            return at
    raise RequestError(
        f"{at!r} is no time such as 2026-07-06T01:00:00Z.",
        remedy="Let Scheduler fill in <aws.scheduler.scheduled-time>.",
        field="scheduledTime",
    )
