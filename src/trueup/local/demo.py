"""The demo: a year of real flights backfilled twice, with faults on the way, and every record counted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

from trueup.errors import LocalStackError, TrueupError
from trueup.local.bill import bill_of
from trueup.local.demo_faults import DEATHS
from trueup.local.demo_reconcile import Reconciling, is_good
from trueup.local.demo_reports import keep, make_folder
from trueup.local.expected import check_rows, check_summary
from trueup.local.faults import Fault, FaultPlan, Strike
from trueup.local.flights import days
from trueup.local.stack import CLUSTER, NAME, Options, Stack, stack
from trueup.local.stores import put_days
from trueup.local.targets import FLIGHTS_BUCKET, ROWS_TABLE, SUMMARY_TABLE
from trueup.model.counters import COUNTERS
from trueup.model.ledger import PartitionItem, Run
from trueup.model.states import RUN_ENDS, PartitionStatus, Phase, RunStatus
from trueup.reporting import Reports

PARAMS = {
    "flights-summary": {"bucket": FLIGHTS_BUCKET, "table": SUMMARY_TABLE},
    "flights-rows": {"bucket": FLIGHTS_BUCKET},
}
START, END = "2013-01-01", "2014-01-01"
AT_ONCE = 8
"""Tasks of a job; both jobs run side by side."""
DEADLY = ("crash", "kill", "exit")
LONGEST = 900.0
_POLL_SECONDS = 0.5
_FEW = 5

Note = Callable[[str], None]


def run_demo(
    *, seed: int | None, note: Note, reports: Path, end: str = END, faults: Sequence[Fault] = DEATHS
) -> dict[str, Any]:
    """Start the stack, run both jobs, compare both tables, and give the figures as a JSON document.

    Then items of the summary are damaged, found by a reconciliation, signed by a second person and repaired.

    The window begins with 2013 and ends before `end`. `faults` strike by the seed: any, where none is given.
    What the stack kept goes with it, but for the runs' reports: they are put into a folder, which is made
    where there is none. `report` of a job is its page there; None where it could not be kept, which is noted.
    `status` is SUCCEEDED where every partition was accepted, both tables equal an independent aggregate, and
    exactly what was damaged was found and repaired.
    Raises LocalStackError where the stack does not come up, or a run reaches no end; UsageError where the
    folder cannot be made or written to.
    """
    make_folder(reports)
    rng = random.Random(seed)
    plan = FaultPlan(seed=rng.randrange(2**32) if seed is None else seed, faults=tuple(faults))

    def struck(strike: Strike) -> None:
        note(f"  {told(strike)}")

    options = Options(faults=plan, struck=struck, task_environment=_environment(faults))
    with stack(options, note) as up:
        found = put_days(up.client("s3"), FLIGHTS_BUCKET, days_before(end))
        note(f"{found} days of flights are in S3.")
        jobs = _Demo(up, note, reports, end, rng).run()
        reconciled = _reconciled(up, note, reports, rng, jobs)
        given = up.faults.told()
    status = "SUCCEEDED" if reconciled is not None and is_good(reconciled) else "FAILED"
    return {"status": status, "jobs": jobs, "reconcile": reconciled, "faults": given}


def _reconciled(
    up: Stack, note: Note, reports: Path, rng: random.Random, jobs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The figures of the second half; None where the first one went wrong."""
    if not all(map(_is_whole, jobs.values())):
        note("Not all went well, so nothing is damaged and reconciled.")
        return None
    return Reconciling(up, note, reports, rng).run()


def _is_whole(job: Mapping[str, Any]) -> bool:
    return job["status"] == RunStatus.SUCCEEDED and bool(job["tableEqual"])


def told(strike: Strike) -> str:
    """One strike, for people."""
    whom, what = strike.subject, strike.what
    if strike.fault in DEADLY:
        return f"killed launch {whom.launch} of {whom.run} ({strike.fault})"
    if whom.launch is not None:
        return f"{strike.fault}{what and f', {what},'} struck launch {whom.launch} of {whom.run}"
    return f"{strike.fault}{what and f', {what},'} struck {whom.run or whom.function}"


def _environment(faults: Sequence[Fault]) -> dict[str, str]:
    """Where faults wait for checkpoints, there is one after each batch."""
    waiting = any(getattr(one, "checkpoint", None) for one in faults)
    return {"TRUEUP_CHECKPOINT_SECONDS": "0"} if waiting else {}


def days_before(end: str) -> Iterator[tuple[date, bytes]]:
    """The flights of each day before a date."""
    return takewhile(lambda day: day[0].isoformat() < end, days())


@dataclass(slots=True)
class _Working:
    """A run on its way."""

    job: str
    run: Run
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None


@dataclass(slots=True)
class _Demo:
    """Both jobs on a stack that is up."""

    up: Stack
    note: Note
    reports: Path
    end: str
    rng: random.Random

    def run(self) -> dict[str, dict[str, Any]]:
        """Start both, wait for both, and give the figures of each."""
        both = [self._start(job) for job in PARAMS]
        self._wait_for(both)
        return {one.job: self._figures(one) for one in both}

    def _start(self, job: str) -> _Working:
        request = {
            "job": job,
            "requestId": f"demo-{job}-{self.rng.randrange(2**32):08x}",
            "requester": "demo",
            "from": START,
            "to": self.end,
            "params": PARAMS[job],
            "maxConcurrency": AT_ONCE,
        }
        answer = self.up.invoke("start", request)
        if "runId" not in answer:
            raise TrueupError(f"{job} was not started: {answer.get('errorMessage', answer)}")
        run = self.up.ledger.runs.get(answer["runId"])
        self.note(f"{run.run_id} is started.")
        return _Working(job, run)

    def _wait_for(self, both: list[_Working]) -> None:
        deadline = time.monotonic() + LONGEST
        while waiting := [one for one in both if one.seconds is None]:
            if time.monotonic() > deadline:
                raise LocalStackError(
                    f"{waiting[0].run.run_id} reached no end within {LONGEST:.0f} seconds.",
                    remedy="Start `trueup up --flights`, and look at the executions there.",
                )
            self.up.parts.wait(_POLL_SECONDS)
            for one in waiting:
                self._look_at(one)

    def _look_at(self, one: _Working) -> None:
        run = self.up.ledger.runs.get(one.run.run_id)
        if run.partitions and not one.run.partitions:
            self.note(f"{run.run_id}: {run.partitions} partitions are planned.")
        one.run = run
        if run.status in RUN_ENDS:
            one.seconds = time.monotonic() - one.started
            self.note(f"{run.run_id}: {run.status.value}{f', {run.reason}' if run.reason else ''}")

    def _figures(self, one: _Working) -> dict[str, Any]:
        run, up = one.run, self.up
        total = up.ledger.verdicts.counts(run.run_id).tally()
        accepted = up.ledger.verdicts.counts(run.run_id).tally(PartitionStatus.ACCEPTED).partitions
        bill = bill_of(
            up.client("stepfunctions"), up.deployed.of_type("AWS::StepFunctions::StateMachine"), run.run_id
        )
        records: Mapping[str, int] = {name: getattr(total.records, name) for name in COUNTERS}
        return {
            "runId": run.run_id,
            "status": run.status.value,
            "partitions": {"planned": run.partitions, "accepted": accepted},
            "records": {**records, "replayed": total.replayed},
            "launches": run.launches,
            "tasks": self._tasks(one.job),
            "kills": sum(strike.fault in DEADLY for strike in up.faults.strikes(run.run_id)),
            "executions": bill.executions,
            "transitions": bill.transitions,
            "seconds": round(one.seconds or 0.0, 1),
            "tableEqual": self._is_right(one),
            "report": self._keep_report(run.run_id),
        }

    def _keep_report(self, run_id: str) -> str | None:
        """Put a run's report where it outlives the stack, its JSON beside its page; the page's path."""
        reports = Reports(self.up.ledger, self.up.artifacts)
        report, page = reports.of(run_id), reports.page_of(run_id)
        assert report is not None, "the run has ended"
        assert page is not None, "and so has a page"
        document = report.model_dump_json(indent=1).encode()
        return keep(self.reports, run_id, page, document, self.note)

    def _tasks(self, job: str) -> int:
        """How many tasks ECS started for the job. It has known each for less than an hour."""
        pages = self.up.client("ecs").get_paginator("list_tasks")
        family = f"{NAME}-{job}-write"
        return sum(
            len(page["taskArns"])
            for status in ("RUNNING", "STOPPED")
            for page in pages.paginate(cluster=CLUSTER, family=family, desiredStatus=status)
        )

    def _is_right(self, one: _Working) -> bool:
        """Whether the run succeeded with the right table; says what is wrong where it is not."""
        succeeded = one.run.status is RunStatus.SUCCEEDED
        wrong = self._differences(one.job) if succeeded else self._explained(one.run)
        for line in wrong[:_FEW]:
            self.note(f"  {line}")
        if len(wrong) > _FEW:
            self.note(f"  and {len(wrong) - _FEW} more")
        return succeeded and not wrong

    def _differences(self, job: str) -> list[str]:
        if job == "flights-summary":
            return check_summary(self.up.client("dynamodb"), SUMMARY_TABLE, days_before(self.end))
        return check_rows(self.up.dsn, ROWS_TABLE, days_before(self.end))

    def _explained(self, run: Run) -> list[str]:
        """Which partitions did not make it and why, as the ledger has it."""
        items = self.up.ledger.partitions.all(run.run_id, Phase.APPLY)
        return [_explained(item) for item in items if item.status is not PartitionStatus.ACCEPTED]


def _explained(item: PartitionItem) -> str:
    why = f": {item.error.kind}: {item.error.message}" if item.error else ""
    return f"{item.partition_id} is {item.status.value}{why}"
