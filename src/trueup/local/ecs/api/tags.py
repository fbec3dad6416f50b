"""Operations on tags of tasks, services, task definitions and clusters."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.requests import Answer, Body, required
from trueup.local.ecs.errors import invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.names import DEFAULT_CLUSTER


def tag(fargate: Fargate, body: Body) -> Answer:
    """TagResource."""
    tags = _tags(fargate, required(body, "resourceArn"))
    merged = {tag["key"]: tag for tag in [*tags, *(body.get("tags") or [])]}
    tags[:] = merged.values()
    return {}


def untag(fargate: Fargate, body: Body) -> Answer:
    """UntagResource."""
    tags = _tags(fargate, required(body, "resourceArn"))
    tags[:] = [tag for tag in tags if tag["key"] not in (body.get("tagKeys") or [])]
    return {}


def list_all(fargate: Fargate, body: Body) -> Answer:
    """ListTagsForResource."""
    return {"tags": _tags(fargate, required(body, "resourceArn"))}


def _tags(fargate: Fargate, arn: str) -> list[dict[str, Any]]:
    kind = arn.split(":")[-1].partition("/")[0] if "task-definition" not in arn else "task-definition"
    if kind == "task":
        return fargate.life(arn).task.tags
    if kind == "service":
        cluster = arn.split("/")[1] if arn.count("/") > 1 else DEFAULT_CLUSTER
        return fargate.services.existing(cluster, arn).tags
    if kind == "cluster":
        return fargate.clusters.find(arn).tags
    if kind == "task-definition":
        return fargate.definitions.describe(arn).tags
    raise invalid(f"The specified resource {arn} is none that has tags here.")
