"""The demo: a year of real flights backfilled twice, with tasks killed, and every record counted."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

import psycopg

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store
from trueup.errors import LocalStackError
from trueup.jobfile import load
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable
from trueup.local.aws import REGION, client, ministack
from trueup.local.backfilling import Backfilled, Backfilling, Kills
from trueup.local.expected import check_rows, check_summary
from trueup.local.fleet import Fleet
from trueup.local.flights import days
from trueup.local.metadata import metadata_endpoint
from trueup.local.postgres import postgres
from trueup.local.stores import BUCKET, TABLE, create_ledger_table, create_table, put_days
from trueup.model.counters import COUNTERS
from trueup.model.request import Request
from trueup.model.states import PartitionStatus, RunStatus
from trueup.sources.postgres import create_fence_table

JOBS = ("flights-summary", "flights-rows")
START, END = "2013-01-01", "2014-01-01"
SUMMARY_TABLE = "flights-summary"
ROWS_TABLE = "flights"

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stack:
    """What the demo runs on: stores that are up, with the flights in S3."""

    endpoint: str
    dsn: str
    dynamodb: Any
    s3: Any
    fleet: Fleet
    logs: Path


def run_demo(*, seed: int | None, note: Note, end: str = END, kills: Kills | None = None) -> dict[str, Any]:
    """Start the stack, run both jobs, compare both tables, and give the figures as a JSON document.

    The window begins with 2013 and ends before `end`.
    `status` is SUCCEEDED where every partition was accepted and both tables equal an independent aggregate.
    """
    rng = random.Random(seed)
    with stack(note, end) as up:
        ledger = Ledger(DynamoTable(up.dynamodb, TABLE))
        artifacts = Artifacts(S3Store(up.s3, BUCKET))
        backfilling = Backfilling(ledger, artifacts, up.fleet, rng, kills or Kills(), note)
        jobs = {name: _job(up, backfilling, name, rng, note, end) for name in JOBS}
    good = all(job["status"] == RunStatus.SUCCEEDED and job["tableEqual"] for job in jobs.values())
    return {"status": "SUCCEEDED" if good else "FAILED", "jobs": jobs}


@contextmanager
def stack(note: Note, end: str = END) -> Iterator[Stack]:
    """MiniStack, PostgreSQL and a fleet of processes, with the flights in S3; all of it gone at the end."""
    with ExitStack() as ups:
        note("Starting MiniStack (DynamoDB, S3) and PostgreSQL …")
        endpoint = ups.enter_context(ministack(["dynamodb", "s3"]))
        dsn = ups.enter_context(postgres())
        logs = Path(ups.enter_context(tempfile.TemporaryDirectory(prefix="trueup-demo-")))
        dynamodb, s3 = client("dynamodb", endpoint), client("s3", endpoint)
        create_ledger_table(dynamodb)
        create_table(dynamodb, SUMMARY_TABLE, ["route", "date"])
        create_rows_table(dsn)
        s3.create_bucket(Bucket=BUCKET)
        note(f"{put_days(s3, BUCKET, days_before(end))} days of flights are in S3.")
        metadata = ups.enter_context(metadata_endpoint())
        fleet = ups.enter_context(Fleet(metadata, _environment(endpoint), logs))
        yield Stack(endpoint, dsn, dynamodb, s3, fleet, logs)


def days_before(end: str) -> Iterator[tuple[date, bytes]]:
    """The flights of each day before a date."""
    return takewhile(lambda day: day[0].isoformat() < end, days())


def create_rows_table(dsn: str) -> None:
    """The table that flights-rows writes, and the fences beside it."""
    statements = (containers() / "flights-rows" / "flights.sql").read_text()
    with psycopg.connect(dsn) as connection:
        connection.execute(statements.encode())
    create_fence_table(dsn)


def _environment(endpoint: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "TRUEUP_TABLE": TABLE,
        "TRUEUP_BUCKET": BUCKET,
    }


def _job(
    up: Stack, backfilling: Backfilling, name: str, rng: random.Random, note: Note, end: str
) -> dict[str, Any]:
    folder = containers() / name
    job = load(folder / "job.yaml")
    params = {"bucket": BUCKET} | ({"table": SUMMARY_TABLE} if name == "flights-summary" else {})
    request = Request(
        job=name,
        request_id=f"demo-{name}-{rng.randrange(2**32):08x}",
        requester="demo",
        start=START,
        end=end,
        params=params,
    )
    done = backfilling.run(job, folder, request, {"dsn": up.dsn} if job.secrets.write else {})
    wrong = _differences(up, name, end)
    for line in wrong[:5]:
        note(f"  {line}")
    return _figures(done) | {"tableEqual": not wrong}


def _differences(up: Stack, name: str, end: str) -> list[str]:
    if name == "flights-summary":
        return check_summary(up.dynamodb, SUMMARY_TABLE, days_before(end))
    return check_rows(up.dsn, ROWS_TABLE, days_before(end))


def _figures(done: Backfilled) -> dict[str, Any]:
    total = done.counts.tally()
    accepted = done.counts.tally(PartitionStatus.ACCEPTED).partitions
    records: Mapping[str, int] = {name: getattr(total.records, name) for name in COUNTERS}
    return {
        "runId": done.run.run_id,
        "status": done.run.status.value,
        "partitions": {"planned": done.run.partitions, "accepted": accepted},
        "records": {**records, "replayed": total.replayed},
        "launches": done.launches,
        "kills": done.kills,
        "seconds": round(done.seconds, 1),
    }


def containers() -> Path:
    """The folder of the sample jobs: of the current folder, or of the source tree. Raises LocalStackError."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "containers" / "flights-rows" / "job.yaml").is_file():
            return root / "containers"
    raise LocalStackError(
        "The sample jobs are not here: there is no containers/flights-rows/job.yaml.",
        remedy="Run the demo in a clone of the repository.",
    )
