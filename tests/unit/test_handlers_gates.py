"""The handlers at gates: asked, approved, rejected, too late, tampered with, woken for nothing; canaries."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from trueup.errors import GateRefused, RequestError, StoreUnavailable
from trueup.exits import Exit
from trueup.gating import Passage
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.base import canonical, sha256
from trueup.model.gate import Asked, Gate, Subject, SubjectKind
from trueup.model.ledger import Run
from trueup.model.states import GateStatus, PartitionStatus, Phase, RunStatus

from .handler_fakes import Execution
from .handler_world import World, dying_at, resumed
from .worker_cases import Died, job_file, job_of

BOB = "arn:aws:iam::123456789012:user/bob"
EVE = "arn:aws:iam::123456789012:user/eve"
G, R = GateStatus, RunStatus


def world(**approval: Any) -> World:
    """A world whose job asks before it writes."""
    return World(job_of(), job_file(approval={"required": True, "roles": ["user/bob"], **approval}))


def waiting(here: World, **request: Any) -> tuple[Run, Execution, Gate]:
    """A run that waits at its gate."""
    run = here.ask(**request)
    execution = here.execution(run)
    gate = here.wait(execution)
    return here.run(run.run_id), execution, gate


def decide(here: World, gate: Gate, to: GateStatus = G.APPROVED, who: str = BOB, why: str = "") -> Gate:
    """A person's word, and its wake-up."""
    told = here.ledger.gates.decide(gate.run_id, gate.name, to, who=who, sha256=gate.sha256, comment=why)
    here.gating.wake(told)
    return told


def at_rest(here: World, run_id: str) -> None:
    """Nothing of the run is left: no task, no lock, no gate that waits, no place on the sweep's list."""
    assert [] == list(here.ledger.tasks.of(run_id))
    assert run_id not in here.ledger.locks.get("numbers").holders
    assert run_id not in {gate.run_id for gate in here.ledger.gates.waiting()}
    assert run_id not in set(here.ledger.runs.unsettled())


def assert_ended(here: World, run: Run, status: RunStatus, why: str, rows: int = 0) -> None:
    """The run ended so, for this reason, with so many rows written."""
    run = here.run(run.run_id)
    assert (status, rows) == (run.status, len(here.job.sink.rows)), run.reason
    assert why in (run.reason or "")
    failed = status in (R.FAILED, R.ABORTED)
    assert ("FAILED" if failed else "SUCCEEDED") == here.execution(run).status
    at_rest(here, run.run_id)


def test_a_run_waits_for_its_plan_to_be_approved_with_nothing_written_and_no_task() -> None:
    here = world()
    run, _, gate = waiting(here)
    assert (G.OPEN, "plan", run.plan_sha256) == (gate.status, gate.kind, gate.sha256)
    assert ("apply", R.RUNNING) == (run.waits_at, run.status)
    assert ({}, 0, 0) == (here.ecs.tasks, run.epoch, len(here.job.sink.rows))


def test_people_are_told_what_waits_and_which_command_to_run_and_no_token() -> None:
    here = world()
    run, execution, gate = waiting(here)
    ((title, text),) = here.people.told
    assert "trueup: numbers waits for an approval" == title
    for said in (
        gate.sha256,
        run.run_id,
        "user/bob",
        f"trueup approve {run.run_id} apply",
        "2026-01-02 00:00:00",
    ):
        assert said in text
    assert execution.token
    assert execution.token not in text


def test_approved_by_a_second_person_the_run_goes_on_to_its_end() -> None:
    here = world()
    run, execution, gate = waiting(here)
    decide(here, gate)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)
    assert G.SPENT is here.ledger.gates.get(run.run_id, "apply").status
    trail = [one.verb for one in here.ledger.audit.of(run.run_id) if one.subject == "gate apply"]
    assert ["approve", "ask", "spend"] == sorted(trail)


def test_a_sample_is_rehearsed_before_anybody_is_asked() -> None:
    here = world()
    run, execution, gate = waiting(here, sample=2)
    assert 2 == here.ledger.verdicts.counts(run.run_id, Phase.REHEARSE).tally().partitions
    decide(here, gate)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_a_dry_run_asks_nobody() -> None:
    here = world(canary=1)
    run = here.ask(dryRun=True)
    here.play(here.execution(run))
    assert_ended(here, run, R.SUCCEEDED, "")
    assert [] == list(here.ledger.gates.of(run.run_id))


@pytest.mark.parametrize("who", [BOB, "ann"], ids=["an approver", "the requester"])
def test_rejected_the_run_ends_cancelled_with_the_reason(who: str) -> None:
    here = world()
    run, execution, gate = waiting(here)
    decide(here, gate, G.REJECTED, who, why="not on a Friday")
    here.play(execution)
    assert_ended(here, run, R.CANCELLED, "rejected at gate apply: not on a Friday")
    (stop,) = [one for one in here.ledger.audit.of(run.run_id) if one.verb == "stop:cancelled"]
    assert who == stop.who


def test_woken_without_a_decision_it_waits_again_and_applies_nothing() -> None:
    here = world()
    run, execution, gate = waiting(here)
    for _ in range(3):
        here.people.wake(execution.token or "")
        assert gate.sha256 == here.wait(execution).sha256
    assert ({}, 0) == (here.ecs.tasks, len(here.job.sink.rows))
    decide(here, gate)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_nobody_decides_and_the_run_ends_aborted_by_its_own_timeout() -> None:
    here = world(expiresHours=2)
    run, execution, _ = waiting(here)
    assert 7200 == (execution.told or {})["seconds"]
    here.time_out(execution)
    here.play(execution)
    assert_ended(
        here, run, R.ABORTED, "gate apply expired at 2026-01-01 02:00:00 UTC: nobody approved it in time"
    )
    assert G.EXPIRED is here.ledger.gates.get(run.run_id, "apply").status


def test_a_timeout_that_comes_early_waits_for_what_is_left() -> None:
    here = world()
    _, execution, _ = waiting(here)
    here.clock.pass_(86_000)
    here.people.wake(execution.token or "")
    here.wait(execution)
    assert 400 == (execution.told or {})["seconds"]


def test_approved_and_not_begun_in_time_the_run_ends_aborted() -> None:
    here = world()
    run, execution, gate = waiting(here)
    here.people.unreachable = True
    decide(here, gate)
    here.people.unreachable = False
    here.time_out(execution)
    here.play(execution)
    assert_ended(here, run, R.ABORTED, "was approved and not begun in time")


def test_a_wake_up_that_was_lost_is_sent_again_by_the_sweep() -> None:
    here = world()
    run, execution, gate = waiting(here)
    here.people.unreachable = True
    decide(here, gate)
    here.people.unreachable = False
    here.step(execution)
    assert execution.token not in here.people.woken
    here.swept()
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_the_sweep_wakes_nobody_who_has_to_wait() -> None:
    here = world()
    waiting(here)
    here.swept()
    assert set() == here.people.woken


def test_decided_while_the_execution_was_about_to_wait_it_is_woken_at_once() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    while (execution.told or {}).get("do") != "approve":
        here.step(execution)
    decide(here, here.ledger.gates.get(run.run_id, "apply"))
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)
    assert [] == here.people.told


def test_people_that_cannot_be_told_are_told_when_it_is_asked_again() -> None:
    here = world()
    run = here.ask()
    here.step(here.execution(run))
    here.step(here.execution(run))
    told = here.execution(run).told or {}
    event = {**here.execution(run).data, "gate": told["gate"], "sha256": told["sha256"]}
    tell, here.people.tell = here.people.tell, unreachable  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        here.ask_people.handle({**event, "token": "one"})
    here.people.tell = tell  # type: ignore[method-assign]
    assert {"did": "asked"} == here.ask_people.handle({**event, "token": "two"})
    assert ("two", 1) == (here.ledger.gates.get(run.run_id, "apply").token, len(here.people.told))


def unreachable(title: str, text: str) -> None:
    """SNS is not there."""
    raise StoreUnavailable("SNS did not do what was asked.")


def closed_by(here: World, run: Run, goal: RunStatus) -> None:
    """A verb of an operator's."""
    here.ledger.runs.stop(run.run_id, goal, who="ann", why="because")


@pytest.mark.parametrize("goal", [R.PAUSED, R.CANCELLED])
def test_a_run_that_is_closed_while_it_waits_lets_its_execution_end(goal: RunStatus) -> None:
    here = world()
    run, execution, gate = waiting(here)
    closed_by(here, run, goal)
    here.swept()
    here.play(execution)
    assert (goal, "SUCCEEDED") == (here.run(run.run_id).status, execution.status)
    left = G.OPEN if goal is R.PAUSED else G.WITHDRAWN
    assert left is here.ledger.gates.get(run.run_id, "apply").status
    if goal is R.CANCELLED:
        with pytest.raises(GateRefused):
            decide(here, here.ledger.gates.get(gate.run_id, "apply"))


def test_a_new_generation_that_finds_the_gate_decided_does_not_wait() -> None:
    here = world()
    run, execution, gate = waiting(here)
    closed_by(here, run, R.PAUSED)
    here.swept()
    here.play(execution)
    decide(here, gate)
    execution = resumed(here, run)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)
    assert (1, 2) == (len(here.people.told), here.ledger.gates.get(run.run_id, "apply").spent_by)


def test_a_new_generation_that_finds_it_undecided_replaces_the_token() -> None:
    here = world()
    run, execution, gate = waiting(here)
    old = execution.token
    closed_by(here, run, R.PAUSED)
    here.swept()
    here.play(execution)
    execution = resumed(here, run)
    here.wait(execution)
    now = here.ledger.gates.get(run.run_id, "apply")
    assert (execution.token, 2, gate.opened_at) == (now.token, now.generation, now.opened_at)
    assert old != now.token
    decide(here, now)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_a_later_generation_goes_on_under_the_approval_however_late_it_is() -> None:
    here = world(expiresHours=1)
    run, execution, gate = waiting(here)
    decide(here, gate)
    here.launched(execution)
    closed_by(here, run, R.PAUSED)
    here.abort(execution)
    for _ in range(9):
        here.swept()
    assert R.PAUSED is here.run(run.run_id).status
    here.clock.pass_(7200)
    execution = resumed(here, here.run(run.run_id))
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


# Tampering between the approval and the start, and what else an approval is no approval for.


def changed_plan(here: World, run: Run, gate: Gate) -> None:
    plan = json.loads(here.artifacts.store.get(run.plan_key))
    here.artifacts.store.put(run.plan_key, canonical({**plan, "params": {"all": True}}))


def changed_code(here: World, run: Run, gate: Gate) -> None:
    plan = json.loads(here.artifacts.store.get(run.plan_key))
    plan["writeCode"]["imageDigest"] = "sha256:" + "e" * 64
    here.artifacts.store.put(run.plan_key, canonical(plan))


def changed_partitions(here: World, run: Run, gate: Gate) -> None:
    key = here.artifacts.plan_of(run).partitions.key
    here.artifacts.store.put(key, here.artifacts.store.get(key).replace(b"item=a", b"item=x"))


def plan_is_gone(here: World, run: Run, gate: Gate) -> None:
    here.artifacts.store._objects.pop(run.plan_key)  # type: ignore[attr-defined]


def changed_plan_and_hash(here: World, run: Run, gate: Gate) -> None:
    """Consistently: a plan of that hash, and a run that names it."""
    plan = json.loads(here.artifacts.store.get(run.plan_key))
    data = canonical({**plan, "params": {"all": True}})
    here.artifacts.store.put(run.plan_key, data)
    here.table.write(Write(keys.run(run.run_id), sets={"planSha256": sha256(data)}))


def forged_approval(here: World, run: Run, gate: Gate) -> None:
    sets = {"status": "OPEN", "decidedBy": EVE}
    here.table.write(Write(keys.gate(run.run_id, "apply"), sets={**sets, "status": "APPROVED"}))


@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        (changed_plan, "It was changed after it was hashed"),
        (changed_code, "It was changed after it was hashed"),
        (changed_partitions, "It was changed after it was hashed"),
        (plan_is_gone, "plan.json"),
        (forged_approval, "none of those whose word counts"),
    ],
)
def test_tampering_between_approval_and_start_stops_the_run(
    tamper: Callable[[World, Run, Gate], None], says: str
) -> None:
    here = world()
    run, execution, gate = waiting(here)
    here.ledger.gates.decide(run.run_id, "apply", G.APPROVED, who=BOB, sha256=gate.sha256)
    tamper(here, run, gate)
    here.people.wake(execution.token or "")
    here.play(execution)
    assert_ended(here, run, R.FAILED, says)
    assert {} == here.ecs.tasks


def test_an_approval_is_of_one_plan_and_another_one_is_asked_about_anew() -> None:
    here = world()
    run, execution, gate = waiting(here)
    decide(here, gate)
    changed_plan_and_hash(here, run, gate)
    again = here.wait(execution)
    assert (G.OPEN, None) == (again.status, again.decided_by)
    assert gate.sha256 != again.sha256
    assert {} == here.ecs.tasks


def test_a_task_that_was_started_around_the_gate_writes_nothing() -> None:
    here = world()
    run, execution, gate = waiting(here)
    decide(here, gate)
    child = here.fan_out(execution)[0]
    here.table.write(Write(keys.run(run.run_id), sets={"passed": {}}))
    here.step_child(child)
    task = here.launch(child)
    while task.ended is None:
        task.step()
    assert (Exit.BAD_INPUT, 0) == (task.ended.exit_code, len(here.job.sink.rows))


def test_whoever_dies_after_any_write_the_run_ends_as_it_should() -> None:
    for number in range(1, 7):  # the plan's, the gate's five, and that of the lock; then come tasks
        here = world()
        run = here.ask()
        execution = here.execution(run)
        dying_at(here, number)
        for _ in range(300):
            try:
                here._turn(execution)
                for gate in here.ledger.gates.of(run.run_id):
                    if gate.is_waiting and gate.token:
                        decide(here, gate)
            except Died:
                here.swept()
            if execution.status != "RUNNING":
                break
        assert_ended(here, run, R.SUCCEEDED, "", rows=36)


# Canary


def accepted(here: World, run: Run) -> list[str]:
    """The partitions that were accepted."""
    items = here.ledger.partitions.all(run.run_id, Phase.APPLY)
    return sorted(one.partition_id for one in items if one.status is PartitionStatus.ACCEPTED)


def test_a_canary_is_applied_for_real_and_then_the_rest_of_the_same_run() -> None:
    here = World(job_of(), job_file(approval={"canary": 1}))
    run, execution, gate = waiting(here)
    assert (["item=a"], 12, "canary") == (accepted(here, run), len(here.job.sink.rows), gate.kind)
    canary = json.loads(here.artifacts.check(gate.key, gate.sha256))
    assert (run.plan_sha256, 3) == (canary["planSha256"], canary["of"])
    assert [("item=a", "ACCEPTED", 12)] == [
        (one["partitionId"], one["status"], one["records"]["written"]) for one in canary["partitions"]
    ]
    assert [] == list(here.ledger.tasks.of(run.run_id))
    decide(here, gate)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)
    assert 1 == run.generation


def test_a_request_may_ask_for_a_canary_which_is_the_first_of_the_plan() -> None:
    here = World(job_of(), job_file(order="newest"))
    run, _, _ = waiting(here, canary=2)
    assert ["item=b", "item=c"] == accepted(here, run)
    assert 2 == here.artifacts.plan_of(run).job.approval.canary


def test_a_canary_of_everything_leaves_nothing_to_ask() -> None:
    here = World(job_of(), job_file(approval={"canary": 3}))
    run = here.ask()
    here.play(here.execution(run))
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_plan_and_canary_have_a_gate_each() -> None:
    here = world(canary=1)
    run, execution, gate = waiting(here)
    decide(here, gate)
    canary = here.wait(execution)
    assert ["apply", "canary"] == [gate.name, canary.name]
    assert 12 == len(here.job.sink.rows)
    with pytest.raises(GateRefused):
        here.ledger.gates.decide(run.run_id, "canary", G.APPROVED, who=BOB, sha256=gate.sha256)
    decide(here, canary)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)


def test_a_canary_that_fails_ends_the_run_and_asks_nobody() -> None:
    here = World(job_of(transform=lambda self, record: 1 / 0), job_file(approval={"canary": 1}))
    run = here.ask()
    here.play(here.execution(run))
    assert_ended(here, run, R.FAILED, "1 of 1 partitions did not make it in the canary")
    assert [] == list(here.ledger.gates.of(run.run_id))


def test_a_canary_that_is_rejected_stays_and_nothing_follows_it() -> None:
    here = World(job_of(), job_file(approval={"canary": 1}))
    run, execution, gate = waiting(here)
    decide(here, gate, G.REJECTED, why="wrong currency")
    here.play(execution)
    assert_ended(here, run, R.CANCELLED, "rejected at gate canary: wrong currency", rows=12)


def test_a_dry_run_has_no_canary() -> None:
    here = World(job_of(), job_file())
    with pytest.raises(RequestError, match="a dry run writes nothing"):
        here.ask(dryRun=True, canary=1)


# Reports, which reconciliations will ask about.


def report_of(here: World, run: Run, name: str = "repair") -> Asked:
    """A gate about a report that the run stored."""
    data = canonical({"runId": run.run_id, "verdict": "DRIFT"})
    key = f"runs/{run.run_id}/reconciliation.json"
    here.artifacts.store.put(key, data)
    return Asked(name=name, subject=Subject(kind=SubjectKind.REPORT, key=key, sha256=sha256(data)))


def test_a_newer_report_about_the_same_supersedes_one_that_nobody_signed() -> None:
    here = World(job_of(), job_file())
    first, other, apart = here.ask(), here.ask(requestId="r-2"), here.ask(requestId="r-3", keys=["x"])
    old = report_of(here, first)
    assert Passage(is_open=False, waits=86_400) == here.gating.through(first, old)
    here.ledger.gates.wait(first, "repair", old.subject.sha256, "first")
    here.gating.through(apart, report_of(here, apart))
    here.clock.pass_(1)
    here.gating.through(other, report_of(here, other))
    found = here.ledger.gates.get(first.run_id, "repair")
    assert (G.SUPERSEDED, other.run_id) == (found.status, found.superseded_by)
    assert G.OPEN is here.ledger.gates.get(apart.run_id, "repair").status
    assert {"first"} == here.people.woken
    here.gating.through(here.run(first.run_id), old)
    run = here.run(first.run_id)
    assert (R.STOPPING, R.CANCELLED) == (run.status, run.goal)
    assert f"run {other.run_id} has a newer report" in (run.reason or "")
    here.clock.pass_(1)
    here.gating.through(here.run(other.run_id), report_of(here, other))
    assert G.OPEN is here.ledger.gates.get(other.run_id, "repair").status


def test_what_is_asked_about_is_looked_at_again_by_whoever_lets_a_run_through() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    asked = report_of(here, run)
    here.gating.through(run, asked)
    here.ledger.gates.decide(run.run_id, "repair", G.APPROVED, who=BOB, sha256=asked.subject.sha256)
    here.artifacts.store.put(asked.subject.key, b"{}")
    assert not here.gating.through(run, asked).is_open
    assert (R.STOPPING, R.FAILED) == (here.run(run.run_id).status, here.run(run.run_id).goal)
    assert G.APPROVED is here.ledger.gates.get(run.run_id, "repair").status


def test_a_report_that_was_signed_stays_signed_whatever_is_found_later() -> None:
    here = World(job_of(), job_file())
    first, other = here.ask(), here.ask(requestId="r-2")
    old = report_of(here, first)
    here.gating.through(first, old)
    here.ledger.gates.decide(first.run_id, "repair", G.APPROVED, who=BOB, sha256=old.subject.sha256)
    here.clock.pass_(1)
    here.gating.through(other, report_of(here, other))
    assert here.gating.through(first, old).is_open


def test_waiting_at_a_gate_uses_up_none_of_the_hours_that_a_run_may_be_open() -> None:
    approval = {"required": True, "expiresHours": 100}
    here = World(job_of(), job_file(approval=approval, abort=[{"of": "hours", "above": 1, "unit": "hours"}]))
    run, execution, gate = waiting(here)
    here.clock.pass_(timedelta(hours=50).total_seconds())
    assert "running" == here.swept()["did"][run.run_id]
    decide(here, gate)
    here.play(execution)
    assert_ended(here, run, R.SUCCEEDED, "", rows=36)
