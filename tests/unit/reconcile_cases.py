"""Reconciliations in one process that tests share: two sides, what is wrong with them, what is told."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from trueup.artifacts.findings import lines_in, listed
from trueup.artifacts.store import MemoryStore
from trueup.jobs import Reconcile
from trueup.ledger.memory import MemoryTable
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.states import Phase
from trueup.testing import LocalRun
from trueup.testing.clocks import ManualClock
from trueup.worker.ages import instant

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
        line
        for one in run.comparison.lists
        if one.phase is phase
        for there in listed(run.artifacts, one)
        for line in lines_in(run.artifacts, phase, there)
    ]


def keys(found: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The kind of each key; each is told once."""
    assert len(found) == len({tuple(one["key"]) for one in found})
    return {int(one["key"][0]): one["kind"] for one in found}


def states(report: ReconcileReport) -> dict[tuple[str, str], int]:
    return {(one.state, one.kind): one.findings for one in report.states}


DAY = 86_400


class Days:
    """One reconciliation a day, over the same stores. `began` is when each was asked for."""

    def __init__(self) -> None:
        self.table, self.store, self.clock = MemoryTable(), MemoryStore(), ManualClock()
        self.began: list[str] = []
        self._seeds = itertools.count(1)

    def make(self, both: Rows, of: Reconciliation | None = None, **more: Any) -> LocalRun:
        if self.began:
            self.clock.sleep(DAY)
        self.began.append(instant(self.clock.now()))
        stores = {"table": self.table, "store": self.store, "clock": self.clock}
        return LocalRun(Reconcile, of or job(), rows=both, seed=next(self._seeds), **stores, **more)

    def run(self, both: Rows, of: Reconciliation | None = None, **more: Any) -> LocalRun:
        made = self.make(both, of, **more)
        made.run()
        return made


def first_seen(run: LocalRun) -> dict[int, str]:
    """Of each confirmed key, by the lines."""
    told = [one for one in lines(run, Phase.CONFIRM) if one.get("state") == "CONFIRMED"]
    assert len(told) == len({one["key"][0] for one in told})
    return {int(one["key"][0]): one["firstSeen"] for one in told}


def wrong(*keys: int, value: str = "other") -> Rows:
    """Two sides that differ in these keys."""
    both = rows()
    both["target"] = [{**row, "v": value} if row["id"] in keys else row for row in both["target"]]
    return both
