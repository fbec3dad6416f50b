"""Repairs whose run ends before they do: what was done is told, kept as evidence, and can be taken back."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.errors import RequestError
from trueup.jobs import Reconcile
from trueup.model.states import Phase, RunStatus
from trueup.reporting import Reports
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
    assert {one.location for one in run.repaired.objects} <= named


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
    with pytest.raises(RequestError, match="repaired nothing"):
        LocalRun(Reconcile, run.job, rows=both, approver="zoe", undoes=run).plan()
