"""Repairs whose run ends before they do: what was done is told, kept as evidence, and can be taken back."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.artifacts import comparison_key, repair_key
from trueup.artifacts.findings import listed
from trueup.artifacts.store import MemoryStore
from trueup.errors import RequestError
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.states import Phase, RunStatus
from trueup.reporting import Reports
from trueup.starting import Starter
from trueup.testing import LocalRun

from .reconcile_cases import Rows
from .test_repair import by_id, done, lines, outcomes, repair_of, small, to, undo_of
from .test_repair_chunks import Dying

ONE: dict[str, Any] = {"partitions": {"by": "splits", "splits": []}}


def cancelled(run: LocalRun) -> None:
    """End a run for good where it stands."""
    run.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="enough")
    run.interrupt()
    assert RunStatus.CANCELLED is run.run().status


def begun(monkeypatch: pytest.MonkeyPatch) -> tuple[LocalRun, Rows]:
    """A repair of five items, two at once, of which the first two were done."""
    monkeypatch.setattr("trueup.worker.repairing.AT_ONCE", 2)
    both, _ = small()
    run = repair_of(both, changes=ONE)
    to(run, Phase.REPAIR)
    while run.partition("key=..").counters.written < 2:
        run.step()
    return run, both


def test_a_repair_that_was_cancelled_tells_what_it_did_and_what_it_did_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, _ = begun(monkeypatch)
    cancelled(run)
    assert {0: "APPLIED", 3: "APPLIED"} == done(run)
    assert ("UNREPAIRED", 2) == (run.repaired.verdict, outcomes(run.repaired).total())
    assert "3 items were approved and never begun" in run.repaired.reasons
    assert "2 items were applied and not looked at again" in run.repaired.reasons
    named = {one.location for one in Reports(run.ledger, run.artifacts).evidence(run.run_id).manifest.objects}
    for one in run.repaired.lists:
        assert {one.location, *(there.location for there in listed(run.artifacts, one))} <= named


def test_a_repair_that_was_cancelled_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = by_id(small()[0]["target"])
    run, both = begun(monkeypatch)
    assert before != by_id(both["target"])
    cancelled(run)
    assert "UNREPAIRED" == run.repaired.verdict
    undo = undo_of(run, both)
    undo.run()
    assert ("UNDONE", {0: "APPLIED", 3: "APPLIED"}) == (undo.repaired.verdict, done(undo))
    assert before == by_id(both["target"])


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_write_whose_outcome_nobody_told_is_taken_back(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    both, wrong = small()
    before = by_id(both["target"])
    run = repair_of(both, changes=ONE)
    Dying(monkeypatch, nth, after=True).until(run)
    run.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="enough")
    run.run()
    assert {"INTENDED"} == {one.outcome for one in run.repaired.outcomes}
    assert len(wrong) == outcomes(run.repaired).total()
    undo = undo_of(run, both)
    undo.run()
    written = sorted(wrong)[:nth]
    assert {key: "APPLIED" if key in written else "STALE_TARGET" for key in wrong} == done(undo)
    assert before == by_id(both["target"])


def test_a_repair_that_intended_nothing_cannot_be_taken_back() -> None:
    both, _ = small()
    run = repair_of(both, changes=ONE)
    to(run, Phase.REPAIR)
    cancelled(run)
    assert [] == lines(run, Phase.REPAIR)
    with pytest.raises(RequestError, match="no row was touched, and there is nothing to take back"):
        undo_of(run, both).plan()


def without(run: LocalRun, *keys: str) -> None:
    """Let objects be gone, or never made."""
    store = run.artifacts.store
    assert isinstance(store, MemoryStore)
    for key in keys:
        store._objects.pop(key, None)


@pytest.mark.parametrize("when", ["never made", "gone before the gate"])
def test_a_repair_that_nobody_told_of_is_told_when_it_is_taken_back(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = by_id(small()[0]["target"])
    run, both = begun(monkeypatch)
    cancelled(run)
    assert repair_key(run.run_id) not in run.artifacts.store.list(f"runs/{run.run_id}/")
    undo = undo_of(run, both)
    if when != "never made":
        plan = Starter.plan

        def planned(*args: Any, **more: Any) -> Any:
            made = plan(*args, **more)
            without(run, repair_key(run.run_id))
            return made

        monkeypatch.setattr(Starter, "plan", planned)
    undo.run()
    assert ("UNDONE", {0: "APPLIED", 3: "APPLIED"}) == (undo.repaired.verdict, done(undo))
    assert before == by_id(both["target"])
    assert ("UNREPAIRED", 2) == (run.repaired.verdict, outcomes(run.repaired).total())


def test_a_repair_that_cannot_be_told_any_more_is_refused_before_anything_is_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, both = begun(monkeypatch)
    cancelled(run)
    key = comparison_key(run.run_id, "json")
    without(run, key)
    held = [dict(row) for row in both["target"]]
    with pytest.raises(RequestError) as refused:
        undo_of(run, both).plan()
    said = f"What {run.run_id} repaired cannot be told any more, and nothing was taken back: "
    assert ("undo", f"{said}There is no object {key}.") == (refused.value.field, refused.value.what)
    assert "lifecycle rule" in refused.value.remedy
    assert (held, ()) == (both["target"], run.run().undone_by)


def test_a_repair_whose_approval_is_not_on_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both = begun(monkeypatch)
    cancelled(run)
    run.ledger.gates._table.write(Write(keys.run(run.run_id), sets={"passed": {}}))
    with pytest.raises(RequestError, match="no approval of it is on record: nothing was taken back"):
        undo_of(run, both).plan()


def test_a_repair_that_is_not_over_is_not_taken_back_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    run, both = begun(monkeypatch)
    with pytest.raises(RequestError, match=r"is RUNNING\. Wait until it has ended"):
        undo_of(run, both).plan()
