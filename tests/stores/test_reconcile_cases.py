"""The sample of cases: events against their status in PostgreSQL, and that against its copy in DynamoDB.

`CASES=300000` compares and repairs as many as the sample has by default.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from trueup.jobfile import load
from trueup.jobs import Reconcile
from trueup.local.cases import copy_to_dynamodb, events, make_tables
from trueup.local.postgres import postgres
from trueup.local.stores import create_table
from trueup.model.states import Phase, RunStatus
from trueup.testing import LocalRun

from .plain_values import unique

SAMPLES = Path(__file__).parents[2] / "samples" / "cases"
NUMBER = int(os.environ.get("CASES", "2000"))
SEED = 20_260_706


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """PostgreSQL."""
    with postgres() as dsn:
        yield dsn


@pytest.fixture
def dsn(server: str) -> str:
    """PostgreSQL with the cases, as they were made."""
    with psycopg.connect(server) as connection:
        connection.execute("drop table if exists case_events, case_status")
    make_tables(server, SEED, NUMBER)
    return server


@pytest.fixture
def portal(dsn: str, moto_clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Portal:
    """The copy in DynamoDB, in a table of its own."""
    monkeypatch.setattr("trueup.sources.opening._client", moto_clients.__getitem__)
    dynamodb, name = moto_clients["dynamodb"], f"cases-{unique()}"
    create_table(dynamodb, name, ["case_id"])
    copy_to_dynamodb(dsn, dynamodb, name)
    return Portal(dynamodb, name)


class Portal:
    """The table that the portal reads."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name

    def items(self) -> dict[str, dict[str, Any]]:
        """All items by their case."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.name)
        return {item["case_id"]["S"]: item for page in pages for item in page["Items"]}

    def seen(self) -> dict[str, dict[str, Any]]:
        """The same, numbers as what they are: 1.10 is 1.1."""
        return {
            case_id: {name: _number(value) for name, value in item.items()}
            for case_id, item in self.items().items()
        }

    def put(self, **item: Any) -> None:
        """Put an item over whatever is there."""
        self.client.put_item(TableName=self.name, Item=item)

    def delete(self, case_id: str) -> None:
        """Take an item away."""
        self.client.delete_item(TableName=self.name, Key={"case_id": {"S": case_id}})


def _number(value: dict[str, str]) -> Any:
    return Decimal(value["N"]) if "N" in value else value


def status_rows(dsn: str) -> dict[str, tuple[Any, ...]]:
    """What the service keeps of each case, but for when it last did."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select case_id, status, paid, events from case_status").fetchall()
    return {row[0]: row[1:] for row in rows}


def outcomes(run: LocalRun) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in run.repaired.outcomes:
        found[one.outcome] += one.items
    return dict(found)


def undone(run: LocalRun, **more: Any) -> LocalRun:
    undo = LocalRun(Reconcile, run.job, approver="eve", undoes=run, seed=1, **more)
    assert RunStatus.SUCCEEDED is undo.run().status
    return undo


def states(run: LocalRun) -> dict[tuple[str, str], int]:
    return {(one.state, one.kind): one.findings for one in run.comparison.states}


def test_the_same_seed_makes_the_same_cases() -> None:
    assert list(events(SEED, 50)) == list(events(SEED, 50))
    assert list(events(SEED, 50)) != list(events(SEED + 1, 50))
    assert 50 == len({one.case_id for one in events(SEED, 50)})


def test_the_status_is_what_the_events_say_until_it_is_damaged(dsn: str) -> None:
    job = load(SAMPLES / "from-events.yaml")
    clean = LocalRun(Reconcile, job, secrets={"dsn": dsn})
    clean.run()
    assert ("CLEAN", NUMBER, 4) == (
        clean.comparison.verdict,
        clean.comparison.counts["matched"],
        clean.comparison.partitions,
    )
    rows = sum(1 for _ in events(SEED, NUMBER))
    assert {(rows, rows), (NUMBER, NUMBER)} == {
        (one.rows, one.proved) for one in clean.comparison.coverage.values()
    }
    with psycopg.connect(dsn) as connection:
        connection.execute("update case_status set paid = paid + 0.0001 where case_id < 'case-0000010'")
        connection.execute("delete from case_status where case_id between 'case-0000500' and 'case-0000504'")
        connection.execute("insert into case_status values ('case-x', 'open', 0, 1, now())")
    damaged = LocalRun(Reconcile, job, secrets={"dsn": dsn})
    damaged.run()
    wrong = Counter({"MISMATCHED": 10, "MISSING": 5, "EXTRA": 1})
    assert {("CONFIRMED", kind): number for kind, number in wrong.items()} == states(damaged)
    assert [("paid", "other value", 10)] == [
        (one.name, one.reason, one.findings) for one in damaged.comparison.fields
    ]


def test_what_the_events_say_is_put_right_and_taken_back(dsn: str) -> None:
    job, right = load(SAMPLES / "from-events.yaml"), status_rows(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("update case_status set status = 'lost' where case_id < 'case-0000020'")
        connection.execute("delete from case_status where case_id between 'case-0000700' and 'case-0000706'")
        connection.execute("insert into case_status values ('case-x', 'open', 0, 1)")
    wrong = status_rows(dsn)
    run = LocalRun(Reconcile, job, secrets={"dsn": dsn}, approver="eve")
    assert RunStatus.SUCCEEDED is run.run().status
    confirmed = {("CONFIRMED", "MISMATCHED"): 20, ("CONFIRMED", "MISSING"): 7, ("CONFIRMED", "EXTRA"): 1}
    assert confirmed == states(run)
    assert ("REPAIRED", {"APPLIED": 28}) == (run.repaired.verdict, outcomes(run))
    assert right == status_rows(dsn)

    undo = undone(run, secrets={"dsn": dsn})
    assert ("UNDONE", {"APPLIED": 28}) == (undo.repaired.verdict, outcomes(undo))
    assert wrong == status_rows(dsn) != right

    again = LocalRun(Reconcile, job, secrets={"dsn": dsn}, approver="eve", seed=2)
    again.run()
    assert ("REPAIRED", right) == (again.repaired.verdict, status_rows(dsn))


def test_the_copy_in_dynamodb_is_put_right_and_taken_back(dsn: str, portal: Portal) -> None:
    right, before = portal.items(), portal.seen()
    for case_id in ("case-0000007", "case-0001999"):
        portal.delete(case_id)
    for number in range(10, 22):
        item = right[f"case-{number:07d}"]
        portal.put(**{**item, "paid": {"N": "0.5"}, "updatedAt": {"N": "1"}})
    portal.put(**{**right["case-0000000"], "case_id": {"S": "case-x"}})
    wrong = portal.seen()
    of, secrets = {"params": {"table": portal.name}}, {"dsn": dsn}
    run = LocalRun(Reconcile, load(SAMPLES / "in-dynamodb.yaml"), secrets=secrets, approver="eve", **of)
    assert RunStatus.SUCCEEDED is run.run().status
    confirmed = {("CONFIRMED", "MISMATCHED"): 12, ("CONFIRMED", "MISSING"): 2, ("CONFIRMED", "EXTRA"): 1}
    assert confirmed == states(run)
    assert ("REPAIRED", {"APPLIED": 15}) == (run.repaired.verdict, outcomes(run))
    assert before == portal.seen()

    undo = undone(run, secrets=secrets, **of)
    assert ("UNDONE", {"APPLIED": 15}) == (undo.repaired.verdict, outcomes(undo))
    assert wrong == portal.seen() != before


def test_what_somebody_mended_meanwhile_is_left_alone_in_dynamodb(dsn: str, portal: Portal) -> None:
    right, before = portal.items(), portal.seen()
    for number in (30, 31):
        portal.put(**{**right[f"case-{number:07d}"], "paid": {"N": "0.5"}})
    job = load(SAMPLES / "in-dynamodb.yaml")
    run = LocalRun(Reconcile, job, params={"table": portal.name}, secrets={"dsn": dsn}, approver="eve")
    while run.phase is not Phase.REPAIR:
        assert run.step() is not None
    mended = {**right["case-0000030"], "paid": {"N": "0.25"}}
    portal.put(**mended)
    run.run()
    assert ("UNREPAIRED", {"APPLIED": 1, "STALE_TARGET": 1}) == (run.repaired.verdict, outcomes(run))
    assert before == {**portal.seen(), "case-0000030": before["case-0000030"]}
    assert mended == portal.items()["case-0000030"]


def test_the_copy_is_what_the_status_says_until_it_is_damaged(
    dsn: str, moto_clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.sources.opening._client", moto_clients.__getitem__)
    dynamodb, table = moto_clients["dynamodb"], f"cases-{os.getpid()}"
    create_table(dynamodb, table, ["case_id"])
    copied = copy_to_dynamodb(dsn, dynamodb, table)
    job = load(SAMPLES / "in-dynamodb.yaml")

    def compared() -> LocalRun:
        run = LocalRun(Reconcile, job, params={"table": table}, secrets={"dsn": dsn})
        run.run()
        return run

    clean = compared()
    assert ("CLEAN", copied) == (clean.comparison.verdict, clean.comparison.counts["matched"])
    job = job.model_copy(update={"target": job.target.model_copy(update={"count": True})})
    counted = compared().comparison.coverage
    assert {0, copied} == {one.proved for one in clean.comparison.coverage.values()}
    assert [(copied, copied)] * 2 == [(one.rows, one.proved) for one in counted.values()]
    dynamodb.delete_item(TableName=table, Key={"case_id": {"S": "case-0000007"}})
    dynamodb.update_item(
        TableName=table,
        Key={"case_id": {"S": "case-0000008"}},
        UpdateExpression="SET paid = :p",
        ExpressionAttributeValues={":p": {"N": "0.5"}},
    )
    assert {("CONFIRMED", "MISSING"): 1, ("CONFIRMED", "MISMATCHED"): 1} == states(compared())
