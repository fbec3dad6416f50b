"""Reconciliations in one process that tests share: two sides, what is wrong with them, what is told."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from trueup.artifacts.store import place
from trueup.jobs import Reconcile
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.states import Phase
from trueup.testing import LocalRun

Row = dict[str, Any]
Rows = dict[str, list[Row]]
BASE: dict[str, Any] = {
    "name": "numbers",
    "kind": "reconcile",
    "truth": {"kind": "postgres", "table": "truth"},
    "target": {"kind": "dynamodb", "table": "target"},
    "key": ["id"],
    "columns": {"id": "integer", "v": "text"},
    "lag": 60,
    "partitions": {"by": "splits", "splits": [100, 200]},
}


def job(**changes: Any) -> Reconciliation:
    return Reconciliation.of({**BASE, **changes})


def rows(count: int = 300) -> Rows:
    """Two sides that are the same."""
    return {
        side: [{"id": number, "v": f"v{number}"} for number in range(count)] for side in ("truth", "target")
    }


def damaged() -> tuple[Rows, dict[int, str]]:
    """Two sides, and what is wrong with which key."""
    both = rows()
    wrong: dict[int, str] = {}
    rng = random.Random(5)
    for key in rng.sample(range(300), 40):
        wrong[key] = rng.choice(["MISSING", "MISMATCHED"])
    target = [row for row in both["target"] if wrong.get(row["id"]) != "MISSING"]
    both["target"] = [{**row, "v": "other"} if row["id"] in wrong else row for row in target]
    for key in (-5, 150_000, 300):
        both["target"].append({"id": key, "v": "extra"})
        wrong[key] = "EXTRA"
    return both, wrong


def run_of(both: Mapping[str, Sequence[Row]], of: Reconciliation | None = None, **more: Any) -> LocalRun:
    return LocalRun(Reconcile, of or job(), rows=both, **more)


def lines(run: LocalRun, phase: Phase) -> list[dict[str, Any]]:
    """Every finding of a phase, as the report's objects have them."""
    return [
        json.loads(line)
        for one in run.comparison.objects
        if one.phase is phase
        for line in run.artifacts.store.get(place(one.location)[1]).splitlines()
    ]


def keys(found: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The kind of each key; each is told once."""
    assert len(found) == len({tuple(one["key"]) for one in found})
    return {int(one["key"][0]): one["kind"] for one in found}


def states(report: ReconcileReport) -> dict[tuple[str, str], int]:
    return {(one.state, one.kind): one.findings for one in report.states}
