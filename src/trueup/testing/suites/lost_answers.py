"""Whatever answer is lost, the caller asks again and the ledger is as if it had not been."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

import json
from functools import partial
from typing import Any

from trueup.ledger import Ledger
from trueup.ledger.table import Table
from trueup.model.base import Value
from trueup.testing.suites.history import a_word
from trueup.testing.suites.support import (
    APPLY,
    LossyTable,
    Scene,
    insist,
)
from trueup.testing.suites.writes import DRAWS, READS, WRITES, Prepare, calls_of

TIMES = ("takenAt", "updatedAt", "at", "decidedAt", "spentAt", "openedAt")


def state_of(scene: Scene) -> dict[str, Any]:
    """All that the ledger says of a scene, without the names and times that differ from scene to scene."""
    ledger, run_id = scene.ledger, scene.run_id
    found = {
        "run": ledger.runs.get(run_id),
        "tasks": list(ledger.tasks.of(run_id)),
        "partitions": list(ledger.partitions.all(run_id, APPLY)),
        "counts": ledger.verdicts.counts(run_id),
        "row": ledger.verdicts.failed_in_a_row(run_id),
        "listed": run_id in set(ledger.runs.unsettled()),
        "gates": list(ledger.gates.of(run_id)),
        "waits": run_id in {gate.run_id for gate in ledger.gates.waiting()},
        "lock": ledger.locks.get(scene.run.target),
        "history": ledger.history.of(scene.run.target, "scope"),
        "known": list(ledger.known.of(scene.run.target, scene.run.created_at)),
        "audit": list(ledger.audit.of(run_id)),
    }
    plain: dict[str, Any] = _anonymous(scene, found)
    return plain


def _anonymous(scene: Scene, value: Any) -> Any:
    text = json.dumps(value, default=lambda part: part.document() if isinstance(part, Value) else str(part))
    # What a word's hash is of holds names, too.
    text = text.replace(a_word(scene.run).hash(), "WORD")
    for name, of in (("RUN", scene.run_id), ("TARGET", scene.run.target), ("REQUEST", scene.run.request_id)):
        text = text.replace(of, name)
    return json.loads(text, object_hook=_timeless)


def _timeless(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in TIMES}


class LostAnswerSuite:
    """One answer is lost, wherever in the call; the caller asks again."""

    def test_every_call_of_the_ledger_is_accounted_for_here(self, table: Table) -> None:
        assert set(WRITES) | DRAWS | READS == calls_of(Ledger(table))

    def test_no_lost_answer_changes_what_creating_a_run_does(self, table: Table) -> None:
        self._survives(table, "runs.create")

    def test_no_lost_answer_changes_what_stopping_a_run_does(self, table: Table) -> None:
        self._survives(table, "runs.stop")

    def test_no_lost_answer_changes_what_ending_a_run_does(self, table: Table) -> None:
        self._survives(table, "runs.finish")

    def test_no_lost_answer_changes_what_telling_of_a_download_does(self, table: Table) -> None:
        self._survives(table, "audit.downloaded")

    def test_no_lost_answer_changes_what_registering_does(self, table: Table) -> None:
        self._survives(table, "tasks.register")

    def test_no_lost_answer_changes_what_a_beat_does(self, table: Table) -> None:
        self._survives(table, "tasks.beat")

    def test_no_lost_answer_changes_what_a_proof_of_stopping_does(self, table: Table) -> None:
        self._survives(table, "tasks.proved_stopped")

    def test_no_lost_answer_changes_what_a_take_does(self, table: Table) -> None:
        self._survives(table, "partitions.take")

    def test_no_lost_answer_changes_what_an_advance_does(self, table: Table) -> None:
        self._survives(table, "partitions.advance")

    def test_no_lost_answer_changes_what_a_report_does(self, table: Table) -> None:
        self._survives(table, "partitions.report")

    def test_no_lost_answer_changes_what_an_interruption_does(self, table: Table) -> None:
        self._survives(table, "partitions.interrupt")

    def test_no_lost_answer_changes_what_forgiving_does(self, table: Table) -> None:
        self._survives(table, "partitions.forgive")

    def test_no_lost_answer_changes_what_counting_a_fault_does(self, table: Table) -> None:
        self._survives(table, "partitions.fault")

    def test_no_lost_answer_changes_what_counting_an_idle_launch_does(self, table: Table) -> None:
        self._survives(table, "partitions.idled")

    def test_no_lost_answer_changes_what_decisions_does(self, table: Table) -> None:
        self._survives(table, "verdicts.decide")

    def test_no_lost_answer_changes_what_a_retry_does(self, table: Table) -> None:
        self._survives(table, "verdicts.retry")

    def test_no_lost_answer_changes_what_a_skip_does(self, table: Table) -> None:
        self._survives(table, "verdicts.skip")

    def test_no_lost_answer_changes_what_asking_at_a_gate_does(self, table: Table) -> None:
        self._survives(table, "gates.open")

    def test_no_lost_answer_changes_what_waiting_at_a_gate_does(self, table: Table) -> None:
        self._survives(table, "gates.wait")

    def test_no_lost_answer_changes_what_deciding_does(self, table: Table) -> None:
        self._survives(table, "gates.decide")

    def test_no_lost_answer_changes_what_passing_a_gate_does(self, table: Table) -> None:
        self._survives(table, "gates.spend")

    def test_no_lost_answer_changes_what_ending_a_gate_does(self, table: Table) -> None:
        self._survives(table, "gates.end")

    def test_no_lost_answer_changes_what_taking_a_lock_does(self, table: Table) -> None:
        self._survives(table, "locks.take")

    def test_no_lost_answer_changes_what_leaving_a_lock_does(self, table: Table) -> None:
        self._survives(table, "locks.leave")

    def test_no_lost_answer_changes_what_noting_a_reconciliation_does(self, table: Table) -> None:
        self._survives(table, "history.note")

    def test_no_lost_answer_changes_what_signing_known_differences_does(self, table: Table) -> None:
        self._survives(table, "known.sign")

    def test_no_lost_answer_changes_what_withdrawing_known_differences_does(self, table: Table) -> None:
        self._survives(table, "known.withdraw")

    def _survives(self, table: Table, name: str) -> None:
        for prepare in WRITES[name]:
            scene = Scene(table)
            answer = _anonymous(scene, prepare(scene)(scene.ledger))
            self._compare(table, prepare, answer, state_of(scene))

    def _compare(self, table: Table, prepare: Prepare, answer: Any, state: dict[str, Any]) -> None:
        for lose in range(100):
            scene = Scene(table)
            call = prepare(scene)
            lossy = LossyTable(table, lose)
            told = insist(partial(call, Ledger(lossy, scene.clock)))
            assert (lose, state) == (lose, state_of(scene))
            assert (lose, answer) == (lose, _anonymous(scene, told))
            if not lossy.lost:
                assert lose > 0, "it asked nothing of the table"
                return

    def test_a_launch_number_whose_answer_was_lost_is_never_issued_again(self, table: Table) -> None:
        scene = Scene(table)
        ledger = Ledger(LossyTable(table, 1), scene.clock)
        drawn = [insist(lambda: ledger.runs.next_launch(scene.run_id, 1)) for _ in range(3)]
        assert [1, 3, 4] == drawn

    def test_room_whose_answer_was_lost_is_not_given_twice(self, table: Table) -> None:
        for lose in range(4):
            scene = Scene(table)
            ledger = Ledger(LossyTable(table, lose), scene.clock)
            reserve = partial(ledger.rates.reserve, scene.run_id, 10, 6.0, 1000.0)
            waits = [insist(reserve) for _ in range(4)]
            assert waits.count(0.0) in (2, 3), lose
