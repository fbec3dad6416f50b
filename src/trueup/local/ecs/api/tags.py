"""Operations on tags of tasks, services, task definitions and clusters."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.requests import Answer, Body, required
from trueup.local.ecs.api.validation import AWS_OWN
from trueup.local.ecs.errors import invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.names import DEFAULT_CLUSTER
from trueup.local.ecs.run_request import MAX_TAGS


def tag(fargate: Fargate, body: Body) -> Answer:
    """TagResource."""
    tags = _tags(fargate, required(body, "resourceArn"))
    merged = {tag["key"]: tag for tag in [*tags, *(body.get("tags") or [])]}
    if sum(not key.lower().startswith(AWS_OWN) for key in merged) > MAX_TAGS:
        raise invalid(f"A resource has at most {MAX_TAGS} tags.")
    tags[:] = merged.values()
    return {}


def untag(fargate: Fargate, body: Body) -> Answer:
    """UntagResource."""
    tags = _tags(fargate, required(body, "resourceArn"))
    keys = body.get("tagKeys") or []
    if own := [key for key in keys if key.lower().startswith(AWS_OWN)]:
        raise invalid(f"The tag {own[0]} is AWS's own and cannot be taken away.")
    tags[:] = [tag for tag in tags if tag["key"] not in keys]
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
