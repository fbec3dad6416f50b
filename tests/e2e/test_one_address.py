"""Everything through one address, where what people make works as what the template made."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import urllib.request
import zipfile
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config

from trueup.local.stack import Stack

from .watching import wait_until

pytestmark = pytest.mark.timeout(300)

Connect = Callable[[str], Any]
ROLE = "arn:aws:iam::000000000000:role/any"
GREET = """
import boto3

def handler(event, context):
    machines = boto3.client("stepfunctions").list_state_machines()["stateMachines"]
    # Of a job that template.yaml does not have: only our ECS knows it.
    tasks = boto3.client("ecs").describe_task_definition(taskDefinition="trueup-steps-write")
    boto3.client("dynamodb").put_item(TableName="greeted", Item={"PK": {"S": event["name"]}})
    return {
        "greeting": f"hello {event['name']}",
        "machines": sorted(machine["name"] for machine in machines),
        "tasks": tasks["taskDefinition"]["family"],
    }
"""


@pytest.fixture
def connect(up: Stack) -> Connect:
    """Clients that know the address and nothing else of the stack."""
    told = up.environment()
    session = boto3.session.Session(told["AWS_ACCESS_KEY_ID"], told["AWS_SECRET_ACCESS_KEY"])
    config = Config(s3={"addressing_style": "path"})
    return lambda service: session.client(
        service, endpoint_url=told["AWS_ENDPOINT_URL"], region_name="us-east-1", config=config
    )


def _zip(code: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", code)
    return packed.getvalue()


def test_the_environment_names_one_address_alone(up: Stack) -> None:
    assert ["AWS_ENDPOINT_URL"] == [name for name in up.environment() if name.startswith("AWS_ENDPOINT_URL")]
    assert up.api.startswith(up.environment()["AWS_ENDPOINT_URL"])


def test_what_people_make_works_together(up: Stack, connect: Connect) -> None:
    function = connect("lambda").create_function(
        FunctionName="greet",
        Runtime=f"python3.{sys.version_info.minor}",
        Role=ROLE,
        Handler="app.handler",
        Timeout=60,
        Code={"ZipFile": _zip(GREET)},
    )["FunctionArn"]
    connect("dynamodb").create_table(
        TableName="greeted",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    queue = connect("sqs").create_queue(QueueName="greetings")["QueueUrl"]
    machine = connect("stepfunctions").create_state_machine(
        name="greeter", roleArn=ROLE, definition=json.dumps(_greeter(function, queue))
    )["stateMachineArn"]
    execution = connect("stepfunctions").start_execution(stateMachineArn=machine, input='{"name": "ann"}')
    seen = _awaited(connect, execution["executionArn"])
    assert "SUCCEEDED" == seen["status"], seen
    (message,) = connect("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
    told = json.loads(message["Body"])
    assert "hello ann" == told["greeting"]
    assert {"greeter", "trueup-backfill", "trueup-partitions"} <= set(told["machines"])
    assert "trueup-steps-write" == told["tasks"]
    assert 1 == connect("dynamodb").scan(TableName="greeted")["Count"]


def _marks(connect: Connect, name: str) -> tuple[str, str]:
    """A machine that puts its input into a table of its own: its ARN, and the table."""
    connect("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"PK": {"S.$": "$$.Execution.Name"}, "given": {"S.$": "States.JsonToString($)"}}
    put = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:putItem",
        "Parameters": {"TableName": name, "Item": item},
        "End": True,
    }
    definition = json.dumps({"StartAt": "Put", "States": {"Put": put}})
    made = connect("stepfunctions").create_state_machine(name=name, roleArn=ROLE, definition=definition)
    return made["stateMachineArn"], name


def _marked(connect: Connect, table: str) -> list[Any]:
    wait_until(lambda: connect("dynamodb").scan(TableName=table)["Count"] > 0)
    return [json.loads(item["given"]["S"]) for item in connect("dynamodb").scan(TableName=table)["Items"]]


def test_a_rule_starts_a_machine(connect: Connect) -> None:
    """EventBridge user guide, "Targets": a state machine is started with the event as its input."""
    machine, table = _marks(connect, "ruled")
    events = connect("events")
    events.put_rule(Name="ruled", EventPattern=json.dumps({"source": ["mine"]}))
    events.put_targets(Rule="ruled", Targets=[{"Id": "1", "Arn": machine, "RoleArn": ROLE}])
    events.put_events(Entries=[{"Source": "mine", "DetailType": "t", "Detail": '{"n": 1}'}])
    (given,) = _marked(connect, table)
    assert ("mine", {"n": 1}) == (given["source"], given["detail"])


def test_a_schedule_starts_a_machine(connect: Connect) -> None:
    """Scheduler user guide, "Templated targets": StartExecution takes the schedule's Input."""
    machine, table = _marks(connect, "scheduled")
    connect("scheduler").create_schedule(
        Name="once",
        ScheduleExpression="at(2026-01-01T00:00:00)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": machine, "RoleArn": ROLE, "Input": '{"n": 2}'},
    )
    assert [{"n": 2}] == _marked(connect, table)


@pytest.mark.parametrize(("name", "source"), [("told-of-states", "aws.states"), ("told-of-ecs", "aws.ecs")])
def test_a_change_of_status_starts_a_machine(connect: Connect, up: Stack, name: str, source: str) -> None:
    """EventBridge user guide, "Targets": so do events of executions, and of tasks."""
    machine, table = _marks(connect, name)
    connect("events").put_rule(Name=name, EventPattern=json.dumps(_ends_of(source)))
    connect("events").put_targets(Rule=name, Targets=[{"Id": "1", "Arn": machine}])
    nothing = json.dumps({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}})
    quick = connect("stepfunctions").create_state_machine(name="quick", roleArn=ROLE, definition=nothing)
    connect("stepfunctions").start_execution(stateMachineArn=quick["stateMachineArn"])
    subnets = {"awsvpcConfiguration": {"subnets": ["subnet-local"]}}
    connect("ecs").run_task(taskDefinition="trueup-steps-write", networkConfiguration=subnets)
    assert {source} == {event["source"] for event in _marked(connect, table)}
    connect("events").remove_targets(Rule=name, Ids=["1"])


def _ends_of(source: str) -> dict[str, Any]:
    """Of the machine `quick`, or of tasks."""
    quick = {"stateMachineArn": [{"suffix": ":quick"}], "status": ["SUCCEEDED"]}
    return {"source": [source], "detail": quick if source == "aws.states" else {"lastStatus": ["STOPPED"]}}


@pytest.mark.parametrize(
    ("service", "operation"), [("ssm", "describe_parameters"), ("kms", "list_keys"), ("ec2", "describe_vpcs")]
)
def test_services_that_nothing_of_ours_uses_answer_too(
    connect: Connect, service: str, operation: str
) -> None:
    assert 200 == getattr(connect(service), operation)()["ResponseMetadata"]["HTTPStatusCode"]


def _greeter(function: str, queue: str) -> dict[str, Any]:
    return {
        "StartAt": "Greet",
        "States": {
            "Greet": {"Type": "Task", "Resource": function, "Next": "Tell"},
            "Tell": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage",
                "Parameters": {"QueueUrl": queue, "MessageBody.$": "$"},
                "End": True,
            },
        },
    }


def _awaited(connect: Connect, execution: str) -> dict[str, Any]:
    machines = connect("stepfunctions")

    def over() -> bool:
        return bool(machines.describe_execution(executionArn=execution)["status"] != "RUNNING")

    wait_until(over)
    found: dict[str, Any] = machines.describe_execution(executionArn=execution)
    return found


def test_objects_of_any_size_and_name_pass(connect: Connect) -> None:
    s3 = connect("s3")
    s3.create_bucket(Bucket="large")
    body = bytes(range(256)) * 4096 * 32
    key = "a/b c/é+~%2F?&=.bin"
    s3.upload_fileobj(io.BytesIO(body), "large", key)  # in parts
    s3.put_object(Bucket="large", Key="whole", Body=body)
    for name in (key, "whole"):
        found = s3.get_object(Bucket="large", Key=name)
        assert hashlib.sha256(body).digest() == hashlib.sha256(found["Body"].read()).digest()
        assert len(body) == s3.head_object(Bucket="large", Key=name)["ContentLength"]
    assert body[10:20] == s3.get_object(Bucket="large", Key=key, Range="bytes=10-19")["Body"].read()
    link = s3.generate_presigned_url("get_object", Params={"Bucket": "large", "Key": "whole"})
    with urllib.request.urlopen(link, timeout=60) as answer:  # noqa: S310 - the stack's own address
        assert len(body) == len(answer.read())


def test_what_a_task_wrote_is_at_the_address_too(up: Stack) -> None:
    with urllib.request.urlopen(f"{up.endpoint}/_ecs/ready", timeout=20) as answer:  # noqa: S310
        assert b"ok" == answer.read()
