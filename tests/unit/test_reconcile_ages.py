"""Since when a finding has been there: what is carried from run to run, and what breaks the chain."""

from __future__ import annotations

import itertools
import json
import random
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trueup.artifacts import comparison_key
from trueup.artifacts.findings import listed
from trueup.artifacts.store import place
from trueup.compare import Difference, Finding, Kind, Layout, Span
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import AGE_NAMES
from trueup.model.states import Phase
from trueup.reporting.ages_page import ages_section
from trueup.testing import LocalRun
from trueup.worker.ages import Ages, age_of, instant

from .reconcile_cases import Days, Rows, damaged, first_seen, job, lines, rows, wrong


def ages(run: LocalRun) -> dict[str, int]:
    return {one.age: one.findings for one in run.comparison.ages.lines}


def test_what_was_confirmed_before_keeps_when_it_was_first_seen() -> None:
    days = Days()
    first = days.run(wrong(7, 150, 250))
    assert {"new": 3} == ages(first)
    second = days.run(wrong(7, 150, 8))
    third = days.run(wrong(7, 8, 9))
    a, b, c = days.began
    assert {7: a, 150: a, 250: a} == first_seen(first)
    assert {7: a, 150: a, 8: b} == first_seen(second)
    assert {7: a, 8: b, 9: c} == first_seen(third)
    assert {"new": 1, "1 to 7 days": 2} == ages(third)
    assert datetime.fromisoformat(a) == third.comparison.ages.oldest
    assert [second.run_id] == [one.run_id for one in third.comparison.ages.earlier]


def test_a_row_whose_value_changed_is_as_old_and_another_class_or_column_is_new() -> None:
    of = job(columns={"id": "integer", "v": "text", "w": "text"})
    both = rows()
    for row in itertools.chain(*both.values()):
        row["w"] = "w"
    days = Days()

    def damage(changes: Mapping[int, Mapping[str, str] | None]) -> Rows:
        target = [{**row, **(changes.get(row["id"]) or {})} for row in both["target"]]
        gone = {key for key, change in changes.items() if change is None}
        return {"truth": both["truth"], "target": [row for row in target if row["id"] not in gone]}

    days.run(damage({1: {"v": "x"}, 2: {"v": "x"}, 3: None}), of)
    second = days.run(damage({1: {"v": "y"}, 2: {"w": "x"}, 3: {"v": "x"}}), of)
    a, b = days.began
    assert {1: a, 2: b, 3: b} == first_seen(second)


def test_what_was_gone_in_between_is_new() -> None:
    days = Days()
    days.run(wrong(7))
    assert "CLEAN" == days.run(wrong()).comparison.verdict
    again = days.run(wrong(7))
    assert {7: days.began[2]} == first_seen(again)


@pytest.mark.parametrize("cuts", [[], [50], [7, 8, 9], [3, 100, 150, 151, 299], [-10, 1000]])
def test_partitions_that_are_cut_otherwise_change_no_age(cuts: list[int]) -> None:
    both, known = damaged()
    days = Days()
    days.run(both)
    second = days.run(both, job(partitions={"by": "splits", "splits": cuts}))
    assert dict.fromkeys(known, days.began[0]) == first_seen(second)


def test_keys_of_two_columns_cut_by_the_first_one_keep_their_ages() -> None:
    rng = random.Random(3)
    pairs = sorted({(rng.choice("abcde"), rng.randrange(100)) for _ in range(200)})
    truth = [{"id": a, "n": n, "v": "v"} for a, n in pairs]
    target = [{**row, "v": "other"} if rng.random() < 0.3 else row for row in truth]
    both = {"truth": truth, "target": target}

    def of(*splits: list[Any]) -> Reconciliation:
        columns = {"id": "text", "n": "integer", "v": "text"}
        return job(key=["id", "n"], columns=columns, partitions={"by": "splits", "splits": list(splits)})

    days = Days()
    days.run(both, of(["b"], ["c", "50"]))
    second = days.run(both, of(["b", "20"], ["c"], ["d", "7"]))
    told = [one for one in lines(second, Phase.CONFIRM) if one["state"] == "CONFIRMED"]
    assert len(told) == sum(one["v"] == "other" for one in target) > 30
    assert {days.began[0]} == {one["firstSeen"] for one in told}


def test_after_a_run_that_left_a_partition_out_ages_come_from_it_and_from_the_one_before() -> None:
    days = Days()
    first = days.run(wrong(7, 150))
    broken = wrong(7, 150, 8)
    broken["target"].insert(151, {"id": 150, "v": "twice"})
    second = days.run(broken)
    assert "INCOMPLETE" == second.comparison.verdict
    third = days.run(wrong(7, 150, 8))
    a, b, _ = days.began
    assert 150 not in first_seen(second)
    assert {7: a, 8: b, 150: a} == first_seen(third)
    assert [second.run_id, first.run_id] == [one.run_id for one in third.comparison.ages.earlier]


def test_another_target_or_another_key_has_ages_of_its_own() -> None:
    days = Days()
    days.run(wrong(7))
    elsewhere = job(target={"kind": "dynamodb", "table": "other"})
    assert {"new": 1} == ages(days.run(wrong(7), elsewhere))
    assert {"1 to 7 days": 1} == ages(days.run(wrong(7)))


def test_earlier_findings_that_are_gone_or_changed_stop_nothing_and_are_told() -> None:
    for damage in (lambda data: b"", lambda data: data.replace(b"150", b"151")):
        days = Days()
        first = days.run(wrong(7, 150, 250))
        run = days.make(wrong(7, 150, 250))
        (one,) = (
            one
            for found in first.comparison.lists
            if found.partition_id == "key=100..200" and found.phase is Phase.CONFIRM
            for one in listed(first.artifacts, found)
        )
        key = place(one.location)[1]
        days.store.put(key, damage(days.store.get(key)))
        run.run()
        a, b = days.began
        assert "DRIFT" == run.comparison.verdict
        assert {7: a, 150: b, 250: a} == first_seen(run)
        (told,) = run.comparison.ages.unread
        assert told.startswith(f"key=100..200: {key}")


def test_a_report_that_is_gone_when_a_run_is_planned_is_no_earlier_one() -> None:
    days = Days()
    first = days.run(wrong(7))
    days.store._objects.pop(comparison_key(first.run_id, "json"))
    second = days.run(wrong(7))
    assert [] == second.comparison.ages.earlier
    assert {"new": 1} == ages(second)


def test_findings_of_several_looks_are_found_again() -> None:
    """Each look writes its own lines, so those of a partition are not in the order of their keys."""
    days = Days()
    both = wrong(7, 8, 9, 20)
    first = days.make(both)
    number = 0
    while first.step() is not None:
        number += 1
        if any(task.launch.phase is Phase.CONFIRM for task in first.tasks) and number % 3 == 0:
            continue
        moving = sum(task.launch.phase is Phase.CONFIRM for task in first.tasks) < 2
        both["target"][:] = [
            {"id": 8, "v": f"n{number}"} if row["id"] == 8 and moving else row for row in both["target"]
        ]
    looks = [(int(one["key"][0]), one["look"]) for one in lines(first, Phase.CONFIRM) if one["key"] != ["8"]]
    assert [(7, 1), (9, 1), (20, 1)] == looks
    assert (8, 2) in [(int(one["key"][0]), one["look"]) for one in lines(first, Phase.CONFIRM)]
    second = days.run(both)
    assert dict.fromkeys((7, 8, 9, 20), days.began[0]) == first_seen(second)


def test_killed_at_any_point_a_run_carries_every_age_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 5)
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 4)
    before, after = wrong(*range(0, 300, 20)), wrong(*range(0, 300, 15), value="later")

    def second(kill_at: int | None) -> tuple[LocalRun, list[int], list[str]]:
        days = Days()
        days.run(before)
        run = days.make(after)
        phases = []
        while run.step() is not None:
            phases.append(run.phase)
            if len(phases) == kill_at:
                run.kill()
        return run, [number for number, one in enumerate(phases, 1) if one is Phase.CONFIRM], days.began

    whole, points, (a, b) = second(None)
    expected = first_seen(whole)
    assert {key: b if key % 20 else a for key in range(0, 300, 15)} == expected
    assert len(points) > 15
    for point in points:
        run, _, _ = second(point)
        assert expected == first_seen(run), point
        assert whole.comparison.ages.lines == run.comparison.ages.lines, point


def test_ages_have_the_bounds_that_their_names_say() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    for age, name in [
        (timedelta(), "new"),
        (timedelta(seconds=1), "under 1 day"),
        (timedelta(days=1), "1 to 7 days"),
        (timedelta(days=7), "7 to 30 days"),
        (timedelta(days=30), "30 to 90 days"),
        (timedelta(days=90), "90 days and more"),
        (timedelta(days=9000), "90 days and more"),
    ]:
        assert name == age_of(instant(now - age), now)
    assert 6 == len(AGE_NAMES)


def test_memory_does_not_grow_with_what_earlier_runs_found() -> None:
    """48 MB of earlier findings, in the wrong order: what is held is an object, and what the sorter takes."""
    padding = "x" * 1_200

    class Many:
        def blocks(self, span: Span, watch: object) -> Iterator[bytes]:
            known = json.dumps(["MISSING", [padding], "2026-01-01T00:00:00Z"])
            for last in range(40_000, 0, -1_000):
                yield "".join(f"{key}\t{known}\n" for key in range(last, last - 1_000, -1)).encode()

    def finding(key: int) -> Finding:
        return Finding(Kind.MISSING, (str(key),), differences=(Difference(padding, "", b"", b""),))

    made = Ages(
        [Many()],  # type: ignore[list-item]
        Layout((job().column("id"),)),
        Span(),
        datetime(2026, 2, 1, tzinfo=UTC),
        lambda: None,
    )
    tracemalloc.start()
    try:
        with closing(made):
            found = [made.first_seen(finding(key)) for key in (0, 1, 29_999, 40_000, 40_001)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    new, old = "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"
    assert [new, old, old, old, new] == found
    assert peak < 24 * 2**20


def test_the_page_says_how_old_what_is_confirmed_is() -> None:
    days = Days()
    first = days.run(wrong(7))
    second = days.run(wrong(7, 8))
    page = "".join(ages_section(second.comparison))
    for told in ("Since when", "1 to 7 days", "The oldest has been there since", first.run_id):
        assert told in page
    assert "" == "".join(ages_section(days.run(wrong()).comparison))
