"""What is wrong with a request is told in AWS's words, from the service's own model [botocore]."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError

from .harness import World, machine, passing, play

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
EXECUTION = "arn:aws:states:us-east-1:000000000000:execution:m:e"
ONE = "1 validation error detected: "


@pytest.mark.parametrize(
    ("message", "operation", "body"),
    [
        (
            ONE + "Value null at 'stateMachineArn' failed to satisfy constraint: Member must not be null",
            "StartExecution",
            {},
        ),
        (
            ONE + f"Value '{'x' * 81}' at 'name' failed to satisfy constraint: "
            "Member must have length less than or equal to 80",
            "StartExecution",
            {"stateMachineArn": MACHINE, "name": "x" * 81},
        ),
        (
            ONE + "Value '' at 'name' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
            "CreateActivity",
            {"name": ""},
        ),
        (
            ONE + "Value '1001' at 'maxResults' failed to satisfy constraint: "
            "Member must have value less than or equal to 1000",
            "ListExecutions",
            {"stateMachineArn": MACHINE, "maxResults": 1001},
        ),
        (
            ONE
            + "Value 'DONE' at 'statusFilter' failed to satisfy constraint: Member must satisfy enum value "
            "set: [RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED, PENDING_REDRIVE]",
            "ListExecutions",
            {"stateMachineArn": MACHINE, "statusFilter": "DONE"},
        ),
        (
            "2 validation errors detected: Value null at 'definition' failed to satisfy constraint: "
            "Member must not be null; Value null at 'roleArn' failed to satisfy constraint: "
            "Member must not be null",
            "CreateStateMachine",
            {"name": "m"},
        ),
        (
            ONE
            + "Value at 'cause' failed to satisfy constraint: Member must have length less than or equal to "
            "32768",
            "StopExecution",
            {"executionArn": EXECUTION, "cause": "x" * 32_769},
        ),
    ],
)
def test_a_request_is_refused_in_the_words_of_the_front_end(
    message: str, operation: str, body: dict[str, Any]
) -> None:
    assert ("ValidationException", message) == refusal(operation, body)


@pytest.mark.parametrize(
    ("error", "message", "operation", "body"),
    [
        ("InvalidArn", "Invalid Arn: 'Invalid ARN prefix: x'", "DescribeExecution", {"executionArn": "x"}),
        (
            "InvalidArn",
            "Invalid Arn: 'Resource type not valid in this context: stateMachine'",
            "DescribeExecution",
            {"executionArn": MACHINE},
        ),
        (
            "ExecutionDoesNotExist",
            f"Execution Does Not Exist: '{EXECUTION}'",
            "DescribeExecution",
            {"executionArn": EXECUTION},
        ),
        (
            "StateMachineDoesNotExist",
            f"State Machine Does Not Exist: '{MACHINE}'",
            "StartExecution",
            {"stateMachineArn": MACHINE},
        ),
        (
            "ResourceNotFound",
            f"Resource not found: '{MACHINE}'",
            "ListTagsForResource",
            {"resourceArn": MACHINE},
        ),
    ],
)
def test_what_does_not_exist_is_named(error: str, message: str, operation: str, body: dict[str, Any]) -> None:
    assert (error, message) == refusal(operation, body)


@pytest.mark.parametrize(
    "operation", ["DescribeStateMachine", "DeleteStateMachine", "StartExecution", "ListExecutions"]
)
def test_the_arn_of_a_distributed_map_is_no_machine_s(operation: str) -> None:
    # [botocore] "If you provide a qualified state machine ARN that refers to a Distributed Map state, …"
    assert "ValidationException" == refusal(operation, {"stateMachineArn": f"{MACHINE}/label"})[0]


def test_a_value_of_another_type_cannot_be_read() -> None:
    assert "SerializationException" == refusal("ListStateMachines", {"maxResults": "ten"})[0]


def refusal(operation: str, body: dict[str, Any]) -> tuple[str, str]:
    async def scene(world: World) -> tuple[str, str]:
        with pytest.raises(ApiError) as caught:
            world.api(operation, **body)
        return caught.value.name, caught.value.message

    told: tuple[str, str] = play(scene)
    return told


def test_activities_have_tags_too() -> None:
    async def scene(world: World) -> None:
        arn = world.api("CreateActivity", name="a", tags=[{"key": "k", "value": "v"}])["activityArn"]
        world.api("TagResource", resourceArn=arn, tags=[{"key": "l", "value": "w"}])
        world.api("UntagResource", resourceArn=arn, tagKeys=["k"])
        assert [{"key": "l", "value": "w"}] == world.api("ListTagsForResource", resourceArn=arn)["tags"]
        many = [{"key": str(number), "value": ""} for number in range(50)]
        with pytest.raises(ApiError, match="TooManyTags"):
            world.api("TagResource", resourceArn=arn, tags=many)

    play(scene)


def test_metadata_alone_has_neither_input_nor_output_nor_definition() -> None:
    async def scene(world: World) -> None:
        execution = world.start(world.create(machine(("P", passing()))), {"secret": 1})
        await execution.ended()
        told = world.api("DescribeExecution", executionArn=execution.arn, includedData="METADATA_ONLY")
        assert not {"input", "output"} & told.keys()
        arn = execution.origin.machine_arn
        told = world.api("DescribeStateMachine", stateMachineArn=arn, includedData="METADATA_ONLY")
        assert "{}" == told["definition"]

    play(scene)


def test_a_redrive_that_is_asked_for_again_happens_once() -> None:
    async def scene(world: World) -> None:
        execution = world.start(world.create(machine(("F", {"Type": "Fail"}))))
        await execution.ended()
        asked = {"executionArn": execution.arn, "clientToken": "once"}
        first = world.api("RedriveExecution", **asked)
        await execution.ended()
        assert first == world.api("RedriveExecution", **asked)
        assert 1 == execution.redrive_count
        listed = world.api(
            "ListExecutions", stateMachineArn=execution.origin.machine_arn, redriveFilter="REDRIVEN"
        )
        assert [execution.arn] == [each["executionArn"] for each in listed["executions"]]

    play(scene)


ROLE = "arn:aws:iam::000000000000:role/path/machines"


@pytest.mark.parametrize("role", ["x", "arn:aws:iam::000000000000:user/u", "arn:aws:iam::000000000000:role/"])
def test_a_role_is_named_by_its_arn(role: str) -> None:
    async def scene(world: World) -> None:
        made = {"name": "n", "definition": json.dumps(machine(("P", passing())))}
        arn = world.api("CreateStateMachine", **made, roleArn=ROLE)["stateMachineArn"]
        for operation, body in (
            ("CreateStateMachine", made),
            ("UpdateStateMachine", {"stateMachineArn": arn}),
        ):
            with pytest.raises(ApiError, match="InvalidArn: Invalid Role Arn"):
                world.api(operation, **body, roleArn=role)

    play(scene)


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("more than one tag", ["a", "a"]),
        ("cannot begin with aws:", ["aws:a"]),
        ("cannot begin", ["AWS:a"]),
        ("Value null at 'tags.2.member.key'", ["a", None]),
    ],
)
def test_tags_that_aws_refuses_are_refused(said: str, keys: list[str | None]) -> None:
    async def scene(world: World) -> None:
        tags = [{"key": key, "value": str(number)} for number, key in enumerate(keys)]
        with pytest.raises(ApiError, match=said):
            world.api("CreateActivity", name="a", tags=tags)

    play(scene)
