"""Taking a repair back a second time: what the first undo settled stays as its owner has left it."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.artifacts import repair_key
from trueup.errors import RequestError, SourceError
from trueup.jobs import Reconcile
from trueup.model.request import Request
from trueup.model.states import RunStatus
from trueup.starting import Starter
from trueup.testing import LocalRun
from trueup.testing.rows import MemoryRows
from trueup.watching import GateViews

from .reconcile_cases import Rows
from .test_repair import by_id, done, repair_of, small
from .test_repair_ended import ONE, cancelled

WRONG = {0: "MISSING", 3: "MISMATCHED", 7: "MISMATCHED", 8: "MISSING", 12: "EXTRA"}


def undo(run: LocalRun, both: Rows, seed: int = 1) -> LocalRun:
    return LocalRun(Reconcile, run.job, rows=both, approver="zoe", undoes=run, seed=100 + seed)


def repaired() -> tuple[LocalRun, Rows, dict[int, Any], dict[int, Any]]:
    """A repair that is through; the target before it, and as it left it."""
    both, _ = small()
    before = by_id(both["target"])
    run = repair_of(both, changes=ONE)
    run.run()
    return run, both, before, by_id(both["target"])


def owner_sets(both: Rows, rows: dict[int, Any], *wanted: int) -> None:
    """The owner makes rows of the target what they are elsewhere; there are none where they are not there."""
    kept = [row for row in both["target"] if row["id"] not in wanted]
    both["target"][:] = kept + [dict(rows[key]) for key in wanted if key in rows]


def half_undone(monkeypatch: pytest.MonkeyPatch) -> tuple[LocalRun, Rows, dict[int, Any], dict[int, Any]]:
    """A repair of which an undo that was then cancelled gave back the rows 0 and 3."""
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    run, both, before, after = repaired()
    first = undo(run, both)
    while first.partition("key=..").counters.written < 2:
        first.step()
    cancelled(first)
    assert {0: "APPLIED", 3: "APPLIED"} == done(first)
    return run, both, before, after


def test_what_was_taken_back_is_not_taken_back_again() -> None:
    run, both, _, after = repaired()
    first = undo(run, both)
    assert "UNDONE" == first.run().reason
    owner_sets(both, after, *WRONG)
    with pytest.raises(RequestError) as refused:
        undo(run, both, 2).plan()
    said = f"{run.run_id} was taken back by {first.run_id}: nothing is left of it."
    assert ("undo", said) == (refused.value.field, refused.value.what)
    assert (after, (first.run_id,)) == (by_id(both["target"]), run.run().undone_by)


def test_after_an_undo_that_was_cancelled_the_next_one_does_the_rest_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, both, before, after = half_undone(monkeypatch)
    owner_sets(both, after, 0, 3)
    second = undo(run, both, 2)
    assert "UNDONE" == second.run().reason
    assert {7: "APPLIED", 8: "APPLIED", 12: "APPLIED"} == done(second)
    expected = {**before, 0: after[0], 3: after[3]}
    assert expected == by_id(both["target"])
    with pytest.raises(RequestError, match="nothing is left of it"):
        undo(run, both, 3).plan()


def test_a_row_that_somebody_had_changed_stays_its_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both, before, after = repaired()
    whole = MemoryRows.apply

    def full(self: MemoryRows, change: Any) -> Any:
        if change.key == ("8",):
            raise SourceError("no room")
        return whole(self, change)

    by_id(both["target"])[3]["v"] = "newer"
    with monkeypatch.context() as patched:
        patched.setattr(MemoryRows, "apply", full)
        first = undo(run, both)
        first.run()
    assert ("STALE_TARGET", "FAILED") == (done(first)[3], done(first)[8])
    owner_sets(both, after, 3)
    second = undo(run, both, 2)
    second.run()
    assert ({8: "APPLIED"}, "UNDONE") == (done(second), second.repaired.verdict)
    assert {**before, 3: after[3]} == by_id(both["target"])


def test_while_one_undo_is_not_over_another_is_refused() -> None:
    run, both, _, _ = repaired()
    first = undo(run, both)
    first.plan()
    with pytest.raises(RequestError, match=f"{first.run_id} takes {run.run_id} back already, and is RUNNING"):
        undo(run, both, 2).plan()


def test_an_undo_that_nobody_approved_has_settled_nothing() -> None:
    run, both, before, _ = repaired()
    asked = Request(job="numbers", request_id="first", requester="ann", undo=run.run_id)
    starter = Starter(run.ledger, run.artifacts, run.clock, run._rng)
    first = starter.create(run.job, asked)
    assert first == starter.create(run.job, asked)
    assert (first.run_id,) == run.run().undone_by
    run.ledger.runs.stop(first.run_id, RunStatus.CANCELLED, who="ann", why="no")
    run.ledger.runs.finish(first.run_id, RunStatus.CANCELLED, who="ann")
    second = undo(run, both, 2)
    assert "UNDONE" == second.run().reason
    assert (before, dict.fromkeys(WRONG, "APPLIED")) == (by_id(both["target"]), done(second))


def test_what_an_earlier_undo_came_to_is_read_as_it_was_when_this_one_was_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, both, _, _ = half_undone(monkeypatch)
    held = [dict(row) for row in both["target"]]
    second = undo(run, both, 2)
    (earlier,) = second.plan().earlier
    report = run.artifacts.store.get(repair_key(earlier.run_id))
    run.artifacts.store.put(repair_key(earlier.run_id), report.replace(b"STALE", b"stale") + b" ")
    assert RunStatus.FAILED is second.run().status
    assert held == both["target"]


def test_the_gate_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both, _, _ = half_undone(monkeypatch)
    (first,) = run.run().undone_by
    second = undo(run, both, 2)
    second.plan()
    (gate,) = GateViews(run.ledger, run.artifacts).of(second.run_id)
    assert ("left out", f"2 rows that {first} settled") in [(one.name, one.value) for one in gate.facts]


def test_killed_at_any_point_the_rest_is_taken_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    points, point = 1, 0
    while point < points:
        run, both, before, after = half_undone(monkeypatch)
        owner_sets(both, after, 0, 3)
        second = undo(run, both, 2)
        number = 0
        while second.step() is not None:
            number += 1
            if number == point:
                second.kill()
        points, point = max(points, number if point == 0 else 0), point + 1
        assert {7: "APPLIED", 8: "APPLIED", 12: "APPLIED"} == done(second), point
        assert {**before, 0: after[0], 3: after[3]} == by_id(both["target"]), point
    assert points > 10


def test_what_the_breaker_left_is_not_taken_back_and_not_missed() -> None:
    both, _ = small()
    run = repair_of(both, {"deletes": "asked", "breaker": {"share": 0.4, "sample": 2}}, changes=ONE)
    while run.phase.value != "repair":
        run.step()
    for row in both["target"]:
        row["v"] += "!"
    run.run()
    told = done(run)
    assert 1 <= len(told) < len(WRONG)
    applied = {key for key, outcome in told.items() if outcome == "APPLIED"}
    back = undo(run, both)
    back.run()
    assert ("UNDONE", dict.fromkeys(applied, "APPLIED")) == (back.repaired.verdict, done(back))
