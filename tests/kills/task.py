"""What a forked task does: the worker's loop over a real job, with a signal to itself at one exact point.

The points: `begun` is passed before anything else; `registered`, `taken`, `written`, `advanced`, `reported`
and `stored` are the loop's own steps; `write` is passed right before the author's write is called, `sending`
right before a transaction of rows goes out to DynamoDB, `rejects` when rejects are stored and the checkpoint
that names them is not, `findings` the like for what a comparison found, `changed` after each
change of a repair.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

import boto3
import psycopg  # noqa: F401  the job needs it, and a fork must not pay for the import
from botocore.config import Config
from jobs import class_of

from trueup.artifacts import Artifacts
from trueup.artifacts.s3 import S3Store
from trueup.compare import Applied, Change, merge
from trueup.ledger import Ledger
from trueup.ledger.dynamo import DynamoTable
from trueup.local.stores import BUCKET, TABLE
from trueup.model.plan import CodeIdentity, TaskOrder
from trueup.sources.postgres_rows import PostgresRows
from trueup.worker import Identity, Tools, Worker, confirming


class Points:
    """Counts the points that the task passes; at the chosen one the task sends itself the signal."""

    def __init__(self, stop: dict[str, Any] | None) -> None:
        self._stop = stop or {"point": None, "nth": 0}
        self._passed: Counter[str] = Counter()

    def passed(self, name: str) -> None:
        """Here the task may die, or freeze until somebody wakes it."""
        self._passed[name] += 1
        if (name, self._passed[name]) == (self._stop["point"], self._stop["nth"]):
            os.kill(os.getpid(), signal.Signals[self._stop["signal"]])


class Rejecting(S3Store):
    """Tells when a part of rejects is stored."""

    points: Points

    def put(self, key: str, data: bytes) -> None:
        """Store, then pass the point."""
        super().put(key, data)
        if "/rejects/" in key and "/part-" in key:
            self.points.passed("rejects")

    def put_once(self, key: str, data: bytes) -> None:
        """Store, then pass the point."""
        super().put_once(key, data)
        if "/findings/" in key and "/findings-" in key:
            self.points.passed("findings")


CLIENTS: dict[str, Any] = {}


def warm_up() -> None:
    """Import the jobs, and make the clients that every child uses.

    Each is used once and closed: what it has worked out goes to the children, its connections do not.
    """
    make = boto3.client
    # Neither is what is tested here, and both cost time in each of many calls.
    quick = Config(parameter_validation=False, request_checksum_calculation="when_required")
    for name, service in (
        ("ledger", "dynamodb"),
        ("dynamodb", "dynamodb"),
        ("artifacts", "s3"),
        ("s3", "s3"),
    ):
        CLIENTS[name] = make(service, config=quick)
    for client in CLIENTS.values():
        client.list_tables() if hasattr(client, "list_tables") else client.list_buckets()
        client.close()
    boto3.client = CLIENTS.__getitem__
    for job in ("flights-rows", "flights-summary"):
        class_of(job, (), Points(None))


def work(spec: dict[str, Any]) -> int:
    """Work the slice as ordered, and give the exit code."""
    points = Points(spec["stop"])
    points.passed("begun")
    # Only the job's own transactions pass here: the ledger has a client of its own.
    CLIENTS["dynamodb"].meta.events.register(
        "before-send.dynamodb.TransactWriteItems", lambda **_: points.passed("sending")
    )
    if spec["job"] == "reconcile":
        _in_small_steps()
        _pass_changes(points)
    job = class_of(spec["job"], spec["traits"], points)
    worker = Worker(job, TaskOrder.model_validate(spec["order"]), _tools(spec, points))
    for step in worker.steps():
        points.passed(step.name)
    return worker.exit


def _in_small_steps() -> None:
    """Several checkpoints of a few findings: what the comparer makes of thousands."""
    merge.FINDINGS_A_STEP, confirming.AT_ONCE = 5, 4


def _pass_changes(points: Points) -> None:
    """A point after each row that a repair changed or left, before its outcome is stored with the others."""
    whole = PostgresRows.apply

    def apply(rows: PostgresRows, change: Change) -> Applied:
        applied = whole(rows, change)
        points.passed("changed")
        return applied

    PostgresRows.apply = apply  # type: ignore[method-assign]


def _tools(spec: dict[str, Any], points: Points) -> Tools:
    store = Rejecting(CLIENTS["artifacts"], BUCKET)
    store.points = points
    return Tools(
        ledger=Ledger(DynamoTable(CLIENTS["ledger"], TABLE)),
        artifacts=Artifacts(store),
        identity=Identity(spec["task"], CodeIdentity.model_validate(spec["code"])),
        secret=spec["secrets"].__getitem__,
        checkpoint_seconds=spec["checkpointSeconds"],
    )
