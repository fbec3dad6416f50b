"""Runs beside, after and instead of each other; partitions named by a task; runs by a schedule."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from trueup.errors import TrueupError
from trueup.local.faults import fault
from trueup.model.states import PartitionStatus, Phase, RunStatus

from .numbered import TARGET, assert_exact, assert_failed, assert_table
from .rig import AT, Begun, Case, Rig, Window, harm, window
from .watching import ended, tasks_of, wait_until

pytestmark = pytest.mark.timeout(600)
# Its first launch is in its cold start until it is stopped, which costs nothing.
WAITING = Case(faults=[fault("cold-start", seconds=3600, launches=[1])])


def test_one_poisoned_partition_among_forty_fails_alone(rig: Rig) -> None:
    days = window(40)
    poisoned = days.days[17]
    case = Case(params={"poison": [str(poisoned), 25]}, days=40)
    run = rig.ended(rig.begin(case, days, maxConcurrency=1))
    assert_failed(
        rig,
        run,
        {f"date={poisoned}": (PartitionStatus.FAILED, "ValueError", f"number 25 of {poisoned} is poison")},
    )
    (error,) = [item.error for item in rig.items(run) if item.error]
    assert repr((str(poisoned), 25)) == error.record
    assert 39 == sum(item.status is PartitionStatus.ACCEPTED for item in rig.items(run))
    healthy = Window(tuple(day for day in days.days if day != poisoned))
    assert_table(rig.up, healthy)
    assert {1: ("exit code 0", "failed")} == rig.launches(run.run_id)


@pytest.mark.parametrize("later_first", [False, True])
def test_of_two_runs_whose_windows_overlap_the_second_is_refused(rig: Rig, later_first: bool) -> None:
    days = window(3).days
    mine, theirs = Window(days[:2]), Window(days[1:])
    if later_first:
        mine, theirs = theirs, mine
    holder = begin_and_hold(rig, mine)
    refused = rig.ended(rig.begin(Case(), theirs))
    assert RunStatus.FAILED is refused.status
    assert refused.run is not None
    assert f"Run {holder.run_id} holds" in str(refused.run.reason)
    assert {} == rig.launches(refused.run_id)
    assert [holder.run_id] == [one for one in holders(rig) if one in (holder.run_id, refused.run_id)]
    assert_exact(rig, let_go(rig, holder))


def test_runs_whose_windows_do_not_meet_work_side_by_side(rig: Rig) -> None:
    days = window(4).days
    both = [begin_and_hold(rig, Window(some)) for some in (days[:2], days[2:])]
    assert {one.run_id for one in both} <= set(holders(rig))
    for one in both:
        assert_exact(rig, let_go(rig, one))


def begin_and_hold(rig: Rig, days: Window) -> Begun:
    """A run that holds its window of the target, and gets no further."""
    begun = rig.begin(WAITING, days, maxConcurrency=1)
    wait_until(lambda: tasks_of(rig.up, begun.run_id))
    return begun


def let_go(rig: Rig, begun: Begun) -> Begun:
    """The same at its end."""
    (task,) = tasks_of(rig.up, begun.run_id)
    rig.up.client("ecs").stop_task(cluster="trueup", task=task["taskArn"], reason="let go")
    return rig.ended(begun)


def holders(rig: Rig) -> list[str]:
    """The runs that hold a window of the target."""
    return list(rig.up.ledger.locks.get(TARGET).holders)


def test_a_run_that_was_stopped_is_made_good_by_another_one(rig: Rig) -> None:
    stopped = rig.begin(Case(harms=[harm("every", "checkpointed", 2, "hang")], days=2))
    wait_until(lambda: [20, 20] == [item.counters.read for item in rig.items(stopped)])
    rig.up.client("stepfunctions").stop_execution(
        executionArn=rig.execution(stopped.run_id), error="Tester", cause="enough"
    )
    wait_until(lambda: rig.up.ledger.runs.get(stopped.run_id).status is not RunStatus.RUNNING)
    wait_until(lambda: rig.up.invoke("sweep", {}) and not list(rig.up.ledger.tasks.of(stopped.run_id)))
    assert RunStatus.ABORTED is rig.ended(stopped).status
    (closed,) = [entry for entry in rig.up.ledger.audit.of(stopped.run_id) if entry.verb == "stop:aborted"]
    assert "is ABORTED" in closed.why
    assert "ExecutionAborted" in {event["type"] for event in rig.history(stopped.run_id)}

    again = rig.ended(rig.begin(Case(), stopped.window))
    assert_exact(rig, again)
    epochs = [rig.up.ledger.runs.get(one.run_id).epoch for one in (stopped, again)]
    assert sorted(set(epochs)) == epochs
    assert [16, 16] == [item.counters.unchanged for item in rig.items(again)]


def test_partitions_are_named_by_a_task_that_can_only_read(rig: Rig) -> None:
    run_id = rig.start("named", params={"killed": [1]})
    assert RunStatus.SUCCEEDED is ended(rig.up, run_id, 300).status
    names = [f"item=flights_read-{number}" for number in (1, 2, 3)]
    items = rig.up.ledger.partitions.get_many(run_id, Phase.APPLY, names)
    assert {PartitionStatus.ACCEPTED} == {item.status for item in items.values()}
    assert 3 == rig.up.ledger.runs.get(run_id).partitions
    naming = [task for task in tasks_of(rig.up, run_id) if "TRUEUP_NAMING" in str(task["overrides"])]
    assert {137, 0} == {task["containers"][0]["exitCode"] for task in naming}
    assert all(":task-definition/trueup-named-read:" in task["taskDefinitionArn"] for task in naming)
    assert '"ExitCode":137' in dict(rig.failures(run_id))["States.TaskFailed"]
    first, second, *_ = rig.launches(run_id).values()
    assert ("exit code 0", "done") == second
    assert "exit code 137" in first[0]
    assert "again" == first[1]


def test_an_error_of_who_names_the_partitions_ends_the_run(rig: Rig) -> None:
    run_id = rig.start("named", params={"error": "no list today"})
    run = ended(rig.up, run_id, 300)
    assert RunStatus.FAILED is run.status
    assert "ValueError: no list today" in str(run.reason)
    assert 1 == len(tasks_of(rig.up, run_id))


def test_who_cannot_name_the_partitions_in_two_launches_ends_the_run(rig: Rig) -> None:
    run_id = rig.start("named", params={"killed": [1, 2, 3]})
    run = ended(rig.up, run_id, 300)
    assert RunStatus.FAILED is run.status
    assert "No task could name the partitions in 2 launches" in str(run.reason)
    assert "exit code 137" in str(run.reason)


def test_a_schedule_that_is_delivered_twice_starts_one_run(rig: Rig) -> None:
    days = window(1)
    event = {
        "schedule": f"nightly-{days.days[0]}",
        "scheduledTime": AT,
        "request": {"job": "rows", **days.request},
    }
    first, second = (rig.up.invoke("start", event) for _ in range(2))
    assert first["runId"] == second["runId"] == f"nightly-{days.days[0]}-2026-01-01T000000Z"
    assert_exact(rig, rig.ended(Begun(first["runId"], days)))
    (created,) = [entry for entry in rig.up.ledger.audit.of(first["runId"]) if entry.verb == "start"]
    assert f"schedule:nightly-{days.days[0]}" == created.who
    assert first["runId"] == rig.up.invoke("start", event)["runId"]
    assert 1 == len(rig.launches(first["runId"]))


def test_a_schedule_of_scheduler_starts_a_run(rig: Rig) -> None:
    """MiniStack does not fill in `<aws.scheduler.scheduled-time>`, so the time is written out."""
    schedules, days = rig.up.client("scheduler"), window(1)
    name = f"daily-{days.days[0]}"
    event = {"schedule": name, "scheduledTime": AT, "request": {"job": "rows", **days.request}}
    function = rig.up.client("lambda").get_function(FunctionName="trueup-start")["Configuration"]
    (own,) = rig.up.deployed.of_type("AWS::Scheduler::Schedule")
    role = schedules.get_schedule(Name=own)["Target"]["RoleArn"]
    schedules.create_schedule(
        Name=name,
        ScheduleExpression=f"at({datetime.now(UTC) + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S})",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": function["FunctionArn"], "RoleArn": role, "Input": json.dumps(event)},
    )
    run_id = f"{name}-{AT.replace(':', '')}"
    wait_until(lambda: there_is(rig, run_id))
    assert_exact(rig, rig.ended(Begun(run_id, days)))


def there_is(rig: Rig, run_id: str) -> bool:
    """Whether there is such a run."""
    try:
        rig.up.ledger.runs.get(run_id)
    except TrueupError:
        return False
    return True
