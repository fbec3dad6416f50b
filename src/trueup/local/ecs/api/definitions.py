"""Operations on task definitions."""

from __future__ import annotations

from trueup.local.ecs.api.requests import Answer, Body, page, required
from trueup.local.ecs.errors import not_implemented
from trueup.local.ecs.fargate import Fargate

PARAMETERS = (
    *("family", "taskRoleArn", "executionRoleArn", "networkMode", "containerDefinitions"),
    *("requiresCompatibilities", "cpu", "memory", "tags", "ephemeralStorage", "runtimePlatform"),
)


def register(fargate: Fargate, body: Body) -> Answer:
    """RegisterTaskDefinition: one revision more."""
    made = fargate.definitions.register(body, fargate.now())
    return {"taskDefinition": made.document, "tags": made.tags}


def describe(fargate: Fargate, body: Body) -> Answer:
    """DescribeTaskDefinition."""
    found = fargate.definitions.describe(required(body, "taskDefinition"))
    tags = {"tags": found.tags} if "TAGS" in (body.get("include") or []) else {}
    return {"taskDefinition": found.document, **tags}


def deregister(fargate: Fargate, body: Body) -> Answer:
    """DeregisterTaskDefinition: INACTIVE from now on; what runs goes on."""
    found = fargate.definitions.deregister(required(body, "taskDefinition"), fargate.now())
    return {"taskDefinition": found.document}


def list_all(fargate: Fargate, body: Body) -> Answer:
    """ListTaskDefinitions: by family and revision, the other way round with `sort` DESC."""
    status, family = body.get("status", "ACTIVE"), body.get("familyPrefix")
    if status not in ("ACTIVE", "INACTIVE"):
        raise not_implemented(f"ListTaskDefinitions with status {status}", "ACTIVE, INACTIVE")
    arns = [
        made.arn
        for made in fargate.definitions
        if made.document["status"] == status and family in (None, made.family)
    ]
    listed, more = page(body, arns[::-1] if body.get("sort") == "DESC" else arns)
    return {"taskDefinitionArns": listed, **more}
