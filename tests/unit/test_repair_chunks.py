"""Within a chunk of a repair, whose outcomes are stored together: kills and the breaker."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from trueup.compare import Applied
from trueup.jobs import Outcome, Reconcile
from trueup.model.states import Phase
from trueup.testing import LocalRun
from trueup.testing.rows import MemoryRows
from trueup.worker.repairing import AT_ONCE

from .reconcile_cases import Rows, damaged, rows
from .test_repair import DELETES, by_id, done, repair_of, small, to


def test_the_breaker_ends_a_repair_within_a_chunk() -> None:
    both, wrong = damaged()
    one = {"partitions": {"by": "splits", "splits": []}}
    run = repair_of(both, {**DELETES, "breaker": {"share": 0.5, "sample": 4}}, changes=one)
    to(run, Phase.REPAIR)
    for row in both["target"]:
        row["v"] += "!"
    missing = {key for key, kind in wrong.items() if kind == "MISSING"}
    run.run()
    # In the order of the keys: after the item with which more than half of at least four were stale.
    items, bad, told = 0, 0, []
    for key in sorted(wrong):
        if items >= 4 and bad > items / 2:
            break
        items, bad = items + 1, bad + (key not in missing)
        told.append(key)
    assert len(told) < len(wrong) < AT_ONCE
    assert told == sorted(done(run))
    left = f"{len(wrong) - len(told)} items: the repair stopped: too many items were stale or failed"
    assert left in run.repaired.reasons


@pytest.mark.parametrize("concurrency", [1, 10])
@pytest.mark.parametrize("seed", range(3))
def test_the_breaker_counts_what_goes_wrong_in_the_partitions_beside_it(
    seed: int, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 1)
    both = rows()
    for row in both["target"][::10]:
        row["v"] = "other"
    # Ten partitions of three items each, of minutes of work each by their plan, so that none shares a slice.
    split = {"by": "splits", "splits": list(range(30, 300, 30)), "seconds": 600}
    settings = {"breaker": {"share": 0.5, "sample": 6}}
    run = repair_of(
        both,
        settings,
        changes={"partitions": split, "limits": {"maxConcurrency": 10}},
        concurrency=concurrency,
        seed=seed,
    )
    to(run, Phase.REPAIR)
    for row in both["target"]:
        row["v"] += "!"
    run.run()
    told = done(run)
    assert {"STALE_TARGET"} == set(told.values())
    assert 6 <= len(told) <= 6 + concurrency
    left = f"{30 - len(told)} items: the repair stopped: too many items were stale or failed"
    assert left in run.repaired.reasons


class Dying:
    """Makes the task die at its nth change, before it or after it, once; counts what was changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nth: int, *, after: bool) -> None:
        self.changed: Counter[str] = Counter()
        self._calls = 0
        whole = MemoryRows.apply

        def apply(rows: MemoryRows, change: Any) -> Any:
            self._calls += 1
            if self._calls == nth and not after:
                raise GeneratorExit  # as if its process had gone: nothing is closed and nothing is caught
            applied = whole(rows, change)
            self.changed[change.key[0]] += applied is Applied.APPLIED
            if self._calls == nth:
                raise GeneratorExit
            return applied

        monkeypatch.setattr(MemoryRows, "apply", apply)

    def until(self, run: LocalRun) -> None:
        with pytest.raises(GeneratorExit):
            run.run()
        run.kill()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, 6))
def test_killed_within_a_chunk_each_item_is_done_once(
    nth: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, wrong = small()
    run = repair_of(both, changes={"partitions": {"by": "splits", "splits": []}})
    dying = Dying(monkeypatch, nth, after=after)
    dying.until(run)
    run.run()
    assert "REPAIRED" == run.repaired.verdict
    assert dict.fromkeys(wrong, "APPLIED") == done(run)
    assert {str(key): 1 for key in wrong} == dying.changed
    assert by_id(both["truth"]) == by_id(both["target"])


def test_what_was_done_before_a_kill_counts_though_the_breaker_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    both, wrong = small()
    breaker = {"share": 0.5, "sample": 1}
    run = repair_of(both, {**DELETES, "breaker": breaker}, changes={"partitions": {"by": "splits"}})
    Dying(monkeypatch, 3, after=True).until(run)
    first, second, third, *others = sorted(wrong)
    by_id(both["target"])[first]["v"] = "somebody's own"
    before = {key: by_id(both["target"]).get(key) for key in others}
    run.run()
    assert {first: "STALE_TARGET", second: "APPLIED", third: "APPLIED"} == done(run)
    assert "2 items: the repair stopped: too many items were stale or failed" in run.repaired.reasons
    assert 2 == sum(one.items for one in run.repaired.verified if one.outcome == "VERIFIED")
    assert before == {key: by_id(both["target"]).get(key) for key in others}


def blindly(both: Rows) -> type[Reconcile]:
    """An owner's write path that asks nobody what is there."""

    class Owner(Reconcile):
        def repair_one(self, item: Any, expected: Any) -> Outcome:
            key = int(item["key"][0])
            both["target"][:] = [row for row in both["target"] if row["id"] != key]
            if item["values"] is not None:
                both["target"].append(dict(item["values"]))
            return Outcome(written=1)

    return Owner


@pytest.mark.parametrize("by", ["trueup", "owner"])
def test_what_changes_between_the_intent_and_the_write_is_left_alone(by: str) -> None:
    both, wrong = small()
    hooks = Reconcile if by == "trueup" else blindly(both)
    run = repair_of(both, hooks=hooks, changes={"partitions": {"by": "splits", "splits": []}})
    to(run, Phase.REPAIR)
    while f'"intended":{len(wrong)}' not in (run.partition("key=..").cursor or ""):
        run.step()
    run.kill()
    by_id(both["truth"])[3]["v"] = "newer"
    by_id(both["target"])[7]["v"] = "somebody's own"
    run.run()
    assert {**dict.fromkeys(wrong, "APPLIED"), 3: "STALE_TRUTH", 7: "STALE_TARGET"} == done(run)
    after = by_id(both["target"])
    assert ("other", "somebody's own") == (after[3]["v"], after[7]["v"])
