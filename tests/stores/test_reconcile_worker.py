"""Reconciliations of real sources through the worker: ranges, resumed scans, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from trueup.artifacts.findings import lines_in, listed
from trueup.jobs import Reconcile
from trueup.local.postgres import postgres
from trueup.local.stores import BUCKET
from trueup.model.ledger import Run
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import Phase, RunStatus
from trueup.testing import LocalRun

from .plain_values import unique

ROWS = 1_000
WRONG = {5: "MISMATCHED", 250: "MISSING", 251: "MISSING", 999: "MISMATCHED", 5_000: "EXTRA"}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.fixture
def sides(dsn: str) -> dict[str, str]:
    """Two tables of 1,000 rows, of which some are wrong."""
    names = {side: f"{side}_{unique()}" for side in ("truth", "target")}
    with psycopg.connect(dsn) as db:
        for name in names.values():
            db.execute(f"create table {name} (id bigint primary key, v numeric, at timestamptz)")
            db.execute(
                f"insert into {name} select n, n * 1.10, '2020-01-01' from generate_series(0, 999) n"  # noqa: S608
            )
        target = names["target"]
        db.execute(f"update {target} set v = v + 1 where id in (5, 999)")  # noqa: S608
        db.execute(f"delete from {target} where id in (250, 251)")  # noqa: S608
        db.execute(f"insert into {target} values (5000, 1, '2020-01-01')")  # noqa: S608
    return names


def job(sides: dict[str, str], **changes: Any) -> Reconciliation:
    return Reconciliation.of(
        {
            "name": "cases",
            "kind": "reconcile",
            "truth": {"kind": "postgres", "table": sides["truth"]},
            "target": {"kind": "postgres", "table": sides["target"]},
            "key": ["id"],
            "columns": {"id": "integer", "v": "decimal", "at": "timestamp"},
            "version": "at",
            "lag": 30,
            **changes,
        }
    )


def run_of(of: Reconciliation, dsn: str) -> LocalRun:
    return LocalRun(Reconcile, of, secrets={"dsn": dsn})


def found(run: LocalRun, phase: Phase) -> dict[int, str]:
    """The kind of each key, each told once."""
    lines = [
        line
        for one in run.comparison.lists
        if one.phase is phase
        for there in listed(run.artifacts, one)
        for line in lines_in(run.artifacts, phase, there)
    ]
    assert len(lines) == len({tuple(line["key"]) for line in lines})
    return {int(line["key"][0]): line["kind"] for line in lines}


def failed(run: LocalRun) -> tuple[Run, str]:
    """The run as it ended, and why nothing could be compared."""
    ended = run.run()
    assert ("ERROR", RunStatus.FAILED) == (run.comparison.verdict, ended.status)
    return ended, run.comparison.reasons[0]


@pytest.mark.parametrize(
    ("partitions", "number"),
    [
        ({"by": "splits"}, 1),
        ({"by": "splits", "splits": [250, 251, 999]}, 4),
        ({"by": "quantiles", "count": 4}, 4),
    ],
)
def test_whatever_the_ranges_each_difference_is_told_once_and_every_row_is_proved(
    dsn: str, sides: dict[str, str], partitions: dict[str, Any], number: int
) -> None:
    run = run_of(job(sides, partitions=partitions), dsn)
    run.run()
    assert number == run.planned
    assert WRONG == found(run, Phase.COMPARE) == found(run, Phase.CONFIRM)
    report = run.comparison
    assert "DRIFT" == report.verdict
    assert [(999, 999), (1_000, 1_000)] == sorted((one.rows, one.proved) for one in report.coverage.values())


def test_quantiles_are_those_of_both_sides(dsn: str, sides: dict[str, str]) -> None:
    run = run_of(job(sides, partitions={"by": "quantiles", "count": 4}), dsn)
    run.plan()
    ids = [part.id for task in [run.artifacts.partitions(run.plan().partitions)] for part in task]
    assert "key=..249" in ids or "key=..250" in ids
    assert 4 == len(ids)


def test_a_scan_that_is_resumed_goes_on_from_its_key(
    dsn: str, sides: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 1)
    whole = run_of(job(sides), dsn)
    points = 0
    while whole.step() is not None:
        points += 1
    for point in range(1, points, 3):
        run, number = run_of(job(sides), dsn), 0
        while run.step() is not None:
            number += 1
            if number == point:
                run.kill()
        assert WRONG == found(run, Phase.COMPARE) == found(run, Phase.CONFIRM), point
        assert whole.comparison.counts == run.comparison.counts


def test_a_column_that_a_side_lacks_is_an_error_that_names_it(dsn: str, sides: dict[str, str]) -> None:
    columns = {"id": "integer", "v": "decimal", "at": "timestamp", "city": "text"}
    _, why = failed(run_of(job(sides, columns=columns), dsn))
    assert f"""Table "{sides["truth"]}", the truth, has no column city.""" in why


def test_a_type_that_cannot_be_compared_is_an_error_that_names_it(dsn: str, sides: dict[str, str]) -> None:
    _, why = failed(run_of(job(sides, columns={"id": "integer", "v": "boolean", "at": "timestamp"}), dsn))
    assert f"""Column v of table "{sides["truth"]}", the truth, is numeric""" in why


def test_a_database_that_cannot_be_reached_is_an_error_that_names_the_table(sides: dict[str, str]) -> None:
    _, why = failed(run_of(job(sides), "host=127.0.0.1 port=1 dbname=nowhere"))
    assert f"Table {sides['truth']} in PostgreSQL, the truth, cannot be read" in why


def test_a_secret_that_is_not_there_is_an_error_that_names_it(sides: dict[str, str]) -> None:
    run = LocalRun(Reconcile, job(sides))
    run.run()
    assert "ERROR" == run.comparison.verdict
    assert "Secret 'dsn' is not there" in run.comparison.reasons[0]


def test_a_truncated_object_is_an_error_that_names_it(
    dsn: str, sides: dict[str, str], moto_clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.sources.opening._client", moto_clients.__getitem__)
    prefix = unique()
    moto_clients["s3"].put_object(Bucket=BUCKET, Key=f"{prefix}/a.jsonl.gz", Body=b"\x1f\x8b\x08\x00")
    target = {"kind": "objects", "location": f"s3://{BUCKET}/{prefix}/", "format": "jsonl"}
    _, why = failed(run_of(job(sides, target=target), dsn))
    assert f"{prefix}/a.jsonl.gz" in why


def test_an_export_that_is_not_there_is_an_error_that_names_it(
    dsn: str, sides: dict[str, str], moto_clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.sources.opening._client", moto_clients.__getitem__)
    target = {"kind": "dynamodb-export", "location": f"s3://{BUCKET}/nothing/AWSDynamoDB/01"}
    _, why = failed(run_of(job(sides, target=target), dsn))
    assert "nothing/AWSDynamoDB/01/manifest-summary.json cannot be read" in why
