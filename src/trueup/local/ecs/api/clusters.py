"""Operations on clusters."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.requests import Answer, Body, page
from trueup.local.ecs.clusters import Cluster
from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.names import cluster_name
from trueup.local.ecs.services import WAITING, ServiceStatus
from trueup.local.ecs.tasks import Status


def create(fargate: Fargate, body: Body) -> Answer:
    """CreateCluster: asked again, it answers the same."""
    made = fargate.clusters.create(
        body.get("clusterName"),
        capacity_providers=list(body.get("capacityProviders") or []),
        default_strategy=list(body.get("defaultCapacityProviderStrategy") or []),
        settings=list(body.get("settings") or []),
        tags=list(body.get("tags") or []),
    )
    return {"cluster": _described(fargate, made)}


def describe(fargate: Fargate, body: Body) -> Answer:
    """DescribeClusters: those that there are, and the others as MISSING."""
    clusters: list[Any] = []
    failures = []
    for reference in body.get("clusters") or ["default"]:
        try:
            clusters.append(_described(fargate, fargate.clusters.find(reference)))
        except ApiError:
            arn = fargate.place.cluster(cluster_name(reference))
            failures.append({"arn": arn, "reason": "MISSING"})
    return {"clusters": clusters, "failures": failures}


def list_all(fargate: Fargate, body: Body) -> Answer:
    """ListClusters."""
    listed, more = page(body, [cluster.arn for cluster in fargate.clusters])
    return {"clusterArns": listed, **more}


def _described(fargate: Fargate, cluster: Cluster) -> Answer:
    statuses = [task.status for task in fargate.tasks(cluster.name)]
    services = fargate.services.of(cluster.name)
    return {
        "clusterArn": cluster.arn,
        "clusterName": cluster.name,
        "status": "ACTIVE",
        "registeredContainerInstancesCount": 0,
        "runningTasksCount": statuses.count(Status.RUNNING),
        "pendingTasksCount": sum(status in WAITING for status in statuses),
        "activeServicesCount": sum(service.status is ServiceStatus.ACTIVE for service in services),
        "statistics": [],
        "tags": cluster.tags,
        "settings": cluster.settings,
        "capacityProviders": cluster.capacity_providers,
        "defaultCapacityProviderStrategy": cluster.default_strategy,
    }
