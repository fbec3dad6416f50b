"""What integrations add to a call, how their failures are named, and how jobs that are waited for end.

Where a test names no source: [dg:connect-to-resource].
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions import history
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.catalogue import find_service, has_operation
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.model import Resource

from .harness import Ran, Services, World, execute, machine, play, ran, refuse


def task(resource: str, parameters: Any, **fields: Any) -> dict[str, Any]:
    return machine(("T", {"Type": "Task", "Resource": resource, "Parameters": parameters, **fields}))


def optimized(name: str, parameters: Any, **fields: Any) -> dict[str, Any]:
    return task(f"arn:aws:states:::{name}", parameters, **fields)


GET = optimized("dynamodb:getItem", {"TableName": "t", "Key": {"id": {"S": "1"}}})


@pytest.mark.parametrize("pattern", [".sync", ".waitForTaskToken"])
def test_what_the_service_does_not_take_was_not_submitted(pattern: str) -> None:
    # [botocore]: TaskSubmitFailed, "a task that failed to submit".
    call = optimized(f"ecs:runTask{pattern}", {"TaskDefinition": "t"})
    ended = execute(call, services=Services(ecs_runTask=refuse("AccessDeniedException")))
    assert ["TaskScheduled", "TaskStarted", "TaskSubmitFailed", "ExecutionFailed"] == ended.types[2:]
    assert "ECS.AccessDeniedException" == ended.details("TaskSubmitFailed")["error"]


def test_a_job_is_stopped_when_there_is_no_room_left_to_tell_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # aws-facts section 1.1: the last event is the failure.
    child = machine(("W", {"Type": "Wait", "Seconds": 99}))
    parameters = {"StateMachineArn.$": "$.child"}
    monkeypatch.setattr(history, "MAX_EVENTS", 5)

    async def scene(world: World) -> tuple[str | None, set[str]]:
        given = {"child": world.create(child, "child")}
        parent = world.start(world.create(optimized("states:startExecution.sync", parameters)), given)
        await parent.ended()
        await world.engine.clock.sleep(1)
        others = {each.status for each in world.engine.executions.values() if each is not parent}
        return parent.cause, others

    cause, others = play(scene)
    assert "maximum number of history events" in str(cause)
    assert {"ABORTED"} == others


def test_a_job_that_is_waited_for_may_end_by_its_token_too() -> None:
    # [botocore] SendTaskSuccess: "optionally Task states using the job run pattern".
    child = machine(("W", {"Type": "Wait", "Seconds": 99}))
    parameters = {"StateMachineArn.$": "$.child", "Input": {"token.$": "$$.Task.Token"}}

    async def scene(world: World) -> Ran:
        given = {"child": world.create(child, "child")}
        parent = world.start(world.create(optimized("states:startExecution.sync", parameters)), given)
        await world.engine.clock.sleep(5)
        started = next(each for each in world.engine.executions.values() if each is not parent)
        world.api("SendTaskSuccess", taskToken=started.input.value["token"], output='{"early": true}')
        await parent.ended()
        assert "RUNNING" == started.status
        return ran(parent)

    ended = play(scene)
    assert ({"early": True}, 5) == (ended.output, ended.seconds)


def test_the_role_of_credentials_is_told_in_the_history() -> None:
    role = "arn:aws:iam::111111111111:role/other"
    services = Services(dynamodb_getItem=lambda _: {})
    state = {**GET["States"]["T"], "Credentials": {"RoleArn.$": "$.role"}}
    ran = execute(machine(("T", state)), {"role": role}, services)
    assert {"roleArn": role} == ran.details("TaskScheduled")["taskCredentials"]


PUT = optimized("events:putEvents", {"Entries": [{"Detail": {"a": 1}, "DetailType": "t", "Source": "s"}]})


def test_events_carry_the_arns_of_the_execution_and_its_machine() -> None:
    # [dg:connect-eventbridge]
    services = Services(events_putEvents=lambda _: {"Entries": [{"EventId": "1"}], "FailedEntryCount": 0})
    assert "SUCCEEDED" == execute(PUT, services=services).status
    execution, states = services.called("events:putEvents")[0]["Entries"][0]["Resources"]
    assert execution.startswith("arn:aws:states:us-east-1:000000000000:execution:m:")
    assert "arn:aws:states:us-east-1:000000000000:stateMachine:m" == states


def test_events_that_were_not_taken_fail_the_task() -> None:
    # [dg:connect-eventbridge]
    entry = {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
    services = Services(events_putEvents=lambda _: {"Entries": [entry], "FailedEntryCount": 1})
    ran = execute(PUT, services=services)
    assert "EventBridge.FailedEntry" == ran.error
    assert {"Entries": [entry], "FailedEntryCount": 1} == json.loads(str(ran.cause))


def test_lambda_invoke_gives_whatever_the_call_gave() -> None:
    answer = {"Payload": b"{}", "StatusCode": 200, "ExecutedVersion": "3", "LogResult": "bG9n"}
    call = optimized("lambda:invoke", {"FunctionName": "f", "LogType": "Tail"})
    output = execute(call, services=Services(lambda_invoke=lambda _: answer)).output
    assert ("3", "bG9n", {}) == (output["ExecutedVersion"], output["LogResult"], output["Payload"])
    headers = output["SdkHttpMetadata"]["HttpHeaders"]
    assert ("bG9n", "3") == (headers["X-Amz-Log-Result"], headers["X-Amz-Executed-Version"])


def test_attributes_are_in_the_order_of_a_hash_map_and_headers_in_that_of_the_alphabet() -> None:
    # Recorded on AWS: test_dynamodb_put_update_get_item (S, data, id), test_base_integrations (HttpHeaders).
    item = {name: {"S": name} for name in ("id", "data", "S")}
    call = optimized("dynamodb:getItem", {"TableName": "t", "Key": {"id": {"S": "1"}}})
    output = execute(call, services=Services(dynamodb_getItem=lambda _: {"Item": item})).output
    assert ["S", "data", "id"] == list(output["Item"])
    assert ["Connection", "Content-Length", "Content-Type", "Date", "Server"] == list(
        output["SdkHttpMetadata"]["HttpHeaders"]
    )[:5]
    assert "Server" == next(iter(output["SdkHttpMetadata"]["AllHttpHeaders"]))


def test_an_invocation_that_is_not_waited_for_has_no_payload() -> None:
    # [botocore lambda] InvocationResponse: status 202 for the type Event, with an empty body.
    call = optimized("lambda:invoke", {"FunctionName": "f", "InvocationType": "Event"})
    services = Services(lambda_invoke=lambda _: {"Payload": b"", "StatusCode": 202})
    output = execute(call, services=services).output
    assert {"Payload": "", "StatusCode": 202} == {name: output[name] for name in output if "Sdk" not in name}


def test_members_of_an_answer_are_in_the_order_of_the_alphabet_and_a_stream_comes_last() -> None:
    # Recorded on AWS: test_s3_get_object, test_start_execution (ExecutionArn, Sdk…, StartDate).
    answer = {"Body": b"text", "LastModified": 0, "ETag": "e", "ContentLength": 4}
    call = task("arn:aws:states:::aws-sdk:s3:getObject", {"Bucket": "b", "Key": "k"})
    output = execute(call, services=Services(s3_getObject=lambda _: answer)).output
    assert ["ContentLength", "ETag", "LastModified", "Body"] == list(output)
    answer = {"tasks": [{"taskArn": "t", "containers": [], "attachments": []}], "failures": []}
    call = optimized("ecs:runTask", {"TaskDefinition": "d"})
    output = execute(call, services=Services(ecs_runTask=lambda _: answer)).output
    assert ["Failures", "SdkHttpMetadata", "SdkResponseMetadata", "Tasks"] == list(output)
    assert ["Attachments", "Containers", "TaskArn"] == list(output["Tasks"][0])


def test_an_error_of_sqs_has_its_name_of_the_model_and_its_older_code() -> None:
    # [botocore sqs] QueueDoesNotExist, which the service also calls by the code of its query protocol.
    def send(_: Any) -> Any:
        raise ServiceFailure(
            "AWS.SimpleQueueService.NonExistentQueue", "gone", request_id="r", shape="QueueDoesNotExist"
        )

    call = optimized("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "m"})
    ran = execute(call, services=Services(sqs_sendMessage=send))
    cause = (
        "gone (Service: AmazonSQS; Status Code: 400; Error Code: AWS.SimpleQueueService.NonExistentQueue; "
        "Request ID: r; Proxy: null)"
    )
    assert ("SQS.QueueDoesNotExistException", cause) == (ran.error, ran.cause)


def test_causes_of_s3_have_the_second_id_of_the_request() -> None:
    def get(_: Any) -> Any:
        raise ServiceFailure("NoSuchKey", "no key", status=404, request_id="r", extended_id="x")

    call = task("arn:aws:states:::aws-sdk:s3:getObject", {"Bucket": "b", "Key": "k"})
    ran = execute(call, services=Services(s3_getObject=get))
    cause = (
        "no key (Service: S3, Status Code: 404, Request ID: r, Extended Request ID: x) (SDK Attempt Count: 1)"
    )
    assert ("S3.NoSuchKeyException", cause) == (ran.error, ran.cause)


@pytest.mark.parametrize(
    ("prefix", "service", "action"),
    [
        ("SecretsManager", "secretsmanager", "listSecrets"),
        ("CognitoIdentityProvider", "cognitoidentityprovider", "listUserPools"),
        ("ElasticLoadBalancingV2", "elasticloadbalancingv2", "describeListeners"),
        ("CloudWatchLogs", "cloudwatchlogs", "describeLogGroups"),
        ("ApplicationAutoScaling", "applicationautoscaling", "describeScalableTargets"),
        ("EventBridge", "eventbridge", "listEventBuses"),
    ],
)
def test_services_are_named_as_in_the_java_sdk(prefix: str, service: str, action: str) -> None:
    # [dg:supported-services-awssdk]
    resource = Resource("", f"aws-sdk:{service}", service, action, "")
    assert has_operation(service, action)
    assert prefix == find_service(resource).prefix


def test_the_sdk_s_names_are_those_of_java() -> None:
    # aws/aws-sdk-js#4294: BOOL comes as Bool; recorded on AWS: ETag and ChecksumCRC32 (test_s3_get_object).
    item = {"id": {"S": "1"}, "on": {"BOOL": True}, "all": {"SS": ["a"]}, "none": {"NULL": True}}
    services = Services(dynamodb_getItem=lambda _: {"Item": item})
    call = task("arn:aws:states:::aws-sdk:dynamodb:getItem", {"TableName": "t", "Key": {"id": {"S": "1"}}})
    spelled = {"id": {"S": "1"}, "on": {"Bool": True}, "all": {"Ss": ["a"]}, "none": {"Nul": True}}
    assert {"Item": spelled} == execute(call, services=services).output
    taken = shapes.operation("dynamodb", "putItem").input_shape
    assert {"Item": item} == shapes.to_api(taken, {"Item": spelled})


def test_parameters_of_the_sdk_s_calls_are_spelled_as_java_spells_them() -> None:
    describe = "arn:aws:states:::aws-sdk:rds:describeDBInstances"
    answer = {"DBInstances": [{"DBInstanceIdentifier": "one", "MultiAZ": True}]}
    services = Services(rds_describeDBInstances=lambda _: answer)
    ended = execute(task(describe, {"DbInstanceIdentifier": "one"}), services=services)
    assert {"DbInstances": [{"DbInstanceIdentifier": "one", "MultiAZ": True}]} == ended.output
    with pytest.raises(ApiError, match='The field "DBInstanceIdentifier" is not supported'):
        execute(task(describe, {"DBInstanceIdentifier": "one"}))
