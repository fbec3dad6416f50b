"""What a reconciliation's job file may declare, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from trueup.compare import plan
from trueup.model.reconcile import ColumnType, Side
from trueup.model.reconcile_job import Reconciliation

SAMPLES = Path(__file__).parents[2] / "samples" / "reconcile"
TABLE = {"kind": "postgres", "table": "t"}
BASE: dict[str, Any] = {
    "name": "n",
    "kind": "reconcile",
    "truth": TABLE,
    "target": TABLE,
    "key": ["id"],
    "columns": {"id": "integer", "v": "text"},
}


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_samples_are_valid(path: Path) -> None:
    job = Reconciliation.of(yaml.safe_load(path.read_text()))
    assert job == Reconciliation.model_validate_json(job.model_dump_json(by_alias=True))
    assert job.key == tuple(column.name for column in plan(job).compared.key)


def test_a_column_has_a_name_and_a_reading_on_each_side() -> None:
    job = Reconciliation.of(
        {
            **BASE,
            "columns": {"id": "integer", "v": {"type": "decimal", "target": {"name": "w", "times": "0.01"}}},
        }
    )
    column = job.column("v")
    assert (ColumnType.DECIMAL, "v", "w") == (
        column.type,
        column.name_in(Side.TRUTH),
        column.name_in(Side.TARGET),
    )


DERIVED = {
    "kind": "derived",
    "events": [{"name": "seq", "type": "integer"}],
    "order": ["seq"],
    "figures": {"v": {"op": "last", "of": "seq"}},
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"key": ["nr"]}, "key: nr is not among the columns: declare it there"),
    ({"key": ["id", "id"]}, "key: a column is here twice"),
    (
        {"columns": {"id": "integer", "v": {"type": "timestamp", "truth": {"zone": "Mars/Base"}}}},
        "there is no zone 'Mars/Base'",
    ),
    (
        {"columns": {"id": "integer", "v": {"type": "timestamp", "truth": {"zone": "../etc"}}}},
        "there is no zone '../etc'",
    ),
    (
        {"truth": {"kind": "objects", "location": "s3://b/p", "format": "csv", "delimiter": '"'}},
        "String should match pattern",
    ),
    ({"columns": {"id": "float"}}, "key: id is float, which can be no key"),
    ({"columns": {"id": {"type": "text", "normal": "NFC"}}}, "keys are compared as they are"),
    (
        {"columns": {"id": "integer", "v": {"type": "text", "tolerance": "1"}}},
        "v is text and can have no tolerance",
    ),
    ({"columns": {"id": "integer", "v": {"type": "decimal", "tolerance": 0.01}}}, "write it as text"),
    (
        {"columns": {"id": "integer", "v": {"type": "decimal", "tolerance": "-1"}}},
        "greater than or equal to 0",
    ),
    ({"columns": {"id": "integer", "v": {"type": "date", "normal": "NFC"}}}, "only text has a Unicode form"),
    (
        {"columns": {"id": "integer", "v": {"type": "text", "truth": {"zone": "UTC"}}}},
        "only a timestamp has a zone",
    ),
    (
        {"columns": {"id": "integer", "v": {"type": "float", "truth": {"times": "2"}}}},
        "units of exact numbers",
    ),
    (
        {"columns": {"id": "integer", "v": {"type": "decimal", "truth": {"times": "0"}}}},
        "make all values the same",
    ),
    ({"columns": {"id": "integer", "v": "money"}}, "Input should be 'integer'"),
    ({"version": "v"}, "version: v is text: a version says when"),
    ({"version": "w"}, "version: w is not among the columns"),
    ({"target": None}, "target: conservation has one side"),
    ({"invariant": {"kind": "conservation", "sums": ["id"]}}, "target: conservation has one side"),
    ({"target": None, "invariant": {"kind": "conservation", "sums": ["v"]}}, "v is no column of numbers"),
    (
        {"invariant": {"kind": "aggregates", "figures": {"n": {"op": "sum"}}}},
        "every other operation names one",
    ),
    (
        {"invariant": {"kind": "aggregates", "figures": {"n": {"op": "sum", "of": "w"}}}},
        "there is no column w",
    ),
    ({"invariant": {**DERIVED, "order": ["at"]}}, "at is not among the events' columns"),
    ({"invariant": {**DERIVED, "figures": {"w": {"op": "count"}}}}, "the target has no such column"),
    ({"invariant": {**DERIVED, "figures": {"v": {"op": "last", "of": "w"}}}}, "the events have no column w"),
    (
        {"columns": {"id": "integer", "v": "text", "w": "text"}, "invariant": DERIVED},
        "columns.w: no figure gives it",
    ),
    (
        {"target": {"kind": "dynamodb", "table": "t", "begins": {"v": "{day}"}}},
        "target.begins: there is no parameter day",
    ),
    (
        {"truth": {"kind": "objects", "location": "s3://b/p", "format": "csv", "named": {"column": "v"}}},
        "truth.named: v is not in the key",
    ),
    (
        {"truth": {"kind": "dynamodb-export", "location": "s3://b/x"}, "repair": {}},
        "repair: the truth is of an earlier moment",
    ),
    ({"lag": -1}, "greater than or equal to 0"),
    ({"lags": 1}, "Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("change", "what"), WRONG, ids=[what for _, what in WRONG])
def test_what_is_wrong_is_named_with_what_to_do(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Reconciliation.of({**BASE, **change})
    assert what in str(raised.value)
