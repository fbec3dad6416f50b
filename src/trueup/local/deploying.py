"""The template on the local stack: deployed by CloudFormation as on AWS, then handed to what runs it.

The emulator's CloudFormation makes every resource. Its Step Functions and its ECS only keep what the template
says of machines and tasks: the engine and the ECS server of this package take that over and run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import ClientError, WaiterError

from trueup.errors import LocalStackError
from trueup.local.aws import Connect
from trueup.local.ecs import ApiError, Ecs
from trueup.local.packaging import compiled, layer, package
from trueup.model.jobs import AnyJob

ARTEFACTS = "trueup-artefacts"
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_POLL_SECONDS = 0.2
_POLLS = 600


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the template made: its outputs by name, and the physical ids of its resources by type."""

    outputs: Mapping[str, str]
    resources: Mapping[str, list[str]]

    def of_type(self, kind: str) -> list[str]:
        """The ids of the resources of one type."""
        return self.resources.get(kind, [])


def deploy(
    connect: Connect, root: Path, stack: str, parameters: Mapping[str, str], jobs: Mapping[str, AnyJob]
) -> Deployed:
    """Package the template of a folder and deploy it as a stack. Raises LocalStackError with what failed."""
    s3 = connect("s3")
    s3.create_bucket(Bucket=ARTEFACTS)

    def put(key: str, data: bytes) -> str:
        s3.put_object(Bucket=ARTEFACTS, Key=key, Body=data)
        return f"s3://{ARTEFACTS}/{key}"

    put("template.json", package(root, compiled(layer(jobs)), put).encode())
    cloudformation = connect("cloudformation")
    _create(cloudformation, stack, f"{s3.meta.endpoint_url}/{ARTEFACTS}/template.json", parameters)
    return _deployed(cloudformation, stack)


def _create(cloudformation: Any, stack: str, template: str, parameters: Mapping[str, str]) -> None:
    given = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
    waiter = cloudformation.get_waiter("stack_create_complete")
    try:
        cloudformation.create_stack(
            StackName=stack, TemplateURL=template, Parameters=given, Capabilities=_CAPABILITIES
        )
        waiter.wait(StackName=stack, WaiterConfig={"Delay": _POLL_SECONDS, "MaxAttempts": _POLLS})
    except ClientError as error:
        raise _undeployed(error.response["Error"]["Message"]) from error
    except WaiterError as error:
        raise _undeployed(_failures(cloudformation, stack) or str(error)) from error


def _undeployed(why: str) -> LocalStackError:
    return LocalStackError(
        f"template.yaml could not be deployed: {why}", remedy="Correct the template, or what it names."
    )


def _failures(cloudformation: Any, stack: str) -> str:
    events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    return "; ".join(
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', event['ResourceStatus'])}"
        for event in reversed(events)
        if event["ResourceStatus"].endswith("_FAILED")
    )


def _deployed(cloudformation: Any, stack: str) -> Deployed:
    (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", [])}
    resources: dict[str, list[str]] = {}
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
        for one in page["StackResourceSummaries"]:
            resources.setdefault(one["ResourceType"], []).append(one["PhysicalResourceId"])
    return Deployed(outputs, resources)


def give_environment(connect: Connect, names: Iterable[str], variables: Mapping[str, str]) -> None:
    """Add variables to what functions find in their environment: where the servers are."""
    functions = connect("lambda")
    for name in names:
        found = functions.get_function_configuration(FunctionName=name)
        known = found.get("Environment", {}).get("Variables", {})
        functions.update_function_configuration(
            FunctionName=name, Environment={"Variables": {**known, **variables}}
        )


def make_machines(connect: Connect, deployed: Deployed, engine: Any) -> None:
    """Create the deployed machines in the engine; `engine` is a client of it.

    Raises LocalStackError where it does not implement what a definition asks for.
    """
    kept = connect("stepfunctions")
    for arn in deployed.of_type("AWS::StepFunctions::StateMachine"):
        machine = kept.describe_state_machine(stateMachineArn=arn)
        try:
            # CloudFormation takes YAML, the API of Step Functions JSON alone.
            definition = json.dumps(yaml.safe_load(machine["definition"]))
            engine.create_state_machine(
                name=machine["name"], definition=definition, roleArn=machine["roleArn"]
            )
        except (ClientError, yaml.YAMLError, TypeError) as error:  # the last: dates, which JSON has not
            why = error.response["Error"]["Message"] if isinstance(error, ClientError) else error
            raise LocalStackError(
                f"The machine {machine['name']} was refused: {why}",
                remedy="Correct its definition, or do without what the local engine does not implement.",
            ) from error


def make_tasks(connect: Connect, deployed: Deployed, ecs: Ecs, own: Any) -> None:
    """Hand clusters and task definitions over to the ECS server; `own` is a client of it.

    Raises LocalStackError where it does not implement what a definition asks for.
    """
    for name in deployed.of_type("AWS::ECS::Cluster"):
        own.create_cluster(clusterName=name)
    kept = connect("ecs")
    kept.meta.events.register("before-parse.ecs.DescribeTaskDefinition", _spell_containers)
    for arn in deployed.of_type("AWS::ECS::TaskDefinition"):
        told = kept.describe_task_definition(taskDefinition=arn, include=["TAGS"])
        definition = told["taskDefinition"]
        if "registeredAt" in definition:
            definition["registeredAt"] = definition["registeredAt"].timestamp()
        try:
            ecs.take_over(definition, told.get("tags"))
        except ApiError as error:
            raise LocalStackError(
                f"The task definition {definition['family']} was refused: {error.message}",
                remedy="Correct it, or do without what the local ECS does not implement.",
            ) from error


def _spell_containers(response_dict: dict[str, Any], **_: Any) -> None:
    """MiniStack 1.5 tells secrets and log drivers in CloudFormation's spelling, which botocore would drop."""
    body = json.loads(response_dict["body"])
    for container in body.get("taskDefinition", {}).get("containerDefinitions", []):
        container["secrets"] = [_spelt(secret) for secret in container.get("secrets", [])]
        if "logConfiguration" in container:
            container["logConfiguration"] = _spelt(container["logConfiguration"])
    response_dict["body"] = json.dumps(body).encode()


def _spelt(given: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name[0].lower()}{name[1:]}": value for name, value in given.items()}
