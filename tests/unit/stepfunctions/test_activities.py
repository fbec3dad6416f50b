"""Activities ([dg:concepts-activities])."""

from __future__ import annotations

import asyncio
from typing import Any

from .harness import World, execute, machine, play, ran

ARN = "arn:aws:states:us-east-1:000000000000:activity:work"


def activity(**fields: Any) -> dict[str, Any]:
    return machine(("T", {"Type": "Task", "Resource": ARN, "Parameters": {"n.$": "$.n"}, **fields}))


def test_a_worker_asks_for_work_and_sends_its_result() -> None:
    async def scene(world: World) -> Any:
        assert ARN == world.api("CreateActivity", name="work")["activityArn"]
        asked = asyncio.ensure_future(world.api("GetActivityTask", activityArn=ARN, workerName="w"))
        await asyncio.sleep(5)
        execution = world.start(world.create(activity()), {"n": 1})
        task = await asked
        assert '{"n":1}' == task["input"]
        world.api("SendTaskSuccess", taskToken=task["taskToken"], output='"done"')
        await execution.ended()
        return ran(execution)

    ended = play(scene)
    assert "done" == ended.output
    assert ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"] == ended.types[2:5]
    assert {"workerName": "w"} == ended.details("ActivityStarted")


def test_who_asks_when_there_is_nothing_waits_a_minute_for_an_empty_answer() -> None:
    async def scene(world: World) -> Any:
        world.api("CreateActivity", name="work")
        return await world.api("GetActivityTask", activityArn=ARN), world.now()

    assert ({}, 60) == play(scene)


def test_work_that_timed_out_before_anybody_took_it_is_not_handed_out() -> None:
    async def scene(world: World) -> Any:
        world.api("CreateActivity", name="work")
        late = world.start(world.create(activity(TimeoutSeconds=5)), {"n": 1})
        await late.ended()
        world.start(world.create(activity(), "second"), {"n": 2})
        await asyncio.sleep(1)
        task = await world.api("GetActivityTask", activityArn=ARN)
        return ran(late), task["input"]

    late, given = play(scene)
    assert ("States.Timeout", "ActivityTimedOut") == (late.error, late.types[-2])
    assert '{"n":2}' == given


def test_activities_are_listed_and_forgotten() -> None:
    async def scene(world: World) -> None:
        world.api("CreateActivity", name="work")
        assert ["work"] == [found["name"] for found in world.api("ListActivities")["activities"]]
        assert "work" == world.api("DescribeActivity", activityArn=ARN)["name"]
        world.api("DeleteActivity", activityArn=ARN)
        assert [] == world.api("ListActivities")["activities"]

    play(scene)


def test_a_task_for_an_activity_that_there_is_not_is_not_scheduled() -> None:
    # The words and the want of an event are those of moto's engine, which was made to agree with AWS.
    arn = "arn:aws:states:us-east-1:000000000000:activity:none"
    ended = execute(machine(("T", {"Type": "Task", "Resource": arn})))
    assert ["TaskStateEntered", "ExecutionFailed"] == ended.types[1:]
    assert "States.Runtime" == ended.error
    assert str(ended.cause).endswith(f"(entered at the event id #2). The activity {arn} does not exist.")
