"""`accept`: every answer, the proof of stopping, and faults that are bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trueup.accepting import Acceptance, Answer, Launch
from trueup.model.states import PartitionStatus, RunStatus
from trueup.platform import Ended, TaskState
from trueup.testing import LocalRun, LocalTask, ManualClock
from trueup.worker import Exit

from .worker_cases import Numbers, error, item, job_of, last, run_of, step_until

GONE = Ended(exit_code=1, stop_code="EssentialContainerExited")
SPOT = Ended(exit_code=137, stop_code="SpotInterruption")
BAD = Ended(exit_code=Exit.BAD_INPUT)


def acceptance(run: LocalRun) -> Acceptance:
    """The accepting part over a run's stores and platform."""
    return Acceptance(run.ledger, run.artifacts, run.platform, run.clock)


def abandoned(run: LocalRun, point: str = "taken") -> LocalTask:
    """The run's first task, dead at a point, and not judged yet."""
    step_until(run, point)
    task = last(run)
    run._active.remove(task)
    run.platform.set(task.arn, TaskState.STOPPED)
    return task


def relaunch(run: LocalRun, launch: Launch) -> LocalTask:
    """The slice of a launch, launched again."""
    run._launch(launch.slice)
    return last(run)


def accept(run: LocalRun, task: LocalTask, ended: Ended = GONE) -> Answer:
    """What accept answers for a task's launch."""
    return acceptance(run).accept(task.launch, ended)


def test_a_slice_whose_partitions_are_all_accepted_is_done() -> None:
    run = run_of(job_of(), keys="ab")
    task = abandoned(run, "stored")
    assert Answer.DONE == accept(run, task, Ended(exit_code=0))
    assert 2 == run.accepted


def test_a_slice_with_a_partition_that_failed_has_failed() -> None:
    run = run_of(job_of(transform=lambda self, n: 1 / 0))
    assert Answer.FAILED == accept(run, abandoned(run, "stored"), Ended(exit_code=0))


def test_a_partition_that_was_left_out_is_no_failure() -> None:
    run = run_of(job_of(size=3), keys="ab")
    task = abandoned(run, "reported")
    run.ledger.verdicts.skip(run.run_id, run.phase, ["item=b"], who="ann", why="empty")
    assert Answer.DONE == accept(run, task)


def test_an_unfinished_slice_of_an_open_run_is_launched_again() -> None:
    run = run_of(job_of())
    assert Answer.AGAIN == accept(run, abandoned(run))


def test_an_unfinished_slice_of_a_closed_run_is_not() -> None:
    run = run_of(job_of())
    task = abandoned(run)
    run.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    assert Answer.CLOSED == accept(run, task)


def test_a_launch_of_another_generation_is_not_repeated_and_ends_nothing() -> None:
    run = run_of(job_of())
    task = abandoned(run)
    old = Launch(run.run_id, 2, run.phase, task.launch.slice, task.launch.launch)
    assert Answer.CLOSED == acceptance(run).accept(old, BAD)
    assert PartitionStatus.RUNNING == item(run).status


def test_a_task_that_is_alive_is_asked_to_stop() -> None:
    run = run_of(job_of())
    task = abandoned(run)
    run.platform.set(task.arn, TaskState.ALIVE)
    stopped: list[str] = []
    run.platform.stop = lambda arn, reason: stopped.append(reason)  # type: ignore[method-assign]
    assert Answer.STOPPING == accept(run, task)
    assert ["launch 1 of slice 0 is over"] == stopped
    assert [task.arn] == [one.task for one in run.ledger.tasks.of(run.run_id)]


@pytest.mark.parametrize(
    ("launch", "stopped"), [(1, ["first"]), (2, ["second"]), (None, ["first", "second"])]
)
def test_of_tasks_that_did_not_register_only_those_of_the_launch_are_stopped(
    launch: int | None, stopped: list[str]
) -> None:
    run = run_of(job_of())
    found = {"first": 1, "second": 2}
    for task in found:
        run.platform.set(task, TaskState.ALIVE)
    run.platform.alive_of = lambda run_id, job: found  # type: ignore[method-assign]
    now = run.ledger.runs.get(run.run_id)
    assert stopped == acceptance(run).stop_lost(now, launch)
    assert stopped == [task for task in found if run.platform.state(task) is TaskState.STOPPED]


def test_a_task_that_stops_when_asked_is_proved_at_once() -> None:
    run = run_of(job_of())
    task = abandoned(run)
    run.platform.set(task.arn, TaskState.ALIVE)
    assert Answer.AGAIN == accept(run, task)
    assert [] == list(run.ledger.tasks.of(run.run_id))


@pytest.mark.parametrize(
    ("since_the_last_beat", "expected"),
    [(timedelta(minutes=59), Answer.STOPPING), (timedelta(hours=1), Answer.AGAIN)],
)
def test_a_missing_task_is_proved_an_hour_after_its_last_beat(
    since_the_last_beat: timedelta, expected: Answer
) -> None:
    clock = ManualClock()
    run = run_of(job_of(), clock=clock)
    task = abandoned(run)
    run.platform.set(task.arn, TaskState.MISSING)
    clock.pass_(since_the_last_beat.total_seconds())
    assert expected == accept(run, task)


def test_where_the_slice_is_done_the_proof_is_left_to_settle() -> None:
    run = run_of(job_of())
    task = abandoned(run, "stored")
    run.platform.set(task.arn, TaskState.MISSING)
    assert Answer.DONE == accept(run, task, Ended(exit_code=0))
    assert 1 == len(list(run.ledger.tasks.of(run.run_id)))


def test_an_answer_that_comes_late_does_not_stop_the_next_launch() -> None:
    run = run_of(job_of())
    first = abandoned(run)
    accept(run, first)
    second = relaunch(run, first.launch)
    step_until(run, "taken")
    assert Answer.STOPPING == accept(run, first)
    assert TaskState.ALIVE == run.platform.state(second.arn)
    assert (2, PartitionStatus.RUNNING) == (item(run).launch, item(run).status)


def test_two_launches_that_end_before_any_take_fail_the_slice() -> None:
    run = run_of(job_of(), keys="ab")
    first = abandoned(run, "registered")
    assert Answer.AGAIN == accept(run, first)
    relaunch(run, first.launch)
    second = abandoned(run, "registered")
    assert Answer.FAILED == accept(run, second)
    told = "NeverStarted | 2 launches ended before any partition was taken; the last one: exit code 1"
    assert error(run, "a").startswith(told)
    assert 2 == run.count(PartitionStatus.FAILED)


def test_what_ended_a_task_before_any_take_is_told_in_its_own_words() -> None:
    def refused(job: Numbers) -> None:
        raise ConnectionError("db.internal does not answer")

    run = run_of(job_of(open=refused), keys="ab")
    run.run()
    assert 2 == run.count(PartitionStatus.FAILED)
    assert "2 launches ended before any partition was taken" in error(run, "a")
    assert "ConnectionError: db.internal does not answer" in error(run, "a")


@pytest.mark.parametrize("ended", [Ended(launch_refused=True), SPOT, Ended(exit_code=75)])
def test_launches_that_say_nothing_against_the_work_are_not_counted(ended: Ended) -> None:
    run = run_of(job_of())
    task = abandoned(run, "registered")
    for _ in range(3):
        assert Answer.AGAIN == accept(run, task, ended)
        relaunch(run, task.launch)
        task = abandoned(run, "registered")
    assert 0 == item(run).faults


def test_a_task_that_says_64_fails_the_slice_at_once() -> None:
    run = run_of(job_of(), keys="ab")
    assert Answer.FAILED == accept(run, abandoned(run, "registered"), BAD)
    assert "BadInput | the task refused its input: exit code 64 | None" == error(run, "b")


def test_what_was_accepted_before_stays_when_a_later_task_says_64() -> None:
    run = run_of(job_of(size=3), keys="ab")
    first = abandoned(run, "reported")
    accept(run, first)
    relaunch(run, first.launch)
    accept(run, abandoned(run, "registered"), BAD)
    assert (1, 1) == (run.accepted, run.count(PartitionStatus.FAILED))


def test_the_second_take_without_progress_is_stuck() -> None:
    run = run_of(job_of(), keys="ab")
    first = abandoned(run)
    assert Answer.AGAIN == accept(run, first)
    relaunch(run, first.launch)
    assert Answer.AGAIN == accept(run, abandoned(run))
    assert (PartitionStatus.STUCK, PartitionStatus.PENDING) == (item(run).status, item(run, "b").status)


def test_a_take_between_two_that_made_progress_is_not_stuck() -> None:
    run = run_of(job_of())
    first = abandoned(run)
    accept(run, first)
    for _ in range(3):
        relaunch(run, first.launch)
        assert Answer.AGAIN == accept(run, abandoned(run, "advanced"))
    assert PartitionStatus.RUNNING == item(run).status


def test_an_interruption_forgives_its_own_take_and_no_other() -> None:
    run = run_of(job_of())
    first = abandoned(run)
    accept(run, first, GONE)
    relaunch(run, first.launch)
    # The second launch ends from outside before it takes anything: the first one's fault stands.
    assert Answer.AGAIN == accept(run, abandoned(run, "registered"), SPOT)
    assert 1 == item(run).takes


def test_an_interruption_is_forgiven_once() -> None:
    run = run_of(job_of())
    first = abandoned(run)
    accept(run, first, GONE)
    relaunch(run, first.launch)
    second = abandoned(run)
    for _ in range(3):
        assert Answer.AGAIN == accept(run, second, SPOT)
    assert 1 == item(run).takes


def test_an_interruption_of_a_closed_run_is_forgiven_too() -> None:
    run = run_of(job_of())
    task = abandoned(run)
    run.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    accept(run, task, SPOT)
    assert 0 == item(run).takes


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Ended(), False),
        (Ended(exit_code=0), False),
        (Ended(exit_code=75), True),
        (Ended(exit_code=70), False),
        (Ended(exit_code=137, stop_code="EssentialContainerExited"), False),
        (Ended(stop_code="TaskFailedToStart"), False),
        (Ended(launch_refused=True), True),
        (Ended(stop_code="SpotInterruption"), True),
        (Ended(exit_code=64, stop_code="SpotInterruption"), False),
        (Ended(exit_code=70, stop_code="UserInitiated"), False),
    ],
)
def test_what_comes_from_outside(ended: Ended, expected: bool) -> None:
    assert expected == ended.from_outside


def test_a_task_that_died_before_it_stored_a_result_is_judged_by_its_entries() -> None:
    run = run_of(job_of(size=3), keys="ab")
    assert Answer.AGAIN == accept(run, abandoned(run, "reported"))
    assert (PartitionStatus.ACCEPTED, PartitionStatus.PENDING) == (item(run).status, item(run, "b").status)


def test_a_bad_result_refuses_only_the_partitions_of_its_launch_and_task() -> None:
    run = run_of(job_of(size=3), keys="ab")
    first = abandoned(run, "reported")
    relaunch(run, first.launch)
    second = abandoned(run, "stored")
    good = second.worker.contract
    assert good is not None
    spoil(
        run, second, good.model_copy(update={"plan_sha256": "0" * 64}).model_dump_json(by_alias=True).encode()
    )
    assert Answer.FAILED == accept(run, second, Ended(exit_code=0))
    assert (PartitionStatus.ACCEPTED, PartitionStatus.REFUSED) == (item(run).status, item(run, "b").status)
    assert "plan-is-the-runs" in error(run, "b")


def spoil(run: LocalRun, task: LocalTask, data: bytes) -> None:
    """Put other bytes where a task stored its result."""
    from trueup.artifacts import result_key_of

    launch = task.launch
    key = result_key_of(run.run_id, run.phase, launch.slice.slice_id, launch.launch, task.arn)
    run.artifacts.store.put(key, data)


def test_a_report_that_does_not_hold_is_refused_with_both_figures() -> None:
    run = run_of(job_of(count=lambda self, part: 13))
    run.run()
    assert PartitionStatus.REFUSED == item(run).status
    assert "12 read, and 13 counted independently" in error(run)


def test_an_empty_partition_is_refused_unless_it_is_allowed() -> None:
    run = run_of(job_of(size=0), keys="a")
    run.run()
    allowed = {"partitions": {"by": "list", "key": "item", "empty": "allowed"}}
    other = run_of(job_of(size=0), keys="a", sections=allowed)
    other.run()
    assert (PartitionStatus.REFUSED, PartitionStatus.ACCEPTED) == (item(run).status, item(other).status)
