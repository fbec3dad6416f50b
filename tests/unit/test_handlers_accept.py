"""`accept` as a handler: whatever the launch's state was left with, called twice, dying at each write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.errors import LaunchTaken
from trueup.ledger import Owner
from trueup.model.states import PartitionStatus, Phase
from trueup.platform import Ended, TaskState

from .handler_fakes import Child, FakeTask
from .handler_world import World, dying_at, left_by
from .worker_cases import Died, job_file, job_of

SILENCE = {"Error": "States.Timeout"}


def launched(**sections: Any) -> tuple[World, Child, FakeTask]:
    """A run with one slice, whose first launch has a task that has yet to begin."""
    here = World(job_of(), job_file(**sections))
    execution = here.execution(here.ask())
    child = here.launched(execution)
    assert child.task is not None
    return here, child, child.task


def steps(task: FakeTask, number: int) -> None:
    """Let the task pass so many points."""
    for _ in range(number):
        task.step()


def accepted(here: World, child: Child, left: dict[str, Any]) -> str:
    """What the handler answers to a launch that was left so."""
    return here.accept.handle({**child.data, "ended": left})["answer"]


def test_a_finished_slice_is_done() -> None:
    here, child, task = launched()
    while task.ended is None:
        task.step()
    assert ["done", "done"] == [accepted(here, child, left_by(task.ended)) for _ in range(2)]


def test_silence_while_the_task_works_stops_it_and_waits_for_the_proof() -> None:
    here, child, task = launched()
    task.stuck = True
    steps(task, 3)
    assert "stopping" == accepted(here, child, SILENCE)
    assert [(task.arn, "launch 1 of slice 0 is over")] == here.ecs.stops
    assert 1 == len(list(here.ledger.tasks.of(task.order.run_id)))
    for _ in range(2):
        answer = accepted(here, child, SILENCE)
    assert "again" == answer
    assert [] == list(here.ledger.tasks.of(task.order.run_id))


def test_a_task_that_begins_after_its_launch_is_over_may_not_register() -> None:
    here, child, task = launched()
    here.ecs.unlisted.add(task.arn)
    assert "again" == accepted(here, child, SILENCE)
    task.step()
    assert task.ended is not None
    assert (75, True) == (task.ended.exit_code, task.worker.is_the_second)
    assert [] == list(here.ledger.tasks.of(task.order.run_id))


NOT_PULLED = Ended(stop_code="TaskFailedToStart", reason="CannotPullContainerError: no such image")
NO_ROOM = Ended(stop_code="TaskFailedToStart", reason="RESOURCE:ENI")
SPOT = Ended(exit_code=137, stop_code="SpotInterruption", reason="Spot")


@pytest.mark.parametrize(
    ("ended", "faults", "how"),
    [
        (NOT_PULLED, 1, "CannotPullContainerError: no such image"),
        (NO_ROOM, 0, "the launch was refused: RESOURCE:ENI"),
        (SPOT, 0, "SpotInterruption"),
    ],
)
def test_how_a_task_ended_before_it_registered_is_asked_of_the_platform(
    ended: Ended, faults: int, how: str
) -> None:
    here, child, task = launched()
    task.end(ended)
    assert "again" == accepted(here, child, SILENCE)
    counted = [item.faults for item in here.ledger.partitions.all(task.order.run_id, Phase.APPLY)]
    assert faults == sum(counted)
    (told,) = [one for one in here.ledger.audit.of(task.order.run_id) if one.verb == "launch-ended"]
    assert how in told.why


def test_a_task_that_never_registered_and_was_stopped_for_it_counts_as_the_silence_before() -> None:
    here, child, task = launched()
    task.stuck = True
    answers = [accepted(here, child, SILENCE) for _ in range(4)]
    assert ["stopping", "stopping", "stopping", "again"] == answers
    assert [1] == [item.faults for item in here.ledger.partitions.all(task.order.run_id, Phase.APPLY)]
    (told,) = [one for one in here.ledger.audit.of(task.order.run_id) if one.verb == "launch-ended"]
    assert "States.Timeout" in told.why


@pytest.mark.parametrize("stuck", [False, True])
def test_a_task_that_the_platform_had_not_started_when_it_was_stopped_costs_no_fault(stuck: bool) -> None:
    here, child, task = launched()
    task.pending, task.stuck = True, stuck
    answers = []
    while "again" not in answers:
        answers.append(accepted(here, child, SILENCE))
    assert ["stopping"] * (3 if stuck else 1) + ["again"] == answers
    counted = [(it.faults, it.idle) for it in here.ledger.partitions.all(task.order.run_id, Phase.APPLY)]
    assert [(0, 1)] == counted
    (told,) = [one for one in here.ledger.audit.of(task.order.run_id) if one.verb == "launch-ended"]
    assert "it did not register" in told.why


def test_of_two_tasks_for_one_launch_one_that_hung_counts_whatever_the_other_did() -> None:
    here, child, task = launched()
    here.launch(child).pending = True
    assert ["stopping", "again"] == [accepted(here, child, SILENCE) for _ in range(2)]
    assert [1] == [item.faults for item in here.ledger.partitions.all(task.order.run_id, Phase.APPLY)]


def test_called_again_when_its_slice_has_gone_on_a_launch_costs_nothing_more() -> None:
    here, child, task = launched()
    steps(task, 2)
    task.end(Ended(exit_code=137, stop_code="EssentialContainerExited"))
    here.step_child(child)
    first = {**child.data}
    for _ in range(3):  # accept; the next number; the next task
        here.step_child(child)
    assert child.task is not None
    steps(child.task, 2)
    child.task.end(Ended(exit_code=137, stop_code="EssentialContainerExited"))
    assert "again" == here.accept.handle(first)["answer"]
    faults = [item.faults for item in here.ledger.partitions.all(task.order.run_id, Phase.APPLY)]
    assert [0] == faults


def test_what_later_launches_work_on_is_left_alone_by_the_first_word_on_an_earlier_one() -> None:
    here, child, task = launched()
    run_id = task.order.run_id
    steps(task, 2)  # it has taken the first partition
    for launch in (2, 3):  # of another fan-out: somebody redrove this one
        owner = Owner(run_id, Phase.APPLY, launch, f"task-{launch}")
        here.ledger.partitions.take(owner, "item=b")
    task.end(Ended(exit_code=137, stop_code="EssentialContainerExited"))
    accepted(here, child, left_by(task.ended or Ended()))
    found = here.ledger.partitions.get(run_id, Phase.APPLY, "item=b")
    assert (PartitionStatus.RUNNING, 2, 3) == (found.status, found.takes, found.launch)


def test_an_interruption_after_a_take_leaves_no_mark_on_the_next_partition() -> None:
    here, child, task = launched()
    while task.at is None or task.at.name != "reported":
        task.step()
    task.end(SPOT)
    assert "again" == accepted(here, child, left_by(SPOT))
    found = here.ledger.partitions.get(task.order.run_id, Phase.APPLY, "item=b")
    assert (0, 0) == (found.idle, found.faults)


def test_of_two_tasks_for_one_launch_the_second_leaves_and_says_nothing() -> None:
    here, child, task = launched()
    task.step()
    second = here.launch(child)
    second.step()
    assert second.ended is not None
    assert (75, True) == (second.ended.exit_code, second.worker.is_the_second)
    while task.ended is None:
        task.step()
    assert "done" == accepted(here, child, left_by(task.ended))


def test_a_lost_word_of_a_spot_interruption_costs_nothing_since_ecs_knows() -> None:
    here, child, task = launched()
    for _ in range(4):
        steps(task, 3)  # registered, taken, read: no checkpoint yet
        task.end(Ended(exit_code=137, stop_code="SpotInterruption", reason="Spot"))
        assert "again" == accepted(here, child, SILENCE)
        here.clock.pass_(1)
        child.at = "take"
        for _ in range(2):
            here.step_child(child)
        assert child.task is not None
        task = child.task
    told = [entry.why for entry in here.ledger.audit.of(task.order.run_id) if entry.verb == "launch-ended"]
    assert ["exit code 137, stop code SpotInterruption, reason Spot"] * 4 == told


def test_a_task_that_hangs_twice_without_progress_is_stuck_although_we_stopped_it() -> None:
    here, child, task = launched()
    answers = []
    for _ in range(2):
        steps(task, 3)
        answers.append(accepted(here, child, SILENCE))
        child.at = "take"
        for _ in range(2):
            here.step_child(child)
        task = child.task or task
    item = here.ledger.partitions.get(task.order.run_id, Phase.APPLY, "item=a")
    assert (["again", "again"], PartitionStatus.STUCK) == (answers, item.status)


def test_exit_64_fails_the_slices_unfinished_partitions() -> None:
    here, child, task = launched()
    steps(task, 1)
    task.end(Ended(exit_code=64, stop_code="EssentialContainerExited"))
    assert "failed" == accepted(here, child, left_by(task.ended or Ended()))


def test_a_launch_that_is_refused_for_ever_never_fails_the_slice() -> None:
    here, child, _ = launched()
    for launch in range(1, 6):
        child.data["number"] = {"launch": launch}
        left = {"Error": "ECS.InvalidParameterException", "Cause": "Rate exceeded"}
        assert "again" == accepted(here, child, left)


def test_a_closed_run_is_left() -> None:
    here, child, task = launched()
    steps(task, 3)
    here.close.close(here.run(task.order.run_id), "enough")
    assert "closed" == accepted(here, child, SILENCE)


@pytest.mark.parametrize("progress", [0, 1, 3, 8, 100])
@pytest.mark.parametrize("how", ["exit", "silence"])
def test_dying_at_every_write_and_called_again_it_answers_the_same(progress: int, how: str) -> None:
    expected, number, deaths = None, 0, 0
    while True:
        here, child, task = launched()
        steps(task, progress)
        if task.ended is None:
            task.end(Ended(exit_code=137, stop_code="EssentialContainerExited"))
        left = SILENCE if how == "silence" else left_by(task.ended or Ended())
        dying_at(here, number)
        try:
            answer = accepted(here, child, left)
        except Died:
            deaths += 1
            here.table.dies_at = 0
            answer = accepted(here, child, left)
        else:
            if number:
                break
        expected = expected or seen(here, answer)
        assert expected == seen(here, answer)
        number += 1
    assert deaths >= 2


def seen(here: World, answer: str) -> str:
    """All that `accept` can change."""
    (run_id,) = here.ledger.runs.unsettled()
    ledger = here.ledger
    items = [one.document() for one in ledger.partitions.all(run_id, Phase.APPLY)]
    trail = sorted((entry.verb, entry.subject, str(entry.after)) for entry in ledger.audit.of(run_id))
    tasks = [task.document() for task in ledger.tasks.of(run_id)]
    counts = ledger.verdicts.counts(run_id).document()
    return json.dumps([answer, items, trail, tasks, counts], sort_keys=True).replace(run_id, "RUN")


def test_a_task_unknown_to_ecs_is_believed_alive_for_an_hour() -> None:
    here, child, task = launched()
    steps(task, 3)
    here.ecs.forgotten.add(task.arn)
    assert "stopping" == accepted(here, child, SILENCE)
    here.clock.pass_(3600)
    assert TaskState.MISSING == here.ecs.state(task.arn)
    assert "again" == accepted(here, child, SILENCE)


def test_registering_again_for_ones_own_launch_is_no_second_task() -> None:
    here, _, task = launched()
    task.step()
    (item,) = here.ledger.tasks.of(task.order.run_id)
    here.ledger.tasks.register(task.order.run_id, item)
    with pytest.raises(LaunchTaken):
        here.ledger.tasks.register(task.order.run_id, item.model_copy(update={"task": "other"}))


def waits(here: World, child: Child, task: FakeTask, ended: Ended, times: int) -> list[int]:
    """The seconds that the machine is told to wait after each launch that ends so before any checkpoint."""
    found = []
    for _ in range(times):
        steps(task, 2)  # registered, taken
        task.end(ended)
        event = {**child.data, "ended": left_by(ended)}
        told = [here.accept.handle(event) for _ in range(2)]
        assert told[0] == told[1], "asked again, accept says something else"
        assert "again" == told[0]["answer"]
        found.append(told[0]["seconds"])
        child.at = "take"
        for _ in range(2):
            here.step_child(child)
        assert child.task is not None
        task = child.task
    return found


def test_launches_that_move_nothing_are_repeated_after_longer_and_longer_waits() -> None:
    spot = Ended(exit_code=137, stop_code="SpotInterruption")
    assert [3, 6, 12, 24, 48, 96, 192, 384, 600, 600] == waits(*launched(), spot, 10)


def test_a_launch_that_was_refused_waits_no_longer_for_that() -> None:
    here, child, _ = launched()
    for launch in range(1, 4):
        child.data["number"] = {"launch": launch}
        event = {**child.data, "ended": {"Error": "ECS.ThrottlingException", "Cause": "Rate exceeded"}}
        assert {"answer": "again", "seconds": 3} == here.accept.handle(event)


def test_a_wait_is_only_told_where_there_is_a_next_launch() -> None:
    here, child, task = launched()
    while task.ended is None:
        task.step()
    event = {**child.data, "ended": left_by(task.ended)}
    assert {"answer": "done", "seconds": 0} == here.accept.handle(event)
