"""Which function an operation is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trueup.local.ecs.api import clusters, definitions, protection, services, tags, tasks
from trueup.local.ecs.api.requests import Answer, Body
from trueup.local.ecs.errors import not_implemented
from trueup.local.ecs.fargate import Fargate

OPERATIONS: Mapping[str, Callable[[Fargate, Body], Answer]] = {
    "RunTask": tasks.run,
    "StopTask": tasks.stop,
    "DescribeTasks": tasks.describe_all,
    "ListTasks": tasks.list_all,
    "GetTaskProtection": protection.get,
    "UpdateTaskProtection": protection.update,
    "CreateService": services.create,
    "UpdateService": services.update,
    "DeleteService": services.delete,
    "DescribeServices": services.describe_all,
    "ListServices": services.list_all,
    "RegisterTaskDefinition": definitions.register,
    "DescribeTaskDefinition": definitions.describe,
    "DeregisterTaskDefinition": definitions.deregister,
    "ListTaskDefinitions": definitions.list_all,
    "CreateCluster": clusters.create,
    "DescribeClusters": clusters.describe,
    "ListClusters": clusters.list_all,
    "TagResource": tags.tag,
    "UntagResource": tags.untag,
    "ListTagsForResource": tags.list_all,
}


def perform(fargate: Fargate, operation: str, body: Body) -> Answer:
    """Call an operation. Raises ApiError."""
    function = OPERATIONS.get(operation)
    if function is None:
        raise not_implemented(f"ECS operation {operation}", ", ".join(OPERATIONS))
    return function(fargate, body)
