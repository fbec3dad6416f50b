"""The calls of a ledger that write, each with what has to be there before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from trueup.ledger import Decision, Ledger
from trueup.model.ledger import PartitionItem
from trueup.model.states import GateStatus, PartitionStatus, RunStatus
from trueup.model.verification import VerifiedBy
from trueup.testing.suites.gates import BOB, ROLES, asked
from trueup.testing.suites.history import a_word
from trueup.testing.suites.support import (
    APPLY,
    Scene,
    a_run,
    a_task,
    checkpoint,
    entry_of,
)

P, R = PartitionStatus, RunStatus
SHA256 = "d" * 64

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


def _downloaded(scene: Scene) -> Call:
    told: Any = {"who": "ann", "subject": "evidence: report", "location": "s3://b/k", "begins": False}
    return lambda ledger: ledger.audit.downloaded(scene.run_id, "f" * 64, **told)


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


def _withdraw(scene: Scene) -> Call:
    known = scene.ledger.known.sign(scene.run, a_word(scene.run), ())
    return lambda ledger: ledger.known.withdraw(known, who="ann", why="through", roles=())


# Every call of a ledger that writes, once at least.
WRITES: dict[str, list[Prepare]] = {
    "runs.create": [_create],
    "runs.pin": [_pin],
    "runs.verify": [_verify],
    "runs.settled": [_settled],
    "audit.launch_ended": [_launch_ended],
    "audit.downloaded": [_downloaded],
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
    "known.withdraw": [_withdraw],
}
# These draw from a supply, so an answer that was lost costs a number or some room: never less than that.
DRAWS = {"runs.next_launch", "runs.next_dispatch", "rates.reserve"}
READS = {
    "runs.get",
    "runs.unsettled",
    "runs.newest",
    "runs.many",
    "runs.of_request",
    "tasks.forgotten",
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
    "known.get",
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
