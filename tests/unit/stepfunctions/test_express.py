"""Express machines ([dg:choosing-workflow-type], [botocore] StartSyncExecution)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError

from .harness import ROLE, World, machine, passing, play

FAILING = machine(("F", {"Type": "Fail", "Error": "Mine", "Cause": "so"}))
WAITING = machine(("W", {"Type": "Wait", "Seconds": 301}))


def create(world: World, definition: Any, kind: str = "EXPRESS") -> str:
    body = {"name": "m", "definition": json.dumps(definition), "roleArn": ROLE, "type": kind}
    return str(world.api("CreateStateMachine", **body)["stateMachineArn"])


def test_a_synchronous_start_answers_with_what_became_of_it() -> None:
    async def scene(world: World) -> None:
        arn = create(world, machine(("P", passing(Result={"a": 1})), ("W", {"Type": "Wait", "Seconds": 1})))
        told = await world.api("StartSyncExecution", stateMachineArn=arn, name="n", input='{"x": 1}')
        assert told.pop("executionArn").startswith("arn:aws:states:us-east-1:000000000000:express:m:n:")
        assert 1 == told.pop("stopDate") - told.pop("startDate")
        assert {
            "stateMachineArn": arn, "name": "n", "status": "SUCCEEDED", "input": '{"x": 1}',
            "output": '{"a":1}', "inputDetails": {"included": True}, "outputDetails": {"included": True},
            "billingDetails": {"billedDurationInMilliseconds": 1000, "billedMemoryUsedInMB": 64},
        } == told  # fmt: skip

    play(scene)


def test_a_synchronous_start_answers_also_of_a_failure() -> None:
    async def scene(world: World) -> None:
        told = await world.api("StartSyncExecution", stateMachineArn=create(world, FAILING))
        assert ("FAILED", "Mine", "so") == (told["status"], told["error"], told["cause"])
        assert "output" not in told

    play(scene)


def test_an_express_execution_lasts_five_minutes_at_most() -> None:
    # aws-facts section 1.1.
    async def scene(world: World) -> None:
        told = await world.api("StartSyncExecution", stateMachineArn=create(world, WAITING))
        assert ("TIMED_OUT", "States.Timeout") == (told["status"], told["error"])
        assert 300 == world.now()

    play(scene)


def test_every_start_is_a_new_execution_that_nobody_can_look_into() -> None:
    # aws-facts section 1.9: Express is not idempotent; [botocore]: these operations do not take Express.
    async def scene(world: World) -> None:
        arn = create(world, WAITING)
        starts = [world.api("StartExecution", stateMachineArn=arn, name="n") for _ in range(2)]
        first, second = (start["executionArn"] for start in starts)
        assert first != second
        for operation in ("DescribeExecution", "GetExecutionHistory", "StopExecution"):
            with pytest.raises(ApiError, match=r"ExecutionDoesNotExist|not valid in this context: express"):
                world.api(operation, executionArn=first)
        with pytest.raises(ApiError, match="StateMachineTypeNotSupported"):
            world.api("ListExecutions", stateMachineArn=arn)
        assert [] == world.seen  # of its status nobody is told

    play(scene)


def test_a_standard_machine_is_not_started_synchronously() -> None:
    async def scene(world: World) -> None:
        arn = create(world, FAILING, "STANDARD")
        with pytest.raises(ApiError, match="StateMachineTypeNotSupported"):
            await world.api("StartSyncExecution", stateMachineArn=arn)
        with pytest.raises(ApiError, match="StateMachineAlreadyExists"):
            create(world, FAILING, "EXPRESS")

    play(scene)


def test_the_type_is_told_and_stays() -> None:
    async def scene(world: World) -> None:
        arn = create(world, FAILING)
        assert "EXPRESS" == world.api("DescribeStateMachine", stateMachineArn=arn)["type"]
        assert ["EXPRESS"] == [one["type"] for one in world.api("ListStateMachines")["stateMachines"]]
        sync = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync"}
        text = json.dumps(machine(("T", sync)))
        with pytest.raises(ApiError, match="State 'T': Express executions cannot use"):
            world.api("UpdateStateMachine", stateMachineArn=arn, definition=text)

    play(scene)


@pytest.mark.parametrize(
    "state",
    [
        {"Type": "Task", "Resource": "arn:aws:states:us-east-1:000000000000:activity:a"},
        {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"},
        {
            "Type": "Map",
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                **FAILING,
            },
        },
    ],
)
def test_express_machines_neither_wait_nor_fan_out(state: dict[str, Any]) -> None:
    # aws-facts section 1.3.
    async def scene(world: World) -> None:
        definition = machine(("S", state))
        told = world.api("ValidateStateMachineDefinition", definition=json.dumps(definition), type="EXPRESS")
        assert "State 'S': Express executions" in told["diagnostics"][0]["message"]

    play(scene)
