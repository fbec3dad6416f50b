"""The sample of cases: events against their status in PostgreSQL, and that against its copy in DynamoDB.

`CASES=300000` compares as many as the sample has by default.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from trueup.jobfile import load
from trueup.jobs import Reconcile
from trueup.local.cases import copy_to_dynamodb, events, make_tables
from trueup.local.postgres import postgres
from trueup.local.stores import create_table
from trueup.testing import LocalRun

SAMPLES = Path(__file__).parents[2] / "samples" / "cases"
NUMBER = int(os.environ.get("CASES", "2000"))
SEED = 20_260_706


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """PostgreSQL with the cases."""
    with postgres() as dsn:
        make_tables(dsn, SEED, NUMBER)
        yield dsn


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
    with psycopg.connect(dsn) as connection:
        connection.execute("update case_status set paid = paid - 0.0001 where case_id < 'case-0000010'")
        connection.execute("delete from case_status where case_id = 'case-x'")
    wrong = Counter({"MISMATCHED": 10, "MISSING": 5, "EXTRA": 1})
    assert {("CONFIRMED", kind): number for kind, number in wrong.items()} == states(damaged)
    assert [("paid", "other value", 10)] == [
        (one.name, one.reason, one.findings) for one in damaged.comparison.fields
    ]


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
    dynamodb.delete_item(TableName=table, Key={"case_id": {"S": "case-0000007"}})
    dynamodb.update_item(
        TableName=table,
        Key={"case_id": {"S": "case-0000008"}},
        UpdateExpression="SET paid = :p",
        ExpressionAttributeValues={":p": {"N": "0.5"}},
    )
    assert {("CONFIRMED", "MISSING"): 1, ("CONFIRMED", "MISMATCHED"): 1} == states(compared())
