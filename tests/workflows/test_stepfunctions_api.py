"""boto3 against the server, with MiniStack as the services that machines call.

Where a test names no source: the operations' documentation in [botocore].
"""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from trueup.local.aws import client, ministack
from trueup.local.stepfunctions import stepfunctions

ROLE = "arn:aws:iam::000000000000:role/machines"
PASS = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
SLOW = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
MOCKS = {
    "StateMachines": {"mocked": {"TestCases": {"Happy": {"T": "Good"}}}},
    "MockedResponses": {"Good": {"0": {"Return": {"mocked": True}}}},
}


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """The endpoint of a MiniStack."""
    with ministack(["dynamodb", "s3", "sqs", "events", "lambda"]) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def sfn(aws: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A boto3 client of our server."""
    mocks = tmp_path_factory.mktemp("mocks") / "mocks.json"
    mocks.write_text(json.dumps(MOCKS))
    with stepfunctions({"*": aws, "events": aws}, mocks=mocks) as url:
        yield client("stepfunctions", url)


def create(sfn: Any, name: str, definition: Any) -> str:
    return str(
        sfn.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)[
            "stateMachineArn"
        ]
    )


def task(resource: str, parameters: Any, **fields: Any) -> dict[str, Any]:
    state = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::{resource}",
        "Parameters": parameters,
        "End": True,
    }
    return {"StartAt": "T", "States": {"T": {**state, **fields}}}


def test_an_express_machine_answers_to_whoever_started_it(sfn: Any) -> None:
    definition = json.dumps(PASS)
    made = sfn.create_state_machine(name="express", definition=definition, roleArn=ROLE, type="EXPRESS")
    told = sfn.start_sync_execution(stateMachineArn=made["stateMachineArn"], input='{"x":1}')
    assert ("SUCCEEDED", '{"x":1}') == (told["status"], told["output"])


def eventually(look: Callable[[], Any], seconds: float = 20) -> Any:
    """The first answer that is one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    pytest.fail("it did not happen in time")


def finish(sfn: Any, arn: str, given: Any = None) -> Any:
    started = sfn.start_execution(stateMachineArn=arn, input=json.dumps(given or {}))
    return ended_execution(sfn, started["executionArn"])


def ended_execution(sfn: Any, arn: str) -> Any:
    """An execution's description once it has ended."""

    def look() -> Any:
        described = sfn.describe_execution(executionArn=arn)
        return None if described["status"] == "RUNNING" else described

    return eventually(look)


def test_an_execution_is_created_described_and_told(sfn: Any) -> None:
    ended = finish(sfn, create(sfn, "told", PASS), {"a": 1})
    assert ("SUCCEEDED", '{"a": 1}', "NOT_REDRIVABLE") == (
        ended["status"],
        ended["output"],
        ended["redriveStatus"],
    )
    assert isinstance(ended["stopDate"], datetime)
    events = sfn.get_execution_history(executionArn=ended["executionArn"])["events"]
    assert ["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"] == [
        event["type"] for event in events
    ]
    assert isinstance(events[0]["timestamp"], datetime)
    assert ROLE == events[0]["executionStartedEventDetails"]["roleArn"]


def test_refusals_are_boto3_s_exceptions(sfn: Any) -> None:
    errors = sfn.exceptions
    with pytest.raises(errors.ExecutionDoesNotExist):
        sfn.describe_execution(executionArn="arn:aws:states:us-east-1:000000000000:execution:no:no")
    with pytest.raises(errors.StateMachineDoesNotExist):
        sfn.start_execution(stateMachineArn="arn:aws:states:us-east-1:000000000000:stateMachine:no")
    with pytest.raises(errors.InvalidDefinition, match="Type has to be one of"):
        create(sfn, "no", {"StartAt": "A", "States": {"A": {"Type": "Nope"}}})
    with pytest.raises(errors.InvalidToken):
        sfn.send_task_success(taskToken="no", output="{}")
    with pytest.raises(ClientError, match=r"1 validation error detected: Value 'n{81}' at 'name'"):
        create(sfn, "n" * 81, PASS)


def test_machines_are_listed_in_pages_tagged_and_deleted(sfn: Any) -> None:
    names = {f"page-{number}" for number in range(3)}
    arns = [create(sfn, name, PASS) for name in names]
    pages = sfn.get_paginator("list_state_machines").paginate(PaginationConfig={"PageSize": 2})
    assert names <= {machine["name"] for page in pages for machine in page["stateMachines"]}
    sfn.tag_resource(resourceArn=arns[0], tags=[{"key": "k", "value": "v"}])
    assert [{"key": "k", "value": "v"}] == sfn.list_tags_for_resource(resourceArn=arns[0])["tags"]
    sfn.untag_resource(resourceArn=arns[0], tagKeys=["k"])
    assert [] == sfn.list_tags_for_resource(resourceArn=arns[0])["tags"]
    sfn.delete_state_machine(stateMachineArn=arns[0])
    with pytest.raises(sfn.exceptions.StateMachineDoesNotExist):
        sfn.describe_state_machine(stateMachineArn=arns[0])


def test_versions_and_aliases_are_published_started_and_deleted(sfn: Any) -> None:
    arn = create(sfn, "versioned", PASS)
    version = sfn.publish_state_machine_version(stateMachineArn=arn, description="first")
    routing = [{"stateMachineVersionArn": version["stateMachineVersionArn"], "weight": 100}]
    alias = sfn.create_state_machine_alias(name="live", routingConfiguration=routing)["stateMachineAliasArn"]
    ended = finish(sfn, alias)
    assert ("SUCCEEDED", alias) == (ended["status"], ended["stateMachineAliasArn"])
    assert version["stateMachineVersionArn"] == ended["stateMachineVersionArn"]
    assert [alias] == [
        one["stateMachineAliasArn"]
        for one in sfn.list_state_machine_aliases(stateMachineArn=arn)["stateMachineAliases"]
    ]
    with pytest.raises(sfn.exceptions.ConflictException):
        sfn.delete_state_machine_version(stateMachineVersionArn=version["stateMachineVersionArn"])
    sfn.delete_state_machine_alias(stateMachineAliasArn=alias)
    sfn.delete_state_machine_version(stateMachineVersionArn=version["stateMachineVersionArn"])
    assert [] == sfn.list_state_machine_versions(stateMachineArn=arn)["stateMachineVersions"]


def test_an_execution_is_stopped_and_listed_by_its_status(sfn: Any) -> None:
    arn = create(sfn, "stopped", SLOW)
    started = sfn.start_execution(stateMachineArn=arn)
    sfn.stop_execution(executionArn=started["executionArn"], error="Mine", cause="so")
    listed = sfn.list_executions(stateMachineArn=arn, statusFilter="ABORTED")["executions"]
    assert [started["executionArn"]] == [execution["executionArn"] for execution in listed]
    assert [] == sfn.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"]


def test_a_conditional_update_counts_and_its_refusal_can_be_caught(sfn: Any, aws: str) -> None:
    dynamodb = client("dynamodb", aws)
    dynamodb.create_table(
        TableName="runs",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="runs", Item={"id": {"S": "r"}, "open": {"BOOL": True}})
    parameters = {
        "TableName": "runs",
        "Key": {"id": {"S.$": "$.run"}},
        "UpdateExpression": "ADD launches :one",
        "ConditionExpression": "#open = :yes",
        "ExpressionAttributeNames": {"#open": "open"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":yes": {"BOOL": True}},
        "ReturnValues": "UPDATED_NEW",
    }
    definition = task(
        "dynamodb:updateItem",
        parameters,
        ResultSelector={"launch.$": "States.StringToJson($.Attributes.launches.N)"},
        Catch=[{"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "Next": "Closed"}],
    )
    definition["States"]["Closed"] = {"Type": "Fail", "Error": "Closed"}
    arn = create(sfn, "launch", definition)
    assert [1, 2] == [json.loads(finish(sfn, arn, {"run": "r"})["output"])["launch"] for _ in range(2)]
    assert "Closed" == finish(sfn, arn, {"run": "other"})["error"]


def test_a_distributed_map_reads_a_pinned_version_and_writes_its_results(sfn: Any, aws: str) -> None:
    s3 = client("s3", aws)
    s3.create_bucket(Bucket="work")
    s3.put_bucket_versioning(Bucket="work", VersioningConfiguration={"Status": "Enabled"})
    pinned = s3.put_object(Bucket="work", Key="dispatch.json", Body=b'[{"slice": 1}, {"slice": 2}]')[
        "VersionId"
    ]
    s3.put_object(Bucket="work", Key="dispatch.json", Body=b"[]")
    state = {
        "Type": "Map",
        "Label": "Slices",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": {"Bucket": "work", "Key": "dispatch.json", "VersionId.$": "$.version"},
        },
        "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **PASS},
        "MaxConcurrencyPath": "$.limit",
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "work", "Prefix": "p"},
        },
        "End": True,
    }
    ended = finish(
        sfn, create(sfn, "map", {"StartAt": "M", "States": {"M": state}}), {"version": pinned, "limit": 1}
    )
    assert "SUCCEEDED" == ended["status"], ended
    written = json.loads(ended["output"])["ResultWriterDetails"]
    manifest = json.loads(s3.get_object(Bucket=written["Bucket"], Key=written["Key"])["Body"].read())
    (listed,) = manifest["ResultFiles"]["SUCCEEDED"]
    results = json.loads(s3.get_object(Bucket="work", Key=listed["Key"])["Body"].read())
    assert [{"slice": 1}, {"slice": 2}] == [json.loads(result["Output"]) for result in results]
    run = sfn.describe_map_run(mapRunArn=manifest["MapRunArn"])
    assert ("SUCCEEDED", 2, 2) == (
        run["status"],
        run["itemCounts"]["succeeded"],
        run["itemCounts"]["resultsWritten"],
    )


def test_a_callback_goes_through_a_queue_and_back(sfn: Any, aws: str) -> None:
    sqs = client("sqs", aws)
    queue = sqs.create_queue(QueueName="tokens")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}}
    arn = create(sfn, "callback", task("sqs:sendMessage.waitForTaskToken", body, HeartbeatSeconds=30))
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    message = eventually(lambda: (sqs.receive_message(QueueUrl=queue).get("Messages") or [None])[0])
    token = json.loads(message["Body"])["token"]
    sfn.send_task_heartbeat(taskToken=token)
    sfn.send_task_success(taskToken=token, output='{"key": "k"}')
    with pytest.raises(sfn.exceptions.TaskTimedOut):
        sfn.send_task_success(taskToken=token, output='{"key": "k"}')
    ended = ended_execution(sfn, started)
    assert {"key": "k"} == json.loads(ended["output"])


def test_a_rule_hears_of_executions_that_were_aborted(sfn: Any, aws: str) -> None:
    sqs, events = client("sqs", aws), client("events", aws)
    queue = sqs.create_queue(QueueName="closer")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["aws.states"], "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"]}}
    events.put_rule(Name="closer", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="closer", Targets=[{"Id": "q", "Arn": arn}])
    started = sfn.start_execution(stateMachineArn=create(sfn, "closed", SLOW))["executionArn"]
    sfn.stop_execution(executionArn=started)

    def heard() -> Any:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        bodies = [json.loads(message["Body"]) for message in messages]
        return next((body for body in bodies if body["detail"]["executionArn"] == started), None)

    told = eventually(heard)
    assert ("Step Functions Execution Status Change", "ABORTED") == (
        told["detail-type"],
        told["detail"]["status"],
    )


HANDLER = """
import os

class Refused(Exception):
    pass

def refuse(why):
    raise Refused(why)

def handler(event, context):
    if "error" in event:
        refuse(event["error"])
    if "die" in event:
        os._exit(1)
    return {"got": event["a"] // event.get("by", 1)}
"""


def test_functions_are_invoked_in_both_ways(sfn: Any, aws: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", HANDLER)
    function = client("lambda", aws).create_function(
        FunctionName="f",
        Runtime="python3.12",
        Role=ROLE,
        Handler="app.handler",
        Code={"ZipFile": packed.getvalue()},
    )["FunctionArn"]
    by_arn = {"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": function, "End": True}}}
    arn = create(sfn, "by-arn", by_arn)
    assert {"got": 1} == json.loads(finish(sfn, arn, {"a": 1})["output"])
    failed = finish(sfn, arn, {"error": "no"})
    # As Lambda's Python runtime writes it (recorded on AWS: error_handling/test_task_lambda.py).
    payload = json.loads(failed["cause"])
    assert ("no", "Refused", "Refused") == (payload["errorMessage"], payload["errorType"], failed["error"])
    assert ["errorMessage", "errorType", "requestId", "stackTrace"] == list(payload)
    stack = payload["stackTrace"]
    assert ["in handler", "in refuse"] == [frame.partition("\n")[0].rpartition(", ")[2] for frame in stack]
    invoke = create(sfn, "invoke", task("lambda:invoke", {"FunctionName": function, "Payload.$": "$"}))
    assert {"got": 1} == json.loads(finish(sfn, invoke, {"a": 1})["output"])["Payload"]
    assert "Runtime.ExitError" == finish(sfn, invoke, {"die": True})["error"]
    catcher = {"ErrorEquals": ["ZeroDivisionError"], "Next": "Caught", "ResultPath": None}
    by_class = {
        "StartAt": "T",
        "States": {
            "T": {"Type": "Task", "Resource": function, "Catch": [catcher], "End": True},
            "Caught": {"Type": "Succeed"},
        },
    }
    assert "SUCCEEDED" == finish(sfn, create(sfn, "by-class", by_class), {"a": 1, "by": 0})["status"]


def test_a_mock_case_is_asked_for_behind_the_arn(sfn: Any) -> None:
    arn = create(sfn, "mocked", task("lambda:invoke", {"FunctionName": "nowhere"}))
    assert {"mocked": True} == json.loads(finish(sfn, f"{arn}#Happy")["output"])


def test_when_the_block_ends_nothing_listens_any_more() -> None:
    with stepfunctions() as url:
        sfn = client("stepfunctions", url)
        sfn.start_execution(stateMachineArn=create(sfn, "left", SLOW))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with (
        stepfunctions() as url,
        pytest.raises(OSError, match="in use"),
        stepfunctions(port=int(url.rpartition(":")[2])),
    ):
        pass


def test_it_serves_as_a_program_until_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trueup.local.stepfunctions", "--port", "0", "--time-scale", "0.01"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            assert b"ok" == answer.read()
        sfn = client("stepfunctions", url)
        assert "SUCCEEDED" == finish(sfn, create(sfn, "slow", SLOW))["status"]
        server.send_signal(signal.SIGINT)
        assert 0 == server.wait(20)
        assert server.stderr is not None
        assert "" == server.stderr.read()
