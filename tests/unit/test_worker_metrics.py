"""Metrics: the names are those that are published, in the form that CloudWatch reads."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trueup import Reject, Throttled
from trueup.metrics import FUNCTION_METRICS, NAMESPACE, TASK_METRICS, EmbeddedMetrics, NoMetrics
from trueup.testing import LocalRun, ManualClock
from trueup.worker import Worker

from .worker_cases import Numbers, job_of, last, run_of, step_until

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


class Kept:
    """Metrics that are kept."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, float]] = []

    def emit(self, values: Mapping[str, float], **dimensions: str) -> None:
        """Keep them."""
        self.lines.append(dict(values))

    def sums(self) -> dict[str, float]:
        """Each metric, summed up."""
        total: dict[str, float] = {}
        for line in self.lines:
            for name, value in line.items():
                total[name] = total.get(name, 0) + value
        return total


def measured(run: LocalRun) -> Kept:
    """What the first task of a run measures until it leaves."""
    step_until(run, "registered")
    kept = Kept()
    last(run).worker._tools.metrics = kept
    for _ in last(run).loop:
        pass
    return kept


def busy() -> LocalRun:
    """A run in which everything that is measured happens."""
    failures = [Throttled()]

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if failures:
            raise failures.pop()
        return self.sink.put(rows, ctx)

    job = job_of(write=write, transform=lambda self, n: Reject("five") if n == 5 else n)
    return run_of(job, sections={"errors": {"rejects": 1}})


def test_a_task_measures_what_it_does() -> None:
    sums = measured(busy()).sums()
    counted = {name: sums[name] for name in sums if not name.endswith("Seconds")}
    expected = {
        "RecordsRead": 12,
        "RecordsWritten": 11,
        "RecordsRejected": 1,
        "Throttled": 1,
        "PartitionsReported": 1,
    }
    assert expected == counted


def test_every_metric_is_emitted_and_none_besides() -> None:
    assert set(TASK_METRICS) == set(measured(busy()).sums())


def test_after_a_take_over_only_new_records_are_measured() -> None:
    run = run_of(job_of())
    step_until(run, "advanced", 3)
    run.kill()
    assert 3 == measured(run).sums()["RecordsRead"]


def test_a_line_has_the_embedded_metric_format() -> None:
    stream, clock = io.StringIO(), ManualClock()
    EmbeddedMetrics({"job": "flights", "phase": "apply"}, clock, stream).emit(
        {"RecordsRead": 3, "BatchSeconds": 0.5}
    )
    expected = {
        "_aws": {
            "Timestamp": int(clock.now().timestamp() * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": "trueup",
                    "Dimensions": [["job", "phase"]],
                    "Metrics": [
                        {"Name": "RecordsRead", "Unit": "Count"},
                        {"Name": "BatchSeconds", "Unit": "Seconds"},
                    ],
                }
            ],
        },
        "job": "flights",
        "phase": "apply",
        "RecordsRead": 3,
        "BatchSeconds": 0.5,
    }
    assert expected == json.loads(stream.getvalue())
    assert 1 == stream.getvalue().count("\n")


def test_a_metric_that_is_not_published_is_refused() -> None:
    with pytest.raises(KeyError, match="Surprise"):
        EmbeddedMetrics({}, ManualClock(), io.StringIO()).emit({"Surprise": 1})


def test_the_page_lists_every_metric_of_tasks_with_its_unit_and_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]+?) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(name, unit, what) for name, (unit, what) in TASK_METRICS.items()] == rows


def test_the_page_lists_every_metric_of_functions_with_its_unit_dimensions_and_meaning() -> None:
    row = r"^\| `(\w+)` \| (\w+) \| ([^|]+?) \| ([^|]+?) \|$"
    rows = re.findall(row, DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [
        (name, unit, dimensions.replace("`", ""), what)
        for name, unit, dimensions, what in rows
        if name in FUNCTION_METRICS or unit in ("Count", "Seconds")
    ]
    assert [(name, *told) for name, told in FUNCTION_METRICS.items()] == listed


def test_the_page_names_the_namespace() -> None:
    assert f"`{NAMESPACE}`" in DOCS.read_text(encoding="utf-8")


def test_a_worker_measures_nothing_unless_asked() -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    worker: Worker = last(run).worker
    assert isinstance(worker._tools.metrics, NoMetrics)
