"""Makes a function, a table, a queue, a task definition and a machine of one's own, and runs the machine."""

import io
import json
import time
import zipfile
from pathlib import Path

import boto3
import yaml

HERE = Path(__file__).parent
ROLE = "arn:aws:iam::000000000000:role/any"  # has to be named, and need not be there

zipped = io.BytesIO()
with zipfile.ZipFile(zipped, "w") as archive:
    archive.write(HERE / "greet.py", "greet.py")
boto3.client("lambda").create_function(
    FunctionName="greet",
    Runtime="python3.12",
    Handler="greet.handler",
    Role=ROLE,
    Code={"ZipFile": zipped.getvalue()},
)
boto3.client("dynamodb").create_table(
    TableName="letters",
    KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    BillingMode="PAY_PER_REQUEST",
)
sqs = boto3.client("sqs")
queue = sqs.create_queue(QueueName="questions")["QueueUrl"]
main = {"name": "main", "image": "counter", "command": ["python", "count.py"]}
boto3.client("ecs").register_task_definition(
    family="counter",
    requiresCompatibilities=["FARGATE"],
    networkMode="awsvpc",
    cpu="256",
    memory="512",
    containerDefinitions=[main],
)

states = boto3.client("stepfunctions")
definition = json.dumps(yaml.safe_load((HERE / "machine.asl.yaml").read_text()))
machine = states.create_state_machine(name="greeter", definition=definition, roleArn=ROLE)["stateMachineArn"]


def ended(execution):
    """Wait for its end."""
    while (told := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
        time.sleep(0.1)
    return told


def happened(execution):
    """Its events, in the order of its history."""
    return states.get_execution_history(executionArn=execution)["events"]


given = json.dumps({"names": ["ann", "bob"], "queue": queue})
execution = states.start_execution(stateMachineArn=machine, input=given)["executionArn"]
(message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
states.send_task_success(taskToken=json.loads(message["Body"])["token"], output='{"right": true}')
print(ended(execution)["status"], json.loads(ended(execution)["output"])["answer"])
for event in happened(execution):
    print(event["id"], event["previousEventId"], event["type"])

case = states.start_execution(stateMachineArn=f"{machine}#NoRoomAtFirst", input=given)["executionArn"]
failures = [event["type"] for event in happened(case) if event["type"].endswith("Failed")]
print(ended(case)["status"], "after", failures)
