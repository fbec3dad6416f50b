"""A service as DescribeServices tells it (API reference, shapes Service and Deployment)."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.describing import PLATFORM_VERSION
from trueup.local.ecs.names import Place
from trueup.local.ecs.service_request import told_plan
from trueup.local.ecs.services import WAITING, Deployment, Service, ServiceStatus
from trueup.local.ecs.tasks import Status

Document = dict[str, Any]


def describe_service(service: Service, place: Place, *, tags: bool = False) -> Document:
    """The service's document; its tags only where they were asked for."""
    given, tasks = service.given, service.tasks
    told: Document = {
        "serviceArn": service.arn,
        "serviceName": service.name,
        "clusterArn": service.cluster.arn,
        "status": service.status.value,
        "desiredCount": service.desired,
        "runningCount": sum(task.status is Status.RUNNING for task in tasks),
        "pendingCount": sum(task.status in WAITING for task in tasks),
        **_launch(given),
        "taskDefinition": service.primary.request.definition.arn,
        "deploymentConfiguration": told_plan(service.plan),
        "deploymentController": {"type": "ECS"},
        "deployments": _deployments(service),
        "events": list(service.events),
        "createdAt": service.created_at,
        "createdBy": f"arn:aws:iam::{place.account}:root",
        "loadBalancers": [],
        "serviceRegistries": [],
        "placementConstraints": [],
        "placementStrategy": [],
        "schedulingStrategy": "REPLICA",
        "enableECSManagedTags": bool(given.get("enableECSManagedTags")),
        "propagateTags": given.get("propagateTags") or "NONE",
        "enableExecuteCommand": False,
        "availabilityZoneRebalancing": "DISABLED",
        "tags": service.tags if tags else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _launch(given: Any) -> Document:
    """Launch type or strategy, never both; the platform that "LATEST" is stays as it was asked for."""
    strategy = given.get("capacityProviderStrategy")
    return {
        "launchType": None if strategy else given.get("launchType") or "FARGATE",
        "capacityProviderStrategy": strategy,
        "platformVersion": given.get("platformVersion") or "LATEST",
        "platformFamily": "Linux",
        "networkConfiguration": given.get("networkConfiguration"),
    }


def _deployments(service: Service) -> list[Document]:
    if service.status is ServiceStatus.INACTIVE:
        return []
    return [_deployment(one, service) for one in service.deployments]


def _deployment(deployment: Deployment, service: Service) -> Document:
    primary = deployment is service.primary
    told: Document = {
        "id": deployment.deployment_id,
        "status": "PRIMARY" if primary else "ACTIVE",
        "taskDefinition": deployment.request.definition.arn,
        "desiredCount": service.desired if primary else len(deployment.live),
        "pendingCount": deployment.count(*WAITING),
        "runningCount": deployment.count(Status.RUNNING),
        "failedTasks": deployment.failed,
        "createdAt": deployment.created_at,
        "updatedAt": deployment.updated_at,
        **_launch(deployment.given),
        "platformVersion": PLATFORM_VERSION,
        "rolloutState": deployment.rollout.value,
        "rolloutStateReason": deployment.reason,
    }
    return {name: value for name, value in told.items() if value is not None}
