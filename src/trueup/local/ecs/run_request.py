"""A call of RunTask, checked: what it starts, or AWS's words for why it starts nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.local.ecs.clusters import Cluster, Clusters
from trueup.local.ecs.definitions import Definition, Definitions, check_size
from trueup.local.ecs.errors import ApiError, invalid, not_implemented

MAX_COUNT = 10
MAX_OVERRIDES = 8192
MAX_TAGS = 50
CLUSTER_TAG = "aws:ecs:clusterName"
"""The tag that `enableECSManagedTags` gives a task (developer guide, "Tagging Amazon ECS resources")."""
PLATFORMS = (None, "LATEST", "1.4.0")
STEP_FUNCTIONS = "AWS Step Functions"
"""Step Functions' own startedBy has spaces, which others may not use (aws-facts sections 2.1 and 6.5)."""

_STARTED_BY = re.compile(r"[A-Za-z0-9/_-]{0,128}")
_UNITS = re.compile(r"[0-9]{1,9}")
_CLIENT_TOKEN = re.compile(r"[!-~]{1,64}")
PARAMETERS = (
    *("capacityProviderStrategy", "clientToken", "cluster", "count", "enableECSManagedTags", "group"),
    *("launchType", "networkConfiguration", "overrides", "platformVersion", "propagateTags", "startedBy"),
    *("tags", "taskDefinition"),
)
_OVERRIDABLE = frozenset(("containerOverrides", "cpu", "memory", "taskRoleArn", "executionRoleArn"))
_CONTAINER_OVERRIDABLE = frozenset(("name", "command", "environment", "cpu", "memory", "memoryReservation"))


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A call that may start its tasks."""

    cluster: Cluster
    definition: Definition
    count: int
    container: Mapping[str, Any]
    override: Mapping[str, Any]
    overrides: Mapping[str, Any]
    cpu: str
    memory: str
    group: str
    started_by: str | None
    capacity_provider: str | None
    subnet: str | None
    tags: list[dict[str, Any]]
    role: str | None
    service: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What the call puts into the container's environment."""
        return {pair["name"]: pair.get("value", "") for pair in self.override.get("environment") or []}


def read(body: Mapping[str, Any], clusters: Clusters, definitions: Definitions) -> RunRequest:
    """The call, in the order in which AWS looks at it. Raises ApiError."""
    _check_fields(body)
    cluster = clusters.find(body.get("cluster"))
    count = body.get("count", 1)
    if not 1 <= count <= MAX_COUNT:
        raise invalid(f"Count must be between 1 and {MAX_COUNT}")
    overrides = body.get("overrides") or {}
    _check_size(overrides)
    if not body.get("taskDefinition"):
        raise ApiError("ClientException", "TaskDefinition can not be blank.")
    definition = definitions.runnable(str(body["taskDefinition"]))
    container = _only_container(definition)
    override = _override(overrides, container)
    cpu, memory = (_size(name, overrides, definition) for name in ("cpu", "memory"))
    if definition.fits_fargate:
        check_size(int(cpu), int(memory))
    return RunRequest(
        cluster=cluster,
        definition=definition,
        count=count,
        container=container,
        override=override,
        overrides=_told(overrides, override, container),
        cpu=cpu,
        memory=memory,
        group=body.get("group") or f"family:{definition.family}",
        started_by=body.get("startedBy"),
        capacity_provider=_capacity_provider(body, cluster, definition),
        subnet=_subnet(body, definition),
        tags=_tags(body, definition, cluster),
        role=overrides.get("taskRoleArn") or definition.document.get("taskRoleArn"),
    )


def _check_fields(body: Mapping[str, Any]) -> None:
    if body.get("platformVersion") not in PLATFORMS:
        raise not_implemented(f"Platform version {body['platformVersion']}", "LATEST, 1.4.0")
    started_by = body.get("startedBy") or ""
    if started_by != STEP_FUNCTIONS and not _STARTED_BY.fullmatch(started_by):
        raise invalid("Invalid startedBy: up to 128 letters, numbers, hyphens, slashes and underscores.")
    token = body.get("clientToken")
    if token is not None and not _CLIENT_TOKEN.fullmatch(token):
        raise invalid("Invalid clientToken: up to 64 characters in the range of 33 to 126.")


def _check_size(overrides: Mapping[str, Any]) -> None:
    """8,192 characters, JSON formatting included; the wording: convox/rack#1906."""
    if len(json.dumps(overrides, separators=(",", ":"), ensure_ascii=False)) > MAX_OVERRIDES:
        raise invalid(f"Container Overrides length must be at most {MAX_OVERRIDES}")


def _only_container(definition: Definition) -> Mapping[str, Any]:
    containers = definition.containers
    if len(containers) != 1:
        raise not_implemented(
            f"A task of {len(containers)} containers ({definition.arn})", "tasks of one container"
        )
    return containers[0]


def _override(overrides: Mapping[str, Any], container: Mapping[str, Any]) -> Mapping[str, Any]:
    beyond = sorted(overrides.keys() - _OVERRIDABLE)
    if beyond:
        raise not_implemented(f"Overriding {', '.join(beyond)}", ", ".join(sorted(_OVERRIDABLE)))
    found: Mapping[str, Any] = {}
    for override in overrides.get("containerOverrides") or []:
        if override.get("name") != container["name"]:
            # The wording: azavea/django-ecsmanage#21.
            raise invalid(
                f"Override for container named {override.get('name')} "
                "is not a container in the TaskDefinition."
            )
        found = override
    beyond = sorted(found.keys() - _CONTAINER_OVERRIDABLE)
    if beyond:
        raise not_implemented(
            f"Overriding a container's {', '.join(beyond)}", ", ".join(sorted(_CONTAINER_OVERRIDABLE))
        )
    return found


def _told(
    overrides: Mapping[str, Any], override: Mapping[str, Any], container: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a task's description says of overrides: every container by name, overridden or not."""
    named = {**override, "name": container["name"]}
    return {**overrides, "containerOverrides": [named], "inferenceAcceleratorOverrides": []}


def _size(name: str, overrides: Mapping[str, Any], definition: Definition) -> str:
    given = str(overrides.get(name) or definition.document.get(name) or "")
    if not _UNITS.fullmatch(given):
        raise ApiError("ClientException", f"Invalid '{name}' setting for task.")
    return given


def _capacity_provider(body: Mapping[str, Any], cluster: Cluster, definition: Definition) -> str | None:
    """FARGATE or FARGATE_SPOT by a strategy; none where the launch type says it. Raises ApiError."""
    launch_type, strategy = body.get("launchType"), body.get("capacityProviderStrategy")
    if launch_type and strategy:
        raise invalid("Specifying both a launch type and capacity provider strategy is not supported.")
    if launch_type not in (None, "FARGATE"):
        raise not_implemented(f"Launch type {launch_type}", "FARGATE")
    if launch_type and not definition.fits_fargate:
        # The wording: aws/aws-cli#3983.
        raise invalid("Task definition does not support launch_type FARGATE.")
    if launch_type:
        return None
    strategy = strategy or cluster.default_strategy
    names = [str(item["capacityProvider"]) for item in strategy]
    if not set(names) <= set(cluster.capacity_providers):
        # The wording: dask/dask-cloudprovider#328.
        raise invalid(
            "The specified capacity provider strategy cannot contain a capacity provider that is not "
            "associated with the cluster. Associate the capacity provider with the cluster or specify a "
            "valid capacity provider and try again."
        )
    # Weights would share tasks out by chance. Nothing runs cheaper here: the first of the list has them all.
    return names[0] if names else None


def _subnet(body: Mapping[str, Any], definition: Definition) -> str | None:
    configuration = body.get("networkConfiguration")
    if definition.document.get("networkMode") != "awsvpc":
        if configuration:
            # The wording: muya/amazon-ecs-run-task#7.
            raise invalid(
                "Network Configuration is not valid for the given networkMode of this task definition."
            )
        return None
    if not configuration:
        # The wording: aws-actions/amazon-ecs-deploy-task-definition#802.
        raise invalid("Network Configuration must be provided when networkMode 'awsvpc' is specified.")
    subnets = (configuration.get("awsvpcConfiguration") or {}).get("subnets") or []
    if not subnets:
        raise invalid("subnets can not be empty.")
    return str(subnets[0])


def _tags(body: Mapping[str, Any], definition: Definition, cluster: Cluster) -> list[dict[str, Any]]:
    """The call's own, and those of the definition where they are propagated: the call's win."""
    propagate = body.get("propagateTags", "NONE")
    if propagate == "SERVICE":
        raise invalid("propagateTags cannot be SERVICE when running a task.")
    inherited = definition.tags if propagate == "TASK_DEFINITION" else []
    merged = {tag["key"]: tag for tag in [*inherited, *(body.get("tags") or [])]}
    if len(merged) > MAX_TAGS:
        raise invalid(f"A resource has at most {MAX_TAGS} tags.")
    managed = [{"key": CLUSTER_TAG, "value": cluster.name}] if body.get("enableECSManagedTags") else []
    return [*merged.values(), *managed]
