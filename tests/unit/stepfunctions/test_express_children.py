"""Distributed Maps whose children are Express executions ([dg:state-map-distributed])."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure

from .harness import Services, World, execute, machine, passing, play

EXPRESS = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}


def express(*states: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    loop = {"Type": "Map", "Label": "L", "ItemProcessor": {**EXPRESS, **machine(*states)}, **fields}
    return machine(("M", loop))


def test_express_children_have_arns_of_their_own_and_no_history() -> None:
    async def scene(world: World) -> None:
        parent = world.start(world.create(express(("P", passing()))), [1])
        await parent.ended()
        run = parent.map_runs[0]
        child = run.children[0]
        assert child is not None
        assert child.arn.startswith("arn:aws:states:us-east-1:000000000000:express:m/L:")
        assert "SUCCEEDED" == world.api("DescribeExecution", executionArn=child.arn)["status"]
        with pytest.raises(ApiError, match="Resource type not valid in this context: express"):
            world.api("GetExecutionHistory", executionArn=child.arn)
        # [botocore] ListExecutions: of a machine it lists no Express executions, of a Map Run it does.
        listed = world.api("ListExecutions", mapRunArn=run.arn)["executions"]
        assert [child.arn] == [each["executionArn"] for each in listed]

    play(scene)


def test_express_children_end_after_five_minutes() -> None:
    ran = execute(express(("W", {"Type": "Wait", "Seconds": 301})), [1])
    assert ("States.ExceedToleratedFailureThreshold", 300) == (ran.error, round(ran.seconds))


def test_redriving_runs_express_children_anew() -> None:
    # [dg:redrive-map-run]
    broken = [True]

    def get(_: Any) -> Any:
        if broken[0]:
            raise ServiceFailure("InternalServerError", "no", status=500)
        return {}

    task = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem", "ResultPath": None,
            "Parameters": {"TableName": "t", "Key": {"id": {"S": "1"}}}}  # fmt: skip

    async def scene(world: World) -> None:
        parent = world.start(world.create(express(("P", passing()), ("T", task))), [1])
        await parent.ended()
        first = parent.map_runs[0].children[0]
        broken[0] = False
        world.api("RedriveExecution", executionArn=parent.arn)
        await parent.ended()
        second = parent.map_runs[0].children[0]
        assert first is not None
        assert second is not None
        assert first.arn != second.arn
        assert ("SUCCEEDED", 0) == (parent.status, second.redrive_count)

    play(scene, Services(dynamodb_getItem=get))


@pytest.mark.parametrize("resource", ["sqs:sendMessage.waitForTaskToken", "states:startExecution.sync"])
def test_express_children_wait_for_nobody(resource: str) -> None:
    # aws-facts section 1.3 [dg:connect-to-resource].
    waiting = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}"}
    with pytest.raises(ApiError, match="State 'T': Express executions cannot use"):
        execute(express(("T", waiting)), [1])
