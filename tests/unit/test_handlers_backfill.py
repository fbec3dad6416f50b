"""The handlers in the machine's order: plan, open, work, settle, over; rehearsed, refused and redriven."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest

from trueup.errors import ArtifactError, RequestError
from trueup.model.ledger import Run
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.platform import Ended

from .handler_fakes import READ, WRITE
from .handler_world import World, dying_at, left_by, resumed
from .worker_cases import Died, job_file, job_of


def world(**sections: Any) -> World:
    """A world with the small job of the worker's tests."""
    return World(job_of(), job_file(**sections))


def accepted(here: World, run_id: str, phase: Phase = Phase.APPLY) -> int:
    """Partitions accepted in a phase."""
    return here.ledger.verdicts.counts(run_id, phase).tally(PartitionStatus.ACCEPTED).partitions


def at_rest(here: World, run_id: str) -> None:
    """Nothing of the run is left: no task, no lock, no place on the sweep's list."""
    assert [] == list(here.ledger.tasks.of(run_id))
    assert run_id not in here.ledger.locks.get("numbers").holders
    assert run_id not in set(here.ledger.runs.unsettled())


def test_a_request_becomes_a_run_that_is_planned_worked_and_ended() -> None:
    here = world(limits={"max_concurrency": 2})
    run = here.ask()
    assert (RunStatus.RUNNING, f"{run.run_id}-1", False) == (run.status, run.execution, run.is_planned)
    here.play(here.execution(run))
    run = here.run(run.run_id)
    assert (RunStatus.SUCCEEDED, 3, 36) == (run.status, accepted(here, run.run_id), len(here.job.sink.rows))
    assert "SUCCEEDED" == here.execution(run).status
    at_rest(here, run.run_id)


def test_the_plan_pins_both_codes_and_the_fan_out_runs_the_one_that_writes() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    for _ in range(2):
        here.step(execution)
    plan = here.artifacts.plan_of(here.run(run.run_id))
    assert (READ, WRITE) == (plan.read_code, plan.write_code)
    assert execution.told is not None
    found = execution.told["input"]
    assert (WRITE.task_definition, "exit", 1800) == (
        found["task"]["definition"],
        found["task"]["wait"],
        found["task"]["timeoutSeconds"],
    )
    assert f"{run.run_id}-1-apply-1" == execution.told["name"]
    key = found["dispatch"]["key"]
    assert here.artifacts.store.version(key) == found["dispatch"]["versionId"]


def test_how_every_launch_ended_is_on_the_trail_once() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    child = here.launched(execution)
    here.hear(child, {"Error": "ECS.ThrottlingException", "Cause": "Rate exceeded"})
    here.step_child(child)
    here.clock.pass_(1)
    here.play(execution)
    ends = [entry for entry in here.ledger.audit.of(run.run_id) if entry.verb == "launch-ended"]
    refused = "the launch was refused: ECS.ThrottlingException: Rate exceeded"
    assert [
        ("apply: slice 0, launch 1", refused, "again"),
        ("apply: slice 0, launch 2", "exit code 0", "done"),
    ] == [(entry.subject, entry.why, entry.after) for entry in ends]


def test_a_dry_run_only_rehearses_under_the_code_that_reads() -> None:
    here = world()
    run = here.ask(dryRun=True)
    here.play(here.execution(run))
    assert (RunStatus.SUCCEEDED, 3, 0) == (
        here.run(run.run_id).status,
        accepted(here, run.run_id, Phase.REHEARSE),
        len(here.job.sink.rows),
    )
    assert here.ledger.locks.get("numbers").epoch == 0
    at_rest(here, run.run_id)


def test_a_sample_is_rehearsed_before_everything_is_applied() -> None:
    here = world()
    run = here.ask(sample=2)
    here.play(here.execution(run))
    assert RunStatus.SUCCEEDED == here.run(run.run_id).status
    assert (2, 3) == (accepted(here, run.run_id, Phase.REHEARSE), accepted(here, run.run_id))
    at_rest(here, run.run_id)


def test_a_sample_that_fails_keeps_everything_from_being_applied() -> None:
    here = World(job_of(transform=lambda self, record: 1 / 0), job_file())
    run = here.ask(sample=1)
    here.play(here.execution(run))
    run = here.run(run.run_id)
    assert (RunStatus.FAILED, "1 of 1 partitions did not make it in the phase rehearse") == (
        run.status,
        run.reason,
    )
    assert (0, "FAILED") == (len(here.job.sink.rows), here.execution(run).status)
    at_rest(here, run.run_id)


def test_two_runs_whose_windows_overlap_do_not_work_at_once() -> None:
    here = world()
    first = here.ask()
    for _ in range(2):
        here.step(here.execution(first))
    second = here.ask(requestId="r-2", keys=["c", "d"])
    third = here.ask(requestId="r-3", keys=["x"])
    here.play(here.execution(second))
    here.play(here.execution(third))
    here.play(here.execution(first))
    second = here.run(second.run_id)
    assert RunStatus.FAILED == second.status
    assert f"Run {first.run_id} holds" in (second.reason or "")
    assert [RunStatus.SUCCEEDED] * 2 == [here.run(one.run_id).status for one in (first, third)]
    for run in (first, second, third):
        at_rest(here, run.run_id)


def test_a_window_with_nothing_in_it_ends_the_run_with_the_reason() -> None:
    here = world(partitions={"by": "s3-prefix", "prefix": "s3://bucket/in/"})
    run = here.run(here.start.handle({"job": "numbers", "requestId": "r", "requester": "ann"})["runId"])
    here.play(here.execution(run))
    run = here.run(run.run_id)
    assert RunStatus.FAILED == run.status
    assert "there is nothing to do" in (run.reason or "")
    at_rest(here, run.run_id)


def test_an_image_that_can_never_be_pulled_ends_the_run_with_the_cause() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    cause = Ended(stop_code="TaskFailedToStart", reason="CannotPullContainerError: not found")
    for _ in range(100):
        here.step(execution)
        for child in execution.children:
            if child.at == "run":
                here.hear(child, left_by(cause))
            else:
                here.step_child(child)
    run = here.run(run.run_id)
    assert (RunStatus.FAILED, 2) == (run.status, run.launches)
    item = here.ledger.partitions.get(run.run_id, Phase.APPLY, "item=b")
    assert item.error is not None
    assert "CannotPullContainerError" in item.error.message
    at_rest(here, run.run_id)


def test_of_dispatches_that_move_nothing_two_in_a_row_end_the_run() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    for _ in range(2):
        execution.children = []  # The Map failed before any child began, say for want of a permission.
        here.step(execution)
        here.step(execution)
    here.play(execution)
    run = here.run(run.run_id)
    assert (RunStatus.FAILED, "dispatches 1 to 2 of apply moved nothing") == (run.status, run.reason)
    at_rest(here, run.run_id)


def test_a_redrive_before_the_first_checkpoint_costs_nothing() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    execution.children = []  # The fan-out's name is taken, so the redriven state is left at once.
    here.step(execution)
    here.play(execution)
    assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, accepted(here, run.run_id))


@pytest.mark.parametrize("stuck", [False, True])
def test_a_task_that_hangs_before_it_registers_is_stopped_and_proved(stuck: bool) -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    (child,) = execution.children
    for _ in range(2):
        here.step_child(child)
    hung = child.task
    assert hung is not None
    hung.loop, hung.stuck = repeat("hangs"), stuck
    here.hear(child, {"Error": "States.Timeout", "Cause": ""})
    answers = []
    while child.at == "accept":
        here.step_child(child)
        answers.append(child.answer)
    assert ["stopping"] * (3 if stuck else 1) + ["again"] == answers
    assert hung.ended is not None
    here.play(execution)
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    at_rest(here, run.run_id)


def test_tasks_that_are_slow_to_start_again_and_again_never_fail_the_slice() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    (child,) = execution.children
    for _ in range(4):
        for _ in range(2):  # its number; its task
            here.step_child(child)
        assert child.task is not None
        child.task.pending = True
        here.hear(child, {"Error": "States.Timeout", "Cause": ""})
        while child.at == "accept":
            here.step_child(child)
    (first, *_) = here.ledger.partitions.all(run.run_id, Phase.APPLY)
    assert (0, 4) == (first.faults, first.idle)
    here.play(execution)
    assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, accepted(here, run.run_id))
    at_rest(here, run.run_id)


def test_a_task_that_hangs_unregistered_keeps_its_run_from_ending() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    (child,) = execution.children
    here.step_child(child)
    twin = here.launch(child)  # RunTask's answer was lost, so the state asked for another one.
    twin.loop, twin.stuck = repeat("hangs"), True
    here.play(execution)
    assert twin.ended is not None
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    at_rest(here, run.run_id)


def test_slices_with_unfinished_partitions_are_dispatched_again() -> None:
    here = world(limits={"max_concurrency": 3})
    run = here.ask()
    execution = here.execution(run)
    here.fan_out(execution)
    lost = execution.children.pop()  # A child that failed for ever, say for its history's length.
    assert lost.at == "take"
    here.play(execution)
    assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, accepted(here, run.run_id))
    at_rest(here, run.run_id)


@pytest.mark.parametrize("point", ["plan", "open", "settle"])
def test_dying_at_any_write_and_called_again_the_machine_goes_the_same_way(point: str) -> None:
    number, deaths = 0, 0
    while True:
        number += 1
        here = world()
        run = here.ask()
        execution = here.execution(run)
        bring_to(here, execution, point)
        dying_at(here, number)
        try:
            here.step(execution)
        except Died:
            deaths += 1
        else:
            break
        here.table.dies_at = 0
        here.clock.pass_(1)
        here.play(execution)
        assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, accepted(here, run.run_id))
        at_rest(here, run.run_id)
    assert deaths >= 1


def bring_to(here: World, execution: Any, point: str) -> None:
    """To just before a handler is called."""
    if point != "plan":
        here.step(execution)
    if point == "settle":
        for _ in range(2):
            here.step(execution)
        (child,) = execution.children
        while child.at != "over":
            here.step_child(child)
            if child.task is not None:
                child.task.step()


def test_an_execution_that_is_redriven_after_the_end_changes_nothing() -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.launched(execution)
    here.abort(execution)
    here.close.handle(here.event(execution))
    assert RunStatus.ABORTED == here.run(run.run_id).status
    here.redrive(execution)
    here.play(execution)
    assert (RunStatus.ABORTED, 1) == (here.run(run.run_id).status, here.launches)
    at_rest(here, run.run_id)


def test_a_settling_of_an_earlier_generation_hands_out_nothing() -> None:
    here = world()
    run = here.ask()
    assert "end" == here.plan.handle({"runId": run.run_id, "generation": 7})["do"]
    assert not here.run(run.run_id).is_planned
    here.step(here.execution(run))
    planned = here.run(run.run_id)
    assert planned.is_planned
    told = here.settle.handle({"runId": run.run_id, "generation": 7, "at": {"phase": "apply"}})
    assert {"do": "end", "status": "RUNNING"} == told
    assert planned == here.run(run.run_id)


def resumed_before(here: World, run: Run, part: Any, name: str) -> None:
    """The run is paused and resumed once, right before that method of `part` is called."""
    method = getattr(part, name)

    def late(*args: Any, **named: Any) -> Any:
        setattr(part, name, method)
        here.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
        here.ledger.runs.finish(run.run_id, RunStatus.PAUSED, who="ann")
        resumed(here, here.run(run.run_id))
        return method(*args, **named)

    setattr(part, name, late)


@pytest.mark.parametrize("when", ["next_dispatch", "stop"])
@pytest.mark.parametrize("changed", [False, True])
def test_a_run_that_is_resumed_while_it_is_settled_is_left_to_its_next_execution(
    when: str, changed: bool
) -> None:
    here = world()
    run = here.ask()
    execution = here.execution(run)
    here.step(execution)
    plan = here.artifacts.plan_of
    if changed:  # So that settling wants to end the run with that reason.
        here.artifacts.plan_of = unreadable  # type: ignore[method-assign]
    if when == "stop" and not changed:
        for _ in range(2):
            here.step(execution)
        execution.children = []  # A dispatch that moved nothing; after the next one the run would be ended.
        here.step(execution)
        here.step(execution)
        execution.children = []
    resumed_before(here, run, here.ledger.runs, when)
    here.step(execution)
    here.artifacts.plan_of = plan  # type: ignore[method-assign]
    now = here.run(run.run_id)
    assert ({"do": "end", "status": "RUNNING"}, 2) == (execution.told, now.generation)
    here.play(here.execution(now))
    assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, accepted(here, run.run_id))
    at_rest(here, run.run_id)


def unreadable(run: Run) -> Any:
    """The plan was changed."""
    raise ArtifactError("The plan is another one.")


def test_a_run_that_is_resumed_while_it_cannot_be_planned_is_left_to_its_next_execution() -> None:
    here = world(partitions={"by": "s3-prefix", "prefix": "s3://bucket/in/"})
    run = here.run(here.start.handle({"job": "numbers", "requestId": "r", "requester": "ann"})["runId"])
    execution = here.execution(run)
    resumed_before(here, run, here.ledger.runs, "stop")
    for _ in range(2):
        here.step(execution)
    now = here.run(run.run_id)
    assert (RunStatus.RUNNING, 2) == (now.status, now.generation)
    assert {"do": "end", "status": "RUNNING"} == execution.told


def test_a_request_that_does_not_fit_creates_nothing() -> None:
    here = world()
    with pytest.raises(RequestError):
        here.ask(params={"no": "such"})
    assert ([], {}) == (list(here.ledger.runs.unsettled()), here.steps.executions)
