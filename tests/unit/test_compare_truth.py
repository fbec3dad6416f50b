"""On pairs with known damage every difference is found, and none is invented."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.compare import Counts, Finding, Kind, Layout, Span, Step, compare, external_sort, in_blocks
from trueup.compare import merge as merging

from .compare_cases import (
    CASES,
    INTEGER_KEY,
    KEY_ONLY,
    TEXT_KEY,
    TWO_KEYS,
    Row,
    blocks,
    expected,
    found,
    in_key_order,
    line,
    order,
    pairs,
    rows,
)

LAYOUTS = [
    pytest.param(INTEGER_KEY, id="integer key"),
    pytest.param(TEXT_KEY, id="text key"),
    pytest.param(TWO_KEYS, id="two columns"),
    pytest.param(KEY_ONLY, id="key only"),
]
thorough = settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def told(steps: Sequence[Step]) -> tuple[Counts, list[Finding]]:
    counts = Counts()
    for step in steps:
        counts = counts.plus(step.counts)
    return counts, [finding for step in steps for finding in step.findings]


def check(
    truth: Sequence[Row], target: Sequence[Row], layout: Layout, counts: Counts, findings: list[Finding]
) -> None:
    wrong = expected(truth, target, layout)
    assert wrong == found(findings, layout)
    kinds = Counter(wrong.values())
    assert (len(truth), len(target)) == (counts.truth_rows, counts.target_rows)
    assert (kinds[Kind.MISSING], kinds[Kind.EXTRA]) == (counts.missing, counts.extra)
    assert (kinds[Kind.MISMATCHED], kinds[Kind.DUPLICATE]) == (counts.mismatched, counts.duplicates)
    keys = {order(row, layout) for row in (*truth, *target)}
    assert len(keys) - len(wrong) == counts.matched
    assert counts.rows_add_up


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sides_in_order_with_repeated_keys(layout: Layout) -> None:
    @thorough
    @given(pair=pairs(layout), sizes=st.lists(st.integers(1, 9), min_size=1), data=st.data())
    def holds(pair: tuple[list[Row], list[Row]], sizes: list[int], data: st.DataObject) -> None:
        truth, target = (in_key_order(side, layout) for side in pair)
        # Each side is cut elsewhere, so that stretches begin and end anywhere.
        left, right = blocks(truth, itertools.cycle(sizes)), blocks(target, itertools.cycle(sizes[::-1]))
        check(truth, target, layout, *told(list(compare(left, right, layout))))

    holds()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sides_of_which_one_warrants_its_order(layout: Layout) -> None:
    @thorough
    @given(
        unique=pairs(layout, unique=True), other=pairs(layout), sizes=st.lists(st.integers(1, 9), min_size=1)
    )
    def holds(
        unique: tuple[list[Row], list[Row]], other: tuple[list[Row], list[Row]], sizes: list[int]
    ) -> None:
        truth = in_key_order(unique[0], layout)
        target = in_key_order(unique[1] + other[1][:2], layout)
        left, right = blocks(truth, itertools.cycle(sizes)), blocks(target, itertools.cycle(sizes[::-1]))
        check(truth, target, layout, *told(list(compare(left, right, layout, proved=True))))

    holds()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sides_without_order_are_sorted(layout: Layout, tmp_path: Path) -> None:
    @thorough
    @given(pair=pairs(layout), run_bytes=st.integers(1, 300))
    def holds(pair: tuple[list[Row], list[Row]], run_bytes: int) -> None:
        truth, target = pair
        sides = [
            external_sort(blocks(side, itertools.repeat(3)), layout, tmp_path, run_bytes) for side in pair
        ]
        check(truth, target, layout, *told(list(compare(*sides, layout))))
        assert [] == list(tmp_path.iterdir())

    holds()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_side_out_of_order_is_never_silent(layout: Layout) -> None:
    @thorough
    @given(side=st.lists(rows[layout], min_size=2, max_size=30), data=st.data())
    def holds(side: list[Row], data: st.DataObject) -> None:
        shuffled = data.draw(st.permutations(side))
        keys = [order(row, layout) for row in shuffled]
        other = data.draw(st.sampled_from([shuffled, in_key_order(side, layout), []]))
        sides = [blocks(one, itertools.repeat(4)) for one in (shuffled, other)]
        _, findings = told(list(compare(*sides, layout)))
        kinds = [finding.kind for finding in findings]
        assert (keys != sorted(keys)) == (Kind.UNSORTED in kinds)

    holds()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_comparison_goes_on_after_any_step(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FINDINGS_A_STEP", 2)
    monkeypatch.setattr(merging, "ROWS_A_STEP", 7)

    @thorough
    @given(pair=pairs(layout), size=st.integers(1, 9))
    def holds(pair: tuple[list[Row], list[Row]], size: int) -> None:
        truth, target = (in_key_order(side, layout) for side in pair)
        steps, span = [], Span()
        while True:
            within = layout.within(span)
            left, right = (
                in_blocks((one for one in map(line, side) if within(layout.order_of(one))), size * 10)
                for side in (truth, target)
            )
            step = next(compare(left, right, layout))
            if step.cursor is None:
                break
            steps.append(step)
            span = span.resumed(step.cursor)
        check(truth, target, layout, *told(steps))

    holds()
