"""Map Runs that are redriven through their parent ([dg:redrive-map-run])."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure

from .distributed import BAD, GOOD, SOME_FAIL, distributed
from .harness import Services, World, machine, passing, play, ran


def test_redriving_the_parent_redrives_the_children_that_did_not_succeed() -> None:
    # aws-facts section 1.4.
    broken = [True]

    def get(given: Any) -> Any:
        if broken[0] and given["Key"]["id"]["S"] == "2":
            raise ServiceFailure("InternalServerError", "no", status=500)
        return {}

    task = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem",
            "Parameters": {"TableName": "t", "Key": {"id": {"S.$": "$"}}}}  # fmt: skip

    async def scene(world: World) -> None:
        parent = world.start(world.create(distributed(("P", passing()), ("T", task))), ["1", "2", "3"])
        await parent.ended()
        assert "FAILED" == parent.status
        broken[0] = False
        world.api("RedriveExecution", executionArn=parent.arn)
        await parent.ended()
        ended = ran(parent)
        assert ("SUCCEEDED", 1) == (ended.status, parent.redrive_count)
        assert ["ExecutionRedriven", "MapStateStarted", "MapRunRedriven"] == ended.types[
            ended.types.index("ExecutionRedriven") :
        ][:3]
        redriven = [child for child in parent.map_runs[0].children if child and child.redrive_count]
        assert 1 == sum(child.input.value == "2" for child in redriven)
        again = [event["type"] for event in ran(redriven[0]).events]
        assert 1 == again.count("PassStateEntered")

    play(scene, Services(dynamodb_getItem=get))


def test_children_wait_for_their_redrive_as_long_as_others_have_their_places() -> None:
    # [dg:redrive-map-run], [botocore] ExecutionStatus and MapRunExecutionCounts.pendingRedrive.
    broken = [True]

    def answer(_: Any) -> Any:
        if broken[0]:
            raise ServiceFailure("Refused", "not yet")
        return {}

    send = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage",
        "Parameters": {"QueueUrl": "q", "MessageBody": "x"},
    }
    limits = {"MaxConcurrency": 1, "ToleratedFailureCount": 5, "ItemBatcher": {"MaxItemsPerBatch": 2}}
    states = distributed(("S", send), ("W", {"Type": "Wait", "Seconds": 10}), **limits)

    async def scene(world: World) -> None:
        parent = world.start(world.create(states), [1, 2, 3, 4, 5, 6])
        await parent.ended()
        broken[0] = False
        world.api("RedriveExecution", executionArn=parent.arn)
        await asyncio.sleep(1)
        arn = parent.map_runs[0].arn
        told = world.api("DescribeMapRun", mapRunArn=arn)
        counts = ("running", "pendingRedrive", "failed", "total")
        assert [1, 2, 0, 3] == [told["executionCounts"][name] for name in counts]
        assert [2, 4, 0, 6] == [told["itemCounts"][name] for name in counts]
        waiting = world.api("ListExecutions", mapRunArn=arn, statusFilter="PENDING_REDRIVE")["executions"]
        assert 2 == len(waiting)
        one = world.api("DescribeExecution", executionArn=waiting[0]["executionArn"])
        assert (
            "PENDING_REDRIVE",
            "NOT_REDRIVABLE",
            "Execution is PENDING_REDRIVE and cannot be redriven",
        ) == (
            one["status"],
            one["redriveStatus"],
            one["redriveStatusReason"],
        )
        # What still waits when the Map Run is stopped keeps the end that it had.
        world.api("StopExecution", executionArn=parent.arn)
        await asyncio.sleep(1)
        told = world.api("DescribeMapRun", mapRunArn=arn)["executionCounts"]
        assert [1, 2, 0] == [told[name] for name in ("aborted", "failed", "pendingRedrive")]
        world.api("RedriveExecution", executionArn=parent.arn)
        await parent.ended()
        assert "SUCCEEDED" == parent.status

    play(scene, Services(sqs_sendMessage=answer))


def test_only_the_children_of_a_map_run_wait_for_a_redrive() -> None:
    # [botocore] ListExecutionsInput.statusFilter.
    async def scene(world: World) -> None:
        arn = world.create(machine(("P", passing())))
        with pytest.raises(ApiError, match="ValidationException"):
            world.api("ListExecutions", stateMachineArn=arn, statusFilter="PENDING_REDRIVE")

    play(scene)


def test_what_can_be_redriven_no_more_is_counted_apart() -> None:
    # [botocore] MapRunExecutionCounts.failuresNotRedrivable.
    async def scene(world: World) -> None:
        states = distributed(*SOME_FAIL, ToleratedFailurePercentage=100)
        parent = world.start(world.create(states), [BAD, GOOD])
        await parent.ended()
        arn = parent.map_runs[0].arn
        counts = world.api("DescribeMapRun", mapRunArn=arn)["executionCounts"]
        assert (1, 0) == (counts["failed"], counts["failuresNotRedrivable"])
        await world.engine.clock.sleep(15 * 86_400)
        counts = world.api("DescribeMapRun", mapRunArn=arn)["executionCounts"]
        assert (1, 1) == (counts["failed"], counts["failuresNotRedrivable"])

    play(scene)
