"""Tasks: what is called and how, what comes back, what a failure is called.

Where a test names no source: [dg:connect-to-resource] and [botocore].
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations import shapes

from .harness import Ran, Services, World, execute, machine, play, ran, refuse

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"


def task(resource: str, parameters: Any = None, **fields: Any) -> dict[str, Any]:
    given = {} if parameters is None else {"Parameters": parameters}
    return machine(("T", {"Type": "Task", "Resource": resource, **given, **fields}))


def optimized(name: str, parameters: Any, **fields: Any) -> dict[str, Any]:
    return task(f"arn:aws:states:::{name}", parameters, **fields)


GET = optimized("dynamodb:getItem", {"TableName": "t", "Key": {"id": {"S": "1"}}})
SEND = optimized(
    "sqs:sendMessage.waitForTaskToken", {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}}
)


def test_an_optimized_call_gives_its_answer_with_the_metadata_of_the_sdk() -> None:
    # Recorded on AWS: test_base_integrations[DYNAMODB_PUT_GET_ITEM].
    services = Services(dynamodb_getItem=lambda _: {"Item": {"id": {"S": "1"}}})
    ran = execute(GET, services=services)
    assert {"Item", "SdkHttpMetadata", "SdkResponseMetadata"} == set(ran.output)
    assert {"RequestId": "request-1"} == ran.output["SdkResponseMetadata"]
    assert ["TaskScheduled", "TaskStarted", "TaskSucceeded"] == ran.types[2:5]
    scheduled = ran.details("TaskScheduled")
    assert ("dynamodb", "getItem", "us-east-1") == tuple(
        scheduled[key] for key in ("resourceType", "resource", "region")
    )
    assert {"TableName": "t", "Key": {"id": {"S": "1"}}} == json.loads(scheduled["parameters"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("DynamoDB.ConditionalCheckFailedException", "ConditionalCheckFailedException"),
        ("DynamoDB.AmazonDynamoDBException", "SomethingElse"),
    ],
)
def test_an_error_of_the_model_keeps_its_name_and_others_take_the_generic_one(error: str, code: str) -> None:
    ran = execute(GET, services=Services(dynamodb_getItem=refuse(code, "The condition failed")))
    # Recorded on AWS: test_put_item_no_such_table.
    cause = f"The condition failed (Service: AmazonDynamoDBv2; Status Code: 400; Error Code: {code}; Request ID: request-1; Proxy: null)"  # noqa: E501
    assert (error, cause) == (ran.error, ran.cause)


def test_aws_sdk_calls_name_errors_in_the_case_of_the_java_sdk() -> None:
    # Recorded on AWS: test_dynamodb_put_item_no_such_table.
    call = optimized("aws-sdk:dynamodb:getItem", {"TableName": "t", "Key": {}})
    ran = execute(call, services=Services(dynamodb_getItem=refuse("ResourceNotFoundException")))
    assert "DynamoDb.ResourceNotFoundException" == ran.error
    assert "aws-sdk:dynamodb" == ran.details("TaskFailed")["resourceType"]


def test_aws_sdk_calls_give_the_answer_alone() -> None:
    call = optimized("aws-sdk:dynamodb:getItem", {"TableName": "t", "Key": {}})
    assert {} == execute(call, services=Services(dynamodb_getItem=lambda _: {})).output


def test_a_function_by_its_arn_gets_the_input_and_has_events_of_its_own() -> None:
    # Recorded on AWS: test_invoke_json_values.
    services = Services(lambda_invoke=lambda _: {"Payload": b'{"b": 2}'})
    ran = execute(task(FUNCTION), {"a": 1}, services)
    assert {"b": 2} == ran.output
    assert ["LambdaFunctionScheduled", "LambdaFunctionStarted", "LambdaFunctionSucceeded"] == ran.types[2:5]
    assert {"FunctionName": FUNCTION, "Payload": '{"a":1}'} == services.calls[0][1]


def test_a_function_s_exception_is_the_error_and_its_payload_the_cause() -> None:
    # Recorded on AWS: test_raise_exception; lambda:invoke writes the payload anew, without spaces.
    payload = '{"errorMessage": "no", "errorType": "Custom"}'
    services = Services(lambda_invoke=lambda _: {"FunctionError": "Unhandled", "Payload": payload.encode()})
    by_arn = execute(task(FUNCTION), services=services)
    assert ("Custom", payload) == (by_arn.error, by_arn.cause)
    invoked = execute(optimized("lambda:invoke", {"FunctionName": "f"}), services=services)
    assert ("Custom", payload.replace(" ", "")) == (invoked.error, invoked.cause)


def test_a_function_that_dies_without_a_type_is_lambda_unknown() -> None:
    services = Services(
        lambda_invoke=lambda _: {"FunctionError": "Unhandled", "Payload": b'{"errorMessage":"x"}'}
    )
    assert "Lambda.Unknown" == execute(task(FUNCTION), services=services).error


def test_lambda_invoke_parses_the_payload() -> None:
    services = Services(
        lambda_invoke=lambda _: {"Payload": b"[1]", "StatusCode": 200, "ExecutedVersion": "$LATEST"}
    )
    ran = execute(optimized("lambda:invoke", {"FunctionName": "f", "Payload.$": "$"}), {"a": 1}, services)
    assert ([1], 200, "$LATEST") == tuple(
        ran.output[key] for key in ("Payload", "StatusCode", "ExecutedVersion")
    )


def test_a_task_is_cut_off_after_its_timeout() -> None:
    # Recorded on AWS: test_fixed_timeout_service_lambda_with_path.
    services = Services(lambda_invoke=lambda _: asyncio.sleep(1000))
    call = optimized("lambda:invoke", {"FunctionName": "f"}, TimeoutSecondsPath="$.limit")
    ran = execute(call, {"limit": 5}, services)
    assert ("FAILED", "States.Timeout", None, 5) == (ran.status, ran.error, ran.cause, ran.seconds)
    assert 5 == ran.details("TaskScheduled")["timeoutInSeconds"]
    assert "TaskTimedOut" == ran.types[-2]


@pytest.mark.parametrize("field", ["TimeoutSecondsPath", "HeartbeatSecondsPath"])
def test_a_limit_that_is_not_there_fails_before_the_task_is_scheduled(field: str) -> None:
    # The words are those of moto's engine, which was made to agree with AWS.
    ran = execute(optimized("lambda:invoke", {"FunctionName": "f"}, **{field: "$.limit"}))
    assert ["TaskStateEntered", "ExecutionFailed"] == ran.types[-2:]
    assert str(ran.cause).endswith("Invalid path '$.limit' : No results for path: $['limit']")


def test_a_function_by_its_arn_times_out_in_events_of_its_own() -> None:
    services = Services(lambda_invoke=lambda _: asyncio.sleep(1000))
    ran = execute(task(FUNCTION, TimeoutSeconds=2), services=services)
    assert ["LambdaFunctionTimedOut", "ExecutionFailed"] == ran.types[-2:]


# Callbacks.


def waiting(scene_of: Any, definition: Any = SEND, **settings: Any) -> Any:
    """Run a machine that waits for a callback, with a scene that knows its token."""
    sent: list[str] = []
    services = Services(sqs_sendMessage=lambda given: sent.append(given["MessageBody"]["token"]) or {})

    async def scene(world: World) -> Any:
        execution = world.start(world.create(definition), {})
        await asyncio.sleep(0.1)
        result = await scene_of(world, sent)
        await execution.ended()
        return ran(execution), result

    return play(scene, services, **settings)


def test_a_callback_task_ends_with_what_is_sent() -> None:
    # Recorded on AWS: test_sqs_wait_for_task_token.
    async def succeed(world: World, tokens: list[str]) -> None:
        await asyncio.sleep(10)
        world.api("SendTaskSuccess", taskToken=tokens[0], output='{"done": true}')

    ended, _ = waiting(succeed)
    assert {"done": True} == ended.output
    assert ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"] == ended.types[2:6]


def test_a_callback_task_fails_with_what_is_sent() -> None:
    async def fail(world: World, tokens: list[str]) -> None:
        world.api("SendTaskFailure", taskToken=tokens[0], error="Mine", cause="so")

    ended, _ = waiting(fail)
    assert ("Mine", "so") == (ended.error, ended.cause)


def test_tokens_are_as_long_as_real_ones_and_of_base64() -> None:
    async def look(world: World, tokens: list[str]) -> str:
        world.api("SendTaskSuccess", taskToken=tokens[0], output="1")
        return tokens[0]

    _, token = waiting(look)
    assert 500 < len(token) < 1024
    assert {"+", "/"} <= set(token)


def test_the_second_answer_is_late() -> None:
    # aws-facts section 1.5: a duplicate is an error, not a no-op.
    async def twice(world: World, tokens: list[str]) -> str:
        world.api("SendTaskSuccess", taskToken=tokens[0], output="1")
        with pytest.raises(ApiError) as raised:
            world.api("SendTaskSuccess", taskToken=tokens[0], output="2")
        return raised.value.name

    ended, name = waiting(twice)
    assert (1, "TaskTimedOut") == (ended.output, name)


@pytest.mark.parametrize("operation", ["SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"])
def test_a_made_up_token_is_invalid(operation: str) -> None:
    # Recorded on AWS: test_sfn_send_task_outcome_with_no_such_token.
    async def scene(world: World) -> None:
        with pytest.raises(ApiError) as raised:
            world.api(operation, taskToken="NoSuchToken", output="{}")
        assert ("InvalidToken", "Invalid Token: 'Invalid token'") == (raised.value.name, raised.value.message)

    play(scene)


def test_an_output_that_is_not_json_is_refused_and_the_task_still_waits() -> None:
    async def badly(world: World, tokens: list[str]) -> str:
        with pytest.raises(ApiError) as raised:
            world.api("SendTaskSuccess", taskToken=tokens[0], output="{")
        world.api("SendTaskSuccess", taskToken=tokens[0], output="1")
        return raised.value.name

    ended, name = waiting(badly)
    assert ("SUCCEEDED", "InvalidOutput") == (ended.status, name)


def with_heartbeat(**fields: Any) -> dict[str, Any]:
    state = {**SEND["States"]["T"], **fields}
    return {"StartAt": "T", "States": {"T": state}}


def test_a_missed_heartbeat_is_a_timeout_without_a_cause() -> None:
    # Recorded on AWS: test_heartbeat_no_timeout.
    async def nothing(world: World, tokens: list[str]) -> None:
        await asyncio.sleep(20)
        with pytest.raises(ApiError, match="TaskTimedOut"):
            world.api("SendTaskSuccess", taskToken=tokens[0], output="1")

    ended, _ = waiting(nothing, with_heartbeat(HeartbeatSeconds=5))
    assert ("States.Timeout", None, 5) == (ended.error, ended.cause, ended.seconds)
    assert {"error": "States.Timeout", "resource": "sendMessage.waitForTaskToken", "resourceType": "sqs"} == (
        ended.details("TaskTimedOut")
    )


def test_heartbeats_keep_a_task_alive_but_not_beyond_its_timeout() -> None:
    # aws-facts section 1.5: a heartbeat does not extend TimeoutSeconds, and writes no event.
    async def beating(world: World, tokens: list[str]) -> None:
        for _ in range(9):
            await asyncio.sleep(4)
            world.api("SendTaskHeartbeat", taskToken=tokens[0])

    ended, _ = waiting(beating, with_heartbeat(HeartbeatSeconds=5, TimeoutSeconds=38))
    assert ("States.Timeout", 38) == (ended.error, round(ended.seconds, 3))
    assert 7 == len(ended.events)


def test_heartbeats_that_were_not_asked_for_do_nothing() -> None:
    # catalogue-pipeline#3597 (aws-facts section 2.5).
    async def beating(world: World, tokens: list[str]) -> None:
        world.api("SendTaskHeartbeat", taskToken=tokens[0])
        await asyncio.sleep(10**6)
        world.api("SendTaskSuccess", taskToken=tokens[0], output="1")

    assert "SUCCEEDED" == waiting(beating)[0].status


def test_a_retry_gets_a_new_token() -> None:
    async def second(world: World, tokens: list[str]) -> None:
        world.api("SendTaskFailure", taskToken=tokens[0], error="Again")
        await asyncio.sleep(2)
        world.api("SendTaskSuccess", taskToken=tokens[1], output="2")

    ended, _ = waiting(second, with_heartbeat(Retry=[{"ErrorEquals": ["Again"]}]))
    assert 2 == ended.output


# Nested executions.

NESTED = "states:startExecution"


def nested(pattern: str, child: Any, **fields: Any) -> Ran:
    async def scene(world: World) -> Ran:
        arn = world.create(child, "child")
        parameters = {"StateMachineArn": arn, "Input": {"n": 1}, "Name": "one"}
        parent = world.start(world.create(optimized(f"{NESTED}{pattern}", parameters, **fields)))
        await parent.ended()
        return ran(parent)

    result: Ran = play(scene)
    return result


SLOW = machine(("W", {"Type": "Wait", "Seconds": 30}), ("P", {"Type": "Pass", "Result": {"r": 1}}))


def test_start_execution_alone_does_not_wait() -> None:
    ended = nested("", SLOW)
    assert (0, True) == (ended.seconds, ended.output["ExecutionArn"].endswith(":execution:child:one"))


@pytest.mark.parametrize(("expected", "pattern"), [('{"r":1}', ".sync"), ({"r": 1}, ".sync:2")])
def test_sync_waits_and_sync_2_gives_json(expected: object, pattern: str) -> None:
    # Recorded on AWS: test_start_execution_sync, test_start_execution_sync2.
    ended = nested(pattern, SLOW)
    assert (30, expected, "SUCCEEDED") == (ended.seconds, ended.output["Output"], ended.output["Status"])
    assert "TaskSubmitted" in ended.types


def test_a_failed_child_fails_its_parent_with_its_description_as_the_cause() -> None:
    ended = nested(".sync:2", machine(("F", {"Type": "Fail", "Error": "Bad", "Cause": "luck"})))
    assert "States.TaskFailed" == ended.error
    told = json.loads(str(ended.cause))
    assert ("FAILED", "Bad", "luck") == (told["Status"], told["Error"], told["Cause"])


def test_a_missing_machine_is_named_with_exception_at_its_end() -> None:
    # Recorded on AWS: test_start_execution_no_such_arn.
    call = optimized(NESTED, {"StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:no"})
    assert "StepFunctions.StateMachineDoesNotExistException" == execute(call).error


def test_stopping_the_parent_stops_the_child() -> None:
    async def scene(world: World) -> tuple[str, str]:
        child = world.create(SLOW, "child")
        parent = world.start(
            world.create(optimized(f"{NESTED}.sync:2", {"StateMachineArn": child, "Name": "one"}))
        )
        await asyncio.sleep(1)
        world.api("StopExecution", executionArn=parent.arn)
        await asyncio.sleep(1)
        execution = world.engine.executions_of(child)[0]
        return parent.status, execution.status

    assert ("ABORTED", "ABORTED") == play(scene)


def test_a_machine_can_call_step_functions_itself() -> None:
    # Recorded on AWS: test_sfn_start_execution_implicit_json_serialisation; the server answers these itself.
    call = optimized("aws-sdk:sfn:startExecution", {"StateMachineArn": "x", "Input": {"a": 1}})
    services = Services(stepfunctions_startExecution=lambda _: {"executionArn": "arn", "startDate": 1.5})
    assert {"ExecutionArn": "arn", "StartDate": "1970-01-01T00:00:01.5Z"} == execute(
        call, services=services
    ).output


def test_parameters_that_come_with_the_input_are_checked_when_the_task_starts() -> None:
    ran = execute(task("arn:aws:states:::sqs:sendMessage"), {"QueueUrl": "q", "Nope": 1})
    assert "States.Runtime" == ran.error
    assert str(ran.cause).endswith(
        'could not be used to start the Task: [The field "Nope" is not supported by Step Functions, '
        'The field "MessageBody" is required but was missing]'
    )


def test_a_string_that_is_none_does_not_start_a_task() -> None:
    # In AWS's words: ASFHyP3/hyp3#2585. The message itself may be JSON ([dg:connect-sqs]).
    attributes = {"size": {"DataType": "Number", "StringValue.$": "$.size"}}
    parameters = {"QueueUrl": "q", "MessageBody": {"a": 1}, "MessageAttributes": attributes}
    ran = execute(optimized("sqs:sendMessage", parameters), {"size": 3})
    assert "States.Runtime" == ran.error
    assert str(ran.cause).endswith("[The value for the field 'StringValue' must be a STRING]")


def test_values_of_other_types_do_not_start_a_task() -> None:
    # The words of Jackson, which reads a Task's parameters for the Java SDK (aws/aws-cdk#31448).
    ran = execute(task("arn:aws:states:::aws-sdk:dynamodb:scan"), {"TableName": "t", "Limit": "few"})
    assert "States.Runtime" == ran.error
    assert str(ran.cause).endswith(
        "could not be used to start the Task: [Cannot deserialize value of type `java.lang.Integer` from "
        'String "few": not a valid `java.lang.Integer` value]'
    )


def test_numbers_and_booleans_may_be_given_as_text() -> None:
    shape = shapes.operation("dynamodb", "scan").input_shape
    given = {"TableName": "t", "Limit": "5", "ConsistentRead": "true"}
    assert {"TableName": "t", "Limit": 5, "ConsistentRead": True} == shapes.to_api(shape, given)
