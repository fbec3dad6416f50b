"""Task states: which services and patterns there are, and their timeouts."""

from __future__ import annotations

import re

from trueup.local.stepfunctions.integrations.catalogue import (
    PATTERNS,
    has_operation,
    unknown_parameters,
    unreadable_parameters,
)
from trueup.local.stepfunctions.model import Resource, Task
from trueup.local.stepfunctions.parsing.failing import MAX_SECONDS
from trueup.local.stepfunctions.parsing.fields import SCHEMA, UNSUPPORTED, Fields
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.values import Json

_FUNCTION = re.compile(r"arn:aws[\w-]*:lambda:[\w-]*:\d*:function:.+")
_ACTIVITY = re.compile(r"arn:aws[\w-]*:states:[\w-]+:\d+:activity:.+")
_SERVICE = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:([a-z0-9-]+):([A-Za-z0-9]+)((?:[.:].*)?)")
_OTHERS = frozenset(
    {
        "apigateway",
        "athena",
        "batch",
        "bedrock",
        "codebuild",
        "databrew",
        "eks",
        "elasticmapreduce",
        "emr-containers",
        "emr-serverless",
        "glue",
        "http",
        "mediaconvert",
        "sagemaker",
    }
)
"""Optimized integrations that AWS has and this does not ([dg:connect-supported-services])."""
_NONE = Resource("", "", "", "", "")
_KNOWN_PATTERNS = {"": "", ".sync": "sync", ".sync:2": "sync:2", ".waitForTaskToken": "waitForTaskToken"}


def parse_task(fields: Fields, common: dict[str, Json]) -> Task:
    """A Task state. Refuses resources that are not implemented, and parameters that the API does not have."""
    arn = fields.text("Resource", required=True)
    resource = _resource(fields, arn) if arn else _NONE
    timeout, heartbeat = _seconds(fields, "TimeoutSeconds"), _seconds(fields, "HeartbeatSeconds")
    if isinstance(timeout, int) and isinstance(heartbeat, int) and heartbeat >= timeout:
        fields.problem(SCHEMA, "HeartbeatSeconds has to be smaller than TimeoutSeconds", "HeartbeatSeconds")
    _check_parameters(fields, resource)
    credentials = fields.template("Credentials")
    return Task(**common, resource=resource, timeout=timeout, heartbeat=heartbeat, credentials=credentials)


def _seconds(fields: Fields, field: str) -> int | Path | None:
    fields.exclusive(field, f"{field}Path")
    path = fields.path(f"{field}Path")
    return path if path is not None else fields.integer(field, 1, MAX_SECONDS)


def _resource(fields: Fields, arn: str) -> Resource:
    if _FUNCTION.fullmatch(arn):
        return Resource(arn, "", "lambda", "invoke", "")
    found = _SERVICE.fullmatch(arn)
    if _ACTIVITY.fullmatch(arn):
        return Resource(arn, "", "activity", "", "")
    if found is None:
        return _unknown(fields, arn)
    if found[1] == "aws-sdk":
        return _sdk(fields, arn, found[2], found[3])
    if found[1] in _OTHERS:
        return _refuse(fields, arn)
    pattern = _KNOWN_PATTERNS.get(found[3])
    if pattern is None or pattern not in PATTERNS.get((found[1], found[2]), ()):
        return _unknown(fields, arn)
    return Resource(arn, found[1], found[1], found[2], pattern)


def _sdk(fields: Fields, arn: str, service: str, rest: str) -> Resource:
    action, _, suffix = rest.removeprefix(":").partition(".")
    # Actions are in camel case, as in `listBuckets` ([dg:supported-services-awssdk]).
    known = action[:1].islower() and has_operation(service, action)
    if suffix not in ("", "waitForTaskToken") or not known:
        return _unknown(fields, arn)
    return Resource(arn, f"aws-sdk:{service}", service, action, suffix)


def _unknown(fields: Fields, arn: str) -> Resource:
    """AWS does not know it either, and says so."""
    fields.problem(
        SCHEMA,
        f"The resource provided {arn} is not recognized. The value is not a valid resource ARN, or the "
        "resource is not available in this region.",
        "Resource",
    )
    return _NONE


def _refuse(fields: Fields, arn: str) -> Resource:
    supported = ", ".join(
        f"{service}:{action}{''.join(f'[.{pattern}]' for pattern in patterns if pattern)}"
        for (service, action), patterns in PATTERNS.items()
    )
    fields.problem(
        UNSUPPORTED,
        f"{fields.owner}: Resource '{arn}' is not implemented; supported are ARNs of Lambda functions and "
        "activities, arn:aws:states:::aws-sdk:<service>:<action>[.waitForTaskToken], "
        f"and arn:aws:states::: with {supported}",
        "Resource",
    )
    return _NONE


def _check_parameters(fields: Fields, resource: Resource) -> None:
    raw = fields.raw.get("Parameters")
    if resource is _NONE or resource.is_function or resource.is_activity:
        return
    given = raw if isinstance(raw, dict) else {}
    for problem in (*unknown_parameters(resource, given), *unreadable_parameters(resource, given)):
        fields.problem(SCHEMA, problem, "Parameters")
