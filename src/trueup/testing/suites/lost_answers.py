"""Whatever answer is lost, the caller asks again and the ledger is as if it had not been."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from trueup.ledger import Decision, Ledger
from trueup.ledger.table import Table
from trueup.model.base import Value
from trueup.model.ledger import PartitionItem
from trueup.model.states import GateStatus, PartitionStatus, RunStatus
from trueup.model.verification import VerifiedBy
from trueup.testing.suites.gates import BOB, ROLES, asked
from trueup.testing.suites.history import a_word
from trueup.testing.suites.support import (
    APPLY,
    LossyTable,
    Scene,
    a_run,
    a_task,
    checkpoint,
    entry_of,
    insist,
)

P, R = PartitionStatus, RunStatus
SHA256 = "d" * 64
TIMES = ("takenAt", "updatedAt", "at", "decidedAt", "spentAt", "openedAt")

Call = Callable[[Ledger], Any]
Prepare = Callable[[Scene], Call]


def _create(scene: Scene) -> Call:
    run = a_run()
    scene.run, scene.run_id = run, run.run_id
    return lambda ledger: ledger.runs.create(run)


def _pin(scene: Scene) -> Call:
    run = scene.ledger.runs.create(a_run(plan_key="", plan_sha256="", partitions=0))
    scene.run, scene.run_id = run, run.run_id
    return lambda ledger: ledger.runs.pin(run, "plan.json", "1" * 64, 3)


def _verify(scene: Scene) -> Call:
    run = scene.ledger.runs.create(a_run(verification=VerifiedBy(job="check")))
    scene.run, scene.run_id = run, run.run_id
    by = VerifiedBy(job="check", run_id="check-1")
    return lambda ledger: ledger.runs.verify(ledger.runs.get(run.run_id), by, who="settler")


def _settled(scene: Scene) -> Call:
    scene.succeed()
    return lambda ledger: ledger.runs.settled(scene.run_id)


def _launch_ended(scene: Scene) -> Call:
    told = {"subject": "apply: slice 7, launch 1", "how": "exit code 0", "answer": "done"}
    return lambda ledger: ledger.audit.launch_ended(scene.run_id, 1, **told)


def _stop(scene: Scene) -> Call:
    return lambda ledger: ledger.runs.stop(scene.run_id, R.FAILED, who="ann", why="because")


def _finish(scene: Scene) -> Call:
    scene.ledger.runs.stop(scene.run_id, R.FAILED, who="ann", why="because")
    return lambda ledger: ledger.runs.finish(scene.run_id, R.FAILED, who="settler")


def _register(scene: Scene) -> Call:
    return lambda ledger: ledger.tasks.register(scene.run_id, a_task())


def _end_launch(scene: Scene) -> Call:
    return lambda ledger: ledger.tasks.end_launch(scene.run_id, 1)


def _beat(scene: Scene) -> Call:
    scene.ledger.tasks.register(scene.run_id, a_task())
    now = a_task().model_copy(update={"partition": "p"})
    return lambda ledger: ledger.tasks.beat(scene.run_id, now)


def _proved_stopped(scene: Scene) -> Call:
    scene.ledger.tasks.register(scene.run_id, a_task())
    return lambda ledger: ledger.tasks.proved_stopped(scene.run_id, a_task())


def _take(scene: Scene) -> Call:
    return lambda ledger: ledger.partitions.take(scene.owner(), "p").item


def _take_over(scene: Scene) -> Call:
    scene.advance(scene.take(launch=1), 5)
    return lambda ledger: ledger.partitions.take(scene.owner(2, "task-b"), "p").item


def _advance(scene: Scene) -> Call:
    item = scene.advance(scene.take(), 5)
    to = checkpoint(8, skipped={"no date": 1}, reject_parts=("1.jsonl",))
    return lambda ledger: ledger.partitions.advance(scene.owner(), item, to)


def _report(scene: Scene) -> Call:
    item = scene.advance(scene.take(), 5)
    return lambda ledger: ledger.partitions.report(scene.owner(), item, entry_of(item))


def _interrupt(scene: Scene) -> Call:
    scene.take(launch=1)
    item = scene.take(launch=2)
    return lambda ledger: ledger.partitions.interrupt(scene.owner(2), item, "SIGTERM")


def _forgive(scene: Scene) -> Call:
    scene.take(launch=1)
    item = scene.take(launch=2)
    return lambda ledger: ledger.partitions.forgive(scene.run_id, APPLY, item)


def _fault(scene: Scene) -> Call:
    return lambda ledger: ledger.partitions.fault(scene.run_id, APPLY, "p", 1)


def _idled(scene: Scene) -> Call:
    return lambda ledger: ledger.partitions.idled(scene.run_id, APPLY, "p", 1)


def _decide(scene: Scene) -> Call:
    worked = [Decision(scene.worked(name, 5), P.ACCEPTED) for name in "abc"]
    others = [Decision(PartitionItem(partition_id=name), P.FAILED) for name in "xyz"]
    return lambda ledger: _small(ledger).verdicts.decide(scene.run_id, APPLY, [*worked, *others])


def _decide_and_follow(scene: Scene) -> Call:
    ends = {"a": P.ACCEPTED, "b": P.FAILED, "c": P.REFUSED, "d": P.FAILED, "e": P.ACCEPTED, "f": P.REFUSED}
    todo = [Decision(scene.worked(name, 5), to) for name, to in ends.items()]
    return lambda ledger: _small(ledger).verdicts.decide(scene.run_id, APPLY, todo, follow_failures=True)


def _retry(scene: Scene) -> Call:
    names = ["x", "y"]
    scene.decide(*(PartitionItem(partition_id=name) for name in names), to=P.FAILED)
    names.append(scene.ended("refused", 5, to=P.REFUSED).partition_id)
    return lambda ledger: _small(ledger).verdicts.retry(scene.run_id, APPLY, names, who="ann", why="fixed")


def _small(ledger: Ledger) -> Ledger:
    """The ledger, with transactions so small that these calls take several."""
    ledger.verdicts.transaction_size = 4
    return ledger


def _skip(scene: Scene) -> Call:
    scene.ended("failed", 5, to=P.FAILED)
    return lambda ledger: ledger.verdicts.skip(scene.run_id, APPLY, ["failed", "p"], who="ann", why="empty")


def _lock(scene: Scene) -> Call:
    return lambda ledger: ledger.locks.take(scene.run)


def _leave(scene: Scene) -> Call:
    scene.ledger.locks.take(scene.run)
    scene.succeed()
    return lambda ledger: ledger.locks.leave(scene.run)


def _at_gate(scene: Scene) -> str:
    scene.ledger.gates.open(scene.run, asked(SHA256))
    scene.run = scene.ledger.runs.get(scene.run_id)
    return scene.run_id


def _ask(scene: Scene) -> Call:
    return lambda ledger: ledger.gates.open(scene.run, asked(SHA256))


def _await(scene: Scene) -> Call:
    _at_gate(scene)
    return lambda ledger: ledger.gates.wait(scene.run, "apply", SHA256, "token")


def _approve(scene: Scene) -> Call:
    _at_gate(scene)
    word = {"who": BOB, "sha256": SHA256, "comment": "fine"}
    return lambda ledger: ledger.gates.decide(scene.run_id, "apply", GateStatus.APPROVED, **word)


def _reject(scene: Scene) -> Call:
    _at_gate(scene)
    word = {"who": BOB, "sha256": SHA256, "comment": "no"}
    return lambda ledger: ledger.gates.decide(scene.run_id, "apply", GateStatus.REJECTED, **word)


def _spend(scene: Scene) -> Call:
    _approve(scene)(scene.ledger)
    return lambda ledger: ledger.gates.spend(ledger.runs.get(scene.run_id), "apply", SHA256, ROLES)


def _end_gate(scene: Scene) -> Call:
    gate = scene.ledger.gates.get(_at_gate(scene), "apply")
    return lambda ledger: ledger.gates.end(gate, GateStatus.EXPIRED, who="trueup:gate", why="late")


def _note(scene: Scene) -> Call:
    at = scene.run.created_at
    return lambda ledger: ledger.history.note(scene.run.target, "scope", scene.run_id, at, whole=True)


def _sign(scene: Scene) -> Call:
    known = a_word(scene.run)
    return lambda ledger: ledger.known.sign(scene.run, known, ())


# Every call of a ledger that writes, once at least.
WRITES: dict[str, list[Prepare]] = {
    "runs.create": [_create],
    "runs.pin": [_pin],
    "runs.verify": [_verify],
    "runs.settled": [_settled],
    "audit.launch_ended": [_launch_ended],
    "runs.stop": [_stop],
    "runs.finish": [_finish],
    "tasks.register": [_register],
    "tasks.end_launch": [_end_launch],
    "tasks.beat": [_beat],
    "tasks.proved_stopped": [_proved_stopped],
    "partitions.take": [_take, _take_over],
    "partitions.advance": [_advance],
    "partitions.report": [_report],
    "partitions.interrupt": [_interrupt],
    "partitions.forgive": [_forgive],
    "partitions.fault": [_fault],
    "partitions.idled": [_idled],
    "verdicts.decide": [_decide, _decide_and_follow],
    "verdicts.retry": [_retry],
    "verdicts.skip": [_skip],
    "gates.open": [_ask],
    "gates.wait": [_await],
    "gates.decide": [_approve, _reject],
    "gates.spend": [_spend],
    "gates.end": [_end_gate],
    "locks.take": [_lock],
    "locks.leave": [_leave],
    "history.note": [_note],
    "known.sign": [_sign],
}
# These draw from a supply, so an answer that was lost costs a number or some room: never less than that.
DRAWS = {"runs.next_launch", "runs.next_dispatch", "rates.reserve"}
READS = {
    "runs.get",
    "runs.unsettled",
    "runs.newest",
    "runs.many",
    "runs.of_request",
    "tasks.lives",
    "tasks.of",
    "tasks.of_slice",
    "partitions.get",
    "partitions.get_many",
    "partitions.all",
    "verdicts.counts",
    "verdicts.counts_by_phase",
    "verdicts.failed_in_a_row",
    "gates.find",
    "gates.get",
    "gates.of",
    "gates.waiting",
    "gates.check_passed",
    "locks.get",
    "history.of",
    "known.of",
    "known.check",
    "audit.of",
    "audit.after",
    "audit.entry",
}


def calls_of(ledger: Ledger) -> set[str]:
    """The name of every public call of a ledger."""
    return {
        f"{part}.{name}"
        for part, value in vars(ledger).items()
        for name, _ in inspect.getmembers(value, callable)
        if not name.startswith("_")
    }


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
