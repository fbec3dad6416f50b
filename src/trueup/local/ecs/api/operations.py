"""Which function an operation is, and which parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trueup.local.ecs import run_request, service_request
from trueup.local.ecs.api import clusters, definitions, protection, services, tags, tasks
from trueup.local.ecs.api.requests import Answer, Body
from trueup.local.ecs.api.validation import check_request
from trueup.local.ecs.errors import not_implemented
from trueup.local.ecs.fargate import Fargate


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API."""

    call: Callable[[Fargate, Body], Answer]
    parameters: tuple[str, ...]


_PAGE = ("maxResults", "nextToken")
OPERATIONS: Mapping[str, Operation] = {
    "RunTask": Operation(tasks.run, run_request.PARAMETERS),
    "StopTask": Operation(tasks.stop, ("cluster", "task", "reason")),
    "DescribeTasks": Operation(tasks.describe_all, ("cluster", "tasks", "include")),
    "ListTasks": Operation(
        tasks.list_all,
        ("cluster", "family", "startedBy", "desiredStatus", "launchType", "serviceName", *_PAGE),
    ),
    "GetTaskProtection": Operation(protection.get, ("cluster", "tasks")),
    "UpdateTaskProtection": Operation(
        protection.update, ("cluster", "tasks", "protectionEnabled", "expiresInMinutes")
    ),
    "CreateService": Operation(services.create, service_request.CREATE),
    "UpdateService": Operation(services.update, service_request.UPDATE),
    "DeleteService": Operation(services.delete, ("cluster", "service", "force")),
    "DescribeServices": Operation(services.describe_all, ("cluster", "services", "include")),
    "ListServices": Operation(services.list_all, ("cluster", "launchType", "schedulingStrategy", *_PAGE)),
    "RegisterTaskDefinition": Operation(definitions.register, definitions.PARAMETERS),
    "DescribeTaskDefinition": Operation(definitions.describe, ("taskDefinition", "include")),
    "DeregisterTaskDefinition": Operation(definitions.deregister, ("taskDefinition",)),
    "ListTaskDefinitions": Operation(definitions.list_all, ("familyPrefix", "status", "sort", *_PAGE)),
    "CreateCluster": Operation(
        clusters.create,
        ("clusterName", "tags", "settings", "capacityProviders", "defaultCapacityProviderStrategy"),
    ),
    "DescribeClusters": Operation(clusters.describe, ("clusters", "include")),
    "ListClusters": Operation(clusters.list_all, _PAGE),
    "TagResource": Operation(tags.tag, ("resourceArn", "tags")),
    "UntagResource": Operation(tags.untag, ("resourceArn", "tagKeys")),
    "ListTagsForResource": Operation(tags.list_all, ("resourceArn",)),
}


def perform(fargate: Fargate, name: str, body: Body) -> Answer:
    """Call an operation. Raises ApiError, also for parameters that would be ignored."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise not_implemented(f"ECS operation {name}", ", ".join(OPERATIONS))
    beyond = sorted(given for given in body.keys() - set(operation.parameters) if body[given])
    if beyond:
        raise not_implemented(f"{name} with {', '.join(beyond)}", ", ".join(operation.parameters))
    check_request(name, body)
    return operation.call(fargate, body)
