"""Which services Task states can call, with which patterns, and what their APIs take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.deserializing import Reader
from trueup.local.stepfunctions.model import Resource
from trueup.local.stepfunctions.values import Json

CALLBACK = "waitForTaskToken"

PATTERNS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("lambda", "invoke"): ("", CALLBACK),
    ("ecs", "runTask"): ("", "sync", CALLBACK),
    ("dynamodb", "getItem"): ("",),
    ("dynamodb", "putItem"): ("",),
    ("dynamodb", "updateItem"): ("",),
    ("dynamodb", "deleteItem"): ("",),
    ("sqs", "sendMessage"): ("", CALLBACK),
    ("sns", "publish"): ("", CALLBACK),
    ("events", "putEvents"): ("", CALLBACK),
    ("states", "startExecution"): ("", "sync", "sync:2", CALLBACK),
}
"""Optimized integrations and their patterns ([dg:connect-supported-services])."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service by its names: botocore's, the prefix of its errors, and how causes name it."""

    boto: str
    prefix: str
    java: str
    generic: str
    """The error of an answer that the service's model does not name."""


OPTIMIZED: Mapping[str, Service] = {
    "lambda": Service("lambda", "Lambda", "AWSLambda", "AWSLambdaException"),
    "ecs": Service("ecs", "ECS", "AmazonECS", "AmazonECSException"),
    "dynamodb": Service("dynamodb", "DynamoDB", "AmazonDynamoDBv2", "AmazonDynamoDBException"),
    "sqs": Service("sqs", "SQS", "AmazonSQS", "AmazonSQSException"),
    "sns": Service("sns", "SNS", "AmazonSNS", "AmazonSNSException"),
    "events": Service("events", "EventBridge", "AmazonEventBridge", "AmazonEventBridgeException"),
    "states": Service("stepfunctions", "StepFunctions", "AWSStepFunctions", "AWSStepFunctionsException"),
}


def find_service(resource: Resource) -> Service:
    """The service that a resource calls. Raises KeyError where there is none."""
    if resource.is_sdk:
        name = shapes.boto_name(resource.service)
        prefix = shapes.sdk_prefix(name)
        return Service(name, prefix, prefix, f"{prefix}Exception")
    return OPTIMIZED[resource.service]


def has_operation(sdk_name: str, action: str) -> bool:
    """Whether there is such a service and action for `aws-sdk:`."""
    try:
        shapes.operation(shapes.boto_name(sdk_name), action)
    except KeyError:
        return False
    return True


def unknown_parameters(resource: Resource, parameters: Mapping[str, Json]) -> list[str]:
    """Which of a Task's Parameters the operation does not take, in AWS's words."""
    shape = shapes.operation(find_service(resource).boto, resource.action).input_shape
    known = set(map(shapes.spelling(sdk=resource.is_sdk), shape.members if shape is not None else ()))
    names = [name.removesuffix(".$") for name in parameters]
    return [f'The field "{name}" is not supported by Step Functions' for name in names if name not in known]


JSON_TEXT = frozenset({("sqs", "MessageBody"), ("sns", "Message"), ("events", "Detail"), ("states", "Input")})
"""Strings that may be given as JSON, which Step Functions writes as text ([dg:connect-sqs] and its like)."""


def mistyped_parameters(resource: Resource, parameters: Json) -> list[str]:
    """Which values of a call have other types than they need, in AWS's words.

    Optimized integrations take no other value for a string (ASFHyP3/hyp3#2585); of `aws-sdk:` calls
    everything is written as text (recorded on AWS: test_s3_put_object).
    """
    shape = shapes.operation(find_service(resource).boto, resource.action).input_shape
    texts = [
        f"The value for the field '{name}' must be a STRING"
        for name, kind, value in shapes.leaves(shape, parameters)
        if kind == "string" and not isinstance(value, str) and (resource.service, name) not in JSON_TEXT
    ]
    return [*([] if resource.is_sdk else texts), *unreadable_parameters(resource, parameters)]


def unreadable_parameters(resource: Resource, parameters: Json) -> list[str]:
    """Which values of a definition's Parameters, or of a call, no request can be made of, in AWS's words."""
    service = find_service(resource)
    shape = shapes.operation(service.boto, resource.action).input_shape
    reader, known = Reader(shapes.sdk_prefix(service.boto).lower()), shapes.members(shape) if shape else {}
    return [
        problem
        for name, value in parameters.items()
        if shapes.lower(name) in known  # the others are told by `unknown_parameters`
        for problem in reader.problems(shape.members[known[shapes.lower(name)]], value)
    ]


def missing_parameters(resource: Resource, parameters: Mapping[str, Json]) -> list[str]:
    """Which parameters the operation needs and a call does not have, in AWS's words."""
    shape = shapes.operation(find_service(resource).boto, resource.action).input_shape
    given = {name for name, value in parameters.items() if value is not None}
    needed = map(shapes.spelling(sdk=resource.is_sdk), shape.required_members if shape is not None else ())
    return [f'The field "{name}" is required but was missing' for name in needed if name not in given]
