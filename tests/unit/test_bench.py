"""What the benchmarks write, with sizes too small to say anything about speed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import (
    callbacks,
    contract,
    fan_out,
    imports,
    ledger,
    loops,
    packing,
    planning,
    reconcile,
    status,
    throughput,
)
from bench.__main__ import BENCHMARKS, main
from bench.figures import Figure, middle, peak_bytes
from moto import mock_aws

from trueup.local.aws import client

FAST = Figure("fast", 3, "s", "a slow one", 5.5, "at most 4 s", True)
SLOW = Figure("slow", 7, "s", "a fast one", 1, 4.0, False)
KNOWN = Figure("known", 7, "s", "nothing in particular", 1)


def check(document: dict[str, Any]) -> None:
    """The form of one entry of bench.json."""
    assert ["name", "value", "unit", "reference", "referenceValue", "bar", "met"] == list(document)
    assert all(isinstance(document[name], str) and document[name] for name in ("name", "unit", "reference"))
    assert all(type(document[name]) in (int, float) for name in ("value", "referenceValue"))
    assert document["bar"] is None or isinstance(document["bar"], str | int | float)
    assert isinstance(document["met"], bool)
    assert document["met"] or document["bar"] is not None


@pytest.mark.parametrize(
    ("measure", "names"),
    [
        pytest.param(
            lambda: throughput.measure(records=2_500, rounds=1),
            ["throughput", "throughput memory"],
            id="throughput",
        ),
        pytest.param(lambda: planning.measure(50), ["planning", "planning memory"], id="planning"),
        pytest.param(lambda: imports.measure(starts=1), ["import"], id="import"),
        pytest.param(lambda: [ledger.in_memory(20)], ["ledger in memory"], id="ledger"),
        pytest.param(lambda: contract.measure(partitions=3, rounds=1), ["contract"], id="contract"),
        pytest.param(lambda: packing.measure(500), ["packing", "packing slices"], id="packing"),
        pytest.param(
            lambda: fan_out.measure(children=3, moto_children=2),
            ["fan-out", "fan-out memory", "fan-out, few"],
            id="fan-out",
        ),
        pytest.param(lambda: callbacks.measure(executions=2), ["callbacks memory"], id="callbacks"),
        pytest.param(lambda: loops.measure(loops=2, rounds=2), ["loops"], id="loops"),
        pytest.param(
            lambda: reconcile.measure(rows=2_000, rounds=1),
            [
                "reconcile",
                "reconcile floor",
                "reconcile memory",
                "reconcile memory, 30 % different",
                "reconcile export",
            ],
            id="reconcile",
        ),
        pytest.param(
            lambda: reconcile.measure_large(rows=2_000, rounds=1),
            ["reconcile 10m", "reconcile 10m memory"],
            id="reconcile-10m",
        ),
    ],
)
def test_each_benchmark_gives_figures_of_one_form(
    measure: Callable[[], Iterator[Figure]], names: list[str]
) -> None:
    documents = [json.loads(json.dumps(one.document())) for one in measure()]

    assert names == [one["name"] for one in documents]
    for document in documents:
        check(document)
        assert document["value"] > 0
        assert document["referenceValue"] > 0


def test_status_is_measured_beside_one_read() -> None:
    figure = status.in_memory(50)

    check(figure.document())
    assert ("status in memory", True) == (figure.name, figure.met)


@mock_aws
def test_checkpoints_are_written_to_a_dynamodb_too() -> None:
    figure = ledger.on_dynamodb("moto", client("dynamodb", endpoint=None), writes=20)

    check(figure.document())
    assert "ledger on moto" == figure.name


def test_the_names_on_the_command_line_are_those_of_the_issue() -> None:
    of_runs = ["throughput", "planning", "import", "ledger", "contract", "packing"]
    of_the_stack = ["status", "fan-out", "callbacks", "loops", "orchestration"]
    of_rows = ["reconcile", "reconcile-others", "reconcile-10m"]
    assert [*of_runs, *of_the_stack, *of_rows] == list(BENCHMARKS)


@pytest.mark.parametrize(
    ("figures", "code"),
    [([FAST, KNOWN], 0), ([FAST, SLOW], 1), ([KNOWN], 0)],
    ids=["all bars are met", "one is not", "there is none"],
)
def test_the_exit_code_says_whether_all_bars_are_met(
    tmp_path: Path, figures: list[Figure], code: int
) -> None:
    assert code == main([], {"some": lambda: iter(figures)}, tmp_path)
    written = json.loads((tmp_path / "bench.json").read_text())

    assert [one.document() for one in figures] == written
    for document in written:
        check(document)


def test_only_the_named_benchmarks_are_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks = {"one": lambda: iter([FAST]), "other": lambda: iter([SLOW])}

    assert 0 == main(["one"], benchmarks, tmp_path)
    shown = capsys.readouterr().out
    assert "at most 4 s" in shown
    assert "fast: a slow one" in shown
    assert "slow:" not in shown


def test_an_unknown_name_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["one", "tow"], {"one": lambda: iter([FAST])}, tmp_path)
    assert "There is no benchmark 'tow'; there are one." in capsys.readouterr().err
    assert not (tmp_path / "bench.json").exists()


def test_the_partitions_that_are_packed_are_the_same_each_time_and_within_a_tenth_of_a_task() -> None:
    weights = [one.weight for one in packing.weighted(1_000)]

    assert weights == [one.weight for one in packing.weighted(1_000)]
    assert max(weights) <= packing.TASK_SECONDS / 10


def test_the_middle_is_a_value_that_was_measured() -> None:
    assert 2 == middle([3, 1, 2])


def test_the_peak_is_that_of_this_process() -> None:
    before = peak_bytes()
    kept = bytearray(before + 2**20)

    assert peak_bytes() > len(kept)
