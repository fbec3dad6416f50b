"""Repairs of many items: what grows with them, what does not, and that it is still signed or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.artifacts import comparison_key, repair_key
from trueup.artifacts.findings import listed
from trueup.artifacts.store import place
from trueup.errors import ArtifactError
from trueup.gating import before_repair
from trueup.jobs import Reconcile
from trueup.model.reconcile_report import ObjectList
from trueup.model.repair import Action, RepairItem
from trueup.model.states import Phase, RunStatus
from trueup.platform import Ended
from trueup.testing import LocalRun
from trueup.worker.intents import Intent
from trueup.worker.repairing import AT_ONCE, CHUNK_BYTES, next_size

from .handler_world import World
from .reconcile_cases import damaged
from .test_handlers_repair import approve, waiting
from .test_repair import done, failed, repair_of, signed, small, undo_of

ONE: dict[str, Any] = {"partitions": {"by": "splits", "splits": []}}


def in_chunks(monkeypatch: pytest.MonkeyPatch, items: int) -> LocalRun:
    """A repair to its end, in chunks and looks of so many items."""
    for module in ("repairing", "confirming"):
        monkeypatch.setattr(f"trueup.worker.{module}.AT_ONCE", items)
    run = repair_of(damaged()[0])
    assert RunStatus.SUCCEEDED is run.run().status
    return run


def test_the_reports_grow_with_partitions_and_not_with_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (in_chunks(monkeypatch, items) for items in (50, 1))
    assert done(few) == done(many)
    assert [6, 6] == [
        len({(one.partition_id, one.phase) for one in run.repaired.lists}) for run in (few, many)
    ]
    assert [6, 6] == [len(run.repaired.lists) for run in (few, many)]
    # For each of 43 items one object of what is intended, one of what became of it, and one of the look.
    assert (3 * 43, True) == (objects(many.repaired.lists), objects(few.repaired.lists) < 20)
    for key in (comparison_key(few.run_id, "json"), repair_key(few.run_id)):
        sizes = [len(run.artifacts.store.get(key)) for run in (few, many)]
        assert few.run_id == many.run_id
        assert abs(sizes[0] - sizes[1]) < 20, sizes


def objects(lists: list[ObjectList]) -> int:
    return sum(one.objects for one in lists)


# Signed or nothing, at each level: report, list, object.


def spoil(run: LocalRun, one: ObjectList) -> None:
    """Say in a list that its objects are others."""
    key = place(one.location)[1]
    run.artifacts.store.put(key, run.artifacts.store.get(key).replace(b'"lines":', b'"lines":1'))


def why(run: LocalRun, partition_id: str) -> str:
    """Why a partition of the repair failed."""
    return str(run.ledger.partitions.get(run.run_id, Phase.REPAIR, partition_id).error)


def test_a_list_that_was_changed_repairs_nothing_of_its_partition() -> None:
    run, both, before = signed()
    for one in run.comparison.lists:
        if one.phase is Phase.CONFIRM:
            spoil(run, one)
    failed(run, both, before)
    assert "SHA-256" in why(run, "key=..100")


def test_a_list_of_before_images_that_somebody_changed_gives_nothing_back() -> None:
    both, _ = small()
    run = repair_of(both, changes=ONE)
    run.run()
    before = [dict(row) for row in both["target"]]
    undo = undo_of(run, both)
    undo.plan()
    (one,) = (one for one in run.repaired.lists if one.phase is Phase.REPAIR)
    spoil(run, one)
    failed(undo, both, before)
    assert "SHA-256" in why(undo, "key=..")
    with pytest.raises(ArtifactError, match="SHA-256"):
        LocalRun(Reconcile, run.job, rows=both, approver="zoe", undoes=run, seed=78).plan()


def test_too_many_objects_to_be_looked_at_before_are_looked_at_by_the_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trueup.gating.MOST_CHECKED", 3)
    world, run, execution, gate = waiting()
    report = world.reports.comparison(run.run_id)
    assert report is not None
    assert 4 == objects(report.lists)
    approve(world, gate)
    first, last = (one for one in report.lists if one.phase is Phase.CONFIRM)
    key = place(listed(world.artifacts, last)[0].location)[1]
    world.artifacts.store.put(key, world.artifacts.store.get(key).replace(b"EXTRA", b"MISSING"))
    world.play(execution)
    assert RunStatus.FAILED is world.run(run.run_id).status
    repaired = world.reports.repair(run.run_id)
    assert repaired is not None
    # What was signed and is as it was is done; of the other partition nothing is.
    assert [(first.partition_id, 1)] == [
        (one.partition_id, sum(there.lines for there in listed(world.artifacts, one)) // 2)
        for one in repaired.lists
        if one.phase is Phase.REPAIR
    ]
    assert any("SHA-256" in reason for reason in repaired.reasons)
    assert world.rows is not None
    assert {0, 99} <= {row["id"] for row in world.rows["target"]}


def test_a_list_is_looked_at_before_however_many_objects_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.gating.MOST_CHECKED", 0)
    run, *_ = signed()
    spoil(run, run.comparison.lists[-1])
    with pytest.raises(ArtifactError, match="SHA-256"):
        before_repair(run.artifacts, run.ledger, run.ledger.runs.get(run.run_id), run.plan())


def test_all_objects_are_looked_at_until_the_phase_has_begun_and_then_by_the_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, run, execution, gate = waiting()
    approve(world, gate)
    looked: list[str] = []
    whole = world.artifacts.store.checksum
    monkeypatch.setattr(
        world.artifacts.store, "checksum", lambda location: looked.append(location) or whole(location)
    )
    begin(world, run.run_id)
    report = world.reports.comparison(run.run_id)
    assert report is not None
    every = {there.location for one in report.lists for there in listed(world.artifacts, one)}
    assert every <= set(looked)
    at = (execution.told or {})["at"]
    for task in world.ecs.tasks.values():
        task.end(Ended(exit_code=137, stop_code="SpotInterruption"))
    looked.clear()
    again = world.settle.handle({**execution.data, "at": at})
    assert "work" == again["do"]
    assert [] == looked
    world.settle.handle({**execution.data, "at": {**at, "mark": None}})
    assert every <= set(looked)


def begin(world: World, run_id: str) -> None:
    """To where the first task of the repair runs."""
    (execution,) = world.steps.executions.values()
    while not any(task.order.phase is Phase.REPAIR for task in world.ecs.tasks.values()):
        world._turn(execution)


# How many items there are in a chunk.


def intent(size: int) -> Intent:
    """A row of so many bytes that is replaced by another one like it."""
    item = RepairItem(at=0, key=("1",), action=Action.UPDATE, truth="t", target="g")
    return Intent(item, before=b"b" * (size // 2), wanted=b"w" * (size // 2))


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, AT_ONCE), (200, AT_ONCE), (CHUNK_BYTES // 100, 100), (CHUNK_BYTES, 1), (9 * CHUNK_BYTES, 1)],
)
def test_a_chunk_has_as_many_rows_as_are_not_too_large_together(size: int, expected: int) -> None:
    assert expected == next_size([intent(size)] * 10)


def test_large_rows_are_repaired_in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.worker.repairing.FIRST_CHUNK", 2)
    monkeypatch.setattr("trueup.worker.repairing.CHUNK_BYTES", 100)
    both, wrong = damaged()
    for row in both["truth"]:
        row["v"] = row["v"].ljust(30, ".")
    for row in both["target"]:
        row["v"] = row["v"].ljust(30, ".")
    run = repair_of(both, changes=ONE)
    run.run()
    assert dict.fromkeys(wrong, "APPLIED") == done(run)
    (found,) = (one for one in run.repaired.lists if one.phase is Phase.REPAIR)
    sizes = [one.lines for one in listed(run.artifacts, found)]
    # Two rows of a chunk are 130 bytes if both were there before, so the chunks after it have one or two.
    assert {1, 2, 3} >= set(sizes)
    assert 2 * len(wrong) == sum(sizes)
