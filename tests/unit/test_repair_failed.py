"""Repairs of which a partition fails for good: what was touched is looked at again before the run ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from trueup.artifacts.store import place
from trueup.model.ledger import PartitionItem
from trueup.model.repair import OutcomeLine, Outcomes
from trueup.model.states import GateStatus, PartitionStatus, Phase, RunStatus
from trueup.reporting import Reports
from trueup.testing import LocalRun
from trueup.testing.rows import MemoryRows

from .reconcile_cases import Rows, damaged
from .test_repair import by_id, done, lines, repair_of, small, to, undo_of

TWO: dict[str, Any] = {"partitions": {"by": "splits", "splits": [8]}}
FIRST, SECOND = "key=..8", "key=8.."
WHY = "the target is on fire"


def failing(monkeypatch: pytest.MonkeyPatch, *keys: int, after: bool = False) -> None:
    """Whoever changes one of these rows fails for good, before it is changed or after it."""
    whole = MemoryRows.apply

    def apply(rows: MemoryRows, change: Any) -> Any:
        fails = int(change.key[0]) in keys
        if fails and not after:
            raise RuntimeError(WHY)
        applied = whole(rows, change)
        if fails:
            raise RuntimeError(WHY)
        return applied

    monkeypatch.setattr(MemoryRows, "apply", apply)


def repair(monkeypatch: pytest.MonkeyPatch, *keys: int, after: bool = False) -> tuple[LocalRun, Rows]:
    """A repair of 0, 3, 7 in one partition, of 8, 12 in another, two at once; these keys make it fail."""
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    failing(monkeypatch, *keys, after=after)
    both, _ = small()
    return repair_of(both, changes=TWO), both


def seen(run: LocalRun) -> dict[int, str]:
    """What the last look said of each item; each is told once."""
    found = [line for line in lines(run, Phase.VERIFY) if not line.get("again")]
    assert len(found) == len({tuple(line["key"]) for line in found})
    return {int(line["key"][0]): line["verification"] for line in found}


def counted(found: list[OutcomeLine]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in found:
        total[one.outcome] += one.items
    return total


def item(run: LocalRun, phase: Phase, partition: str) -> PartitionItem:
    return run.ledger.partitions.get(run.run_id, phase, partition)


def test_what_a_failed_repair_touched_is_looked_at_before_its_run_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, _ = repair(monkeypatch, 7)
    ended = run.run()
    assert RunStatus.FAILED is ended.status
    assert (
        "1 of 2 partitions did not make it in the phase repair; UNREPAIRED: 1 items: INTENDED; "
        "looked at again: 1 UNTOUCHED, 4 VERIFIED"
    ) == ended.reason
    assert {0: "APPLIED", 3: "APPLIED", 8: "APPLIED", 12: "APPLIED"} == done(run)
    assert {0: "VERIFIED", 3: "VERIFIED", 7: "UNTOUCHED", 8: "VERIFIED", 12: "VERIFIED"} == seen(run)
    assert (PartitionStatus.FAILED, PartitionStatus.ACCEPTED) == tuple(
        item(run, Phase.REPAIR, one).status for one in (FIRST, SECOND)
    )
    assert {PartitionStatus.ACCEPTED} == {item(run, Phase.VERIFY, one).status for one in (FIRST, SECOND)}
    looked = run.ledger.verdicts.counts(run.run_id, Phase.VERIFY).tally().records
    assert (5, 5, 0) == (looked.read, looked.used, looked.produced)


def test_its_report_and_its_evidence_hold_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = repair(monkeypatch, 7)
    run.run()
    report = run.repaired
    assert ("UNREPAIRED", {"VERIFIED": 4, "UNTOUCHED": 1}) == (report.verdict, counted(report.verified))
    assert [
        "1 items: INTENDED",
        f"{FIRST} in the phase repair: {WHY}",
    ] == report.reasons
    kinds = Counter(
        one.kind for one in Reports(run.ledger, run.artifacts).evidence(run.run_id).manifest.objects
    )
    looks = [one.objects for one in report.lists if one.phase is Phase.VERIFY]
    assert sum(looks) + len(looks) == kinds["verification"] > 1


def test_the_run_keeps_its_lock_while_it_looks_and_leaves_it_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, _ = repair(monkeypatch, 7)
    to(run, Phase.VERIFY)
    now = run.ledger.runs.get(run.run_id)
    assert (RunStatus.RUNNING, True) == (now.status, run.run_id in run.ledger.locks.get(now.target).holders)
    run.run()
    assert run.run_id not in run.ledger.locks.get(now.target).holders
    assert [GateStatus.SPENT] == [gate.status for gate in run.ledger.gates.of(run.run_id)]


def test_a_write_that_was_made_and_never_told_of_is_found_right(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = repair(monkeypatch, 3, after=True)
    run.run()
    assert {8: "APPLIED", 12: "APPLIED"} == done(run)
    assert dict.fromkeys((0, 3, 8, 12), "VERIFIED") == seen(run)
    assert {"INTENDED": 2, "APPLIED": 2} == counted(run.repaired.outcomes)
    assert ["1 items were approved and never begun", "2 items: INTENDED"] == sorted(run.repaired.reasons)[:2]


def test_of_an_insert_that_was_not_made_it_is_said_that_there_is_no_row_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, both = repair(monkeypatch, 0)
    run.run()
    assert {0: "UNTOUCHED", 3: "UNTOUCHED", 8: "VERIFIED", 12: "VERIFIED"} == seen(run)
    assert 0 not in by_id(both["target"])


def test_what_somebody_else_made_of_an_intended_row_differs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both = repair(monkeypatch, 7)
    to(run, Phase.VERIFY)
    by_id(both["target"])[7]["v"] = "somebody's own"
    ended = run.run()
    assert "REAPPEARED" == seen(run)[7]
    assert (
        "1 of 2 partitions did not make it in the phase repair; REAPPEARED: 1 items differ again"
    ) == ended.reason


def test_where_nothing_was_touched_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both = repair(monkeypatch)

    def unreadable(*_: Any) -> Any:
        raise RuntimeError(WHY)

    to(run, Phase.REPAIR)
    before = by_id(both["target"])
    monkeypatch.setattr("trueup.worker.repairing.Repair.intent", unreadable)
    ended = run.run()
    assert "2 of 2 partitions did not make it in the phase repair; UNREPAIRED: 5 items" in str(ended.reason)
    assert {PartitionStatus.SKIPPED} == {item(run, Phase.VERIFY, one).status for one in (FIRST, SECOND)}
    assert ({}, before) == (seen(run), by_id(both["target"]))


@pytest.mark.parametrize("given_up", [False, True])
def test_a_partition_that_got_stuck_is_looked_at_too_and_so_is_one_that_was_given_up(
    given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = repair(monkeypatch)
    whole = MemoryRows.apply

    def dies(rows: MemoryRows, change: Any) -> Any:
        if change.key == ("7",):
            raise GeneratorExit  # as if its process had gone: nothing is closed and nothing is caught
        return whole(rows, change)

    monkeypatch.setattr(MemoryRows, "apply", dies)
    while item(run, Phase.REPAIR, FIRST).status is not PartitionStatus.STUCK:
        try:
            run.step()
        except GeneratorExit:
            run.kill(exit_code=1, stop_code="EssentialContainerExited")
    if given_up:
        run.ledger.verdicts.skip(run.run_id, Phase.REPAIR, [FIRST], who="ann", why="by hand")
    ended = run.run()
    assert (RunStatus.SUCCEEDED if given_up else RunStatus.FAILED) is ended.status
    assert str(ended.reason).endswith(
        "UNREPAIRED: 1 items: INTENDED; looked at again: 1 UNTOUCHED, 4 VERIFIED"
    )
    assert {0: "VERIFIED", 3: "VERIFIED", 7: "UNTOUCHED", 8: "VERIFIED", 12: "VERIFIED"} == seen(run)


@pytest.mark.parametrize("at_once", [2, 50])
def test_what_the_breaker_left_keeps_nothing_from_being_looked_at(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", at_once)
    both, wrong = damaged()
    run = repair_of(both, {"deletes": "asked", "breaker": {"share": 0.1, "sample": 4}})
    to(run, Phase.REPAIR)
    for key in sorted(wrong)[6:]:
        if key in by_id(both["target"]):
            by_id(both["target"])[key]["v"] = "somebody's own"
    assert RunStatus.SUCCEEDED is run.run().status
    applied = {key: "VERIFIED" for key, outcome in done(run).items() if outcome == "APPLIED"}
    assert 6 <= len(applied) < len(wrong)
    assert applied == seen(run)
    assert any("too many items were stale or failed" in one for one in run.repaired.reasons)


def test_what_was_only_intended_when_the_breaker_stopped_it_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = repair(monkeypatch)
    to(run, Phase.REPAIR)
    while '"at":2,"intended":1' not in (item(run, Phase.REPAIR, FIRST).cursor or ""):
        run.step()
    run.kill()
    # As where other partitions went wrong meanwhile: none of this chunk is begun.
    monkeypatch.setattr("trueup.worker.repairing.Repair._breaker_trips", lambda *_: True)
    assert RunStatus.SUCCEEDED is run.run().status
    assert {0: "VERIFIED", 3: "VERIFIED"} == seen(run)
    assert {"APPLIED": 2} == counted(run.repaired.outcomes)


def test_what_was_intended_beside_what_was_told_was_left() -> None:
    intents: list[dict[str, Any]] = [
        {"at": at, "intent": {"before": None, "wanted": "row"}} for at in range(5)
    ]
    intents[3]["intent"] = None
    found = Outcomes()
    assert [0] == [one["at"] for one in found.of([*intents[:2], {"at": 0, "outcome": "APPLIED"}])]
    assert [] == list(found.untold())
    assert [] == list(found.of(intents[2:]))
    assert [(2, "INTENDED"), (4, "INTENDED")] == [(one["at"], one["outcome"]) for one in found.untold()]


def test_killed_at_any_point_of_that_look_each_item_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 2)

    def ready() -> LocalRun:
        run, _ = repair(monkeypatch, 7)
        to(run, Phase.VERIFY)
        return run

    whole, points = ready(), 0
    while whole.step() is not None:
        points += 1
    assert points > 10
    for point in range(1, points + 1):
        run = ready()
        for _ in range(point):
            run.step()
        run.kill()
        assert (RunStatus.FAILED, whole.run().reason) == (run.run().status, run.run().reason), point
        assert seen(whole) == seen(run), point


@pytest.mark.parametrize("goal", [RunStatus.CANCELLED, RunStatus.ABORTED])
def test_a_run_that_is_ended_while_it_looks_says_what_was_not_looked_at(
    goal: RunStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = repair(monkeypatch, 7)
    to(run, Phase.VERIFY)
    run.ledger.runs.stop(run.run_id, goal, who="ann", why="enough")
    run.interrupt()
    assert (goal, "enough") == (run.run().status, run.run().reason)
    assert "5 items were applied or intended and not looked at again" in run.repaired.reasons


def test_a_job_that_says_so_stops_at_the_first_failure_and_looks_at_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch, 7)
    stops = {"abort": [{"of": "failedPartitions", "above": 0, "minimum": 1}]}
    run = repair_of(small()[0], changes={**TWO, **stops})
    ended = run.run()
    assert RunStatus.ABORTED is ended.status
    assert str(ended.reason).startswith("abort rule failedPartitions: 1 (of 1 partitions that ended) > 0")
    assert ({}, "UNREPAIRED") == (seen(run), run.repaired.verdict)
    assert "3 items were applied or intended and not looked at again" in run.repaired.reasons


def test_a_look_that_fails_too_is_told_beside_the_repair_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = repair(monkeypatch, 7)
    to(run, Phase.VERIFY)
    key = place(item(run, Phase.REPAIR, SECOND).entry.outputs[0].location)[1]  # type: ignore[union-attr]
    run.artifacts.store.put(key, b"{}")
    ended = run.run()
    assert RunStatus.FAILED is ended.status
    told = str(ended.reason).split("; ")
    missed = "1 of 2 partitions did not make it in the phase"
    assert [f"{missed} repair", f"{missed} verify"] == told[:2]
    assert "as the phase repair left it" in told[2]


def test_a_repair_that_failed_is_taken_back_and_so_is_one_that_fails_at_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = by_id(small()[0]["target"])
    run, both = repair(monkeypatch, 7)
    run.run()
    failing(monkeypatch, 3)
    undo = undo_of(run, both)
    assert RunStatus.FAILED is undo.run().status
    assert {0: "VERIFIED", 3: "UNTOUCHED", 8: "VERIFIED", 12: "VERIFIED"} == seen(undo)
    assert "looked at again: 1 UNTOUCHED, 3 VERIFIED" in str(undo.run().reason)
    after = by_id(both["target"])
    assert {key: row for key, row in before.items() if key != 3} == {
        key: row for key, row in after.items() if key != 3
    }
    assert "v3" == after[3]["v"]
