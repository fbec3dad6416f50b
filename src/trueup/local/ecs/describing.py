"""A task as DescribeTasks tells it (API reference, shape Task), and as an event tells it."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

from trueup.local.ecs.names import Place
from trueup.local.ecs.tasks import Container, Status, StopCode, Task

DETAIL_TYPE = "ECS Task State Change"
SOURCE = "aws.ecs"
PLATFORM_VERSION = "1.4.0"

Document = dict[str, Any]


def describe(task: Task, place: Place, *, tags: bool = False) -> Document:
    """The task's document; its tags only where they were asked for."""
    told: Document = {
        "attachments": _attachments(task),
        "attributes": [{"name": "ecs.cpu-architecture", "value": architecture()}],
        "availabilityZone": f"{place.region}a",
        "capacityProviderName": task.capacity_provider,
        "clusterArn": task.cluster_arn,
        "connectivity": "CONNECTED" if "connectivityAt" in task.times else None,
        "containers": [_container(task.container, task)],
        "cpu": task.cpu,
        "desiredStatus": task.desired,
        "enableExecuteCommand": False,
        "ephemeralStorage": task.definition.document.get("ephemeralStorage") or {"sizeInGiB": 20},
        "group": task.group,
        "healthStatus": "UNKNOWN",
        "inferenceAccelerators": [],
        "lastStatus": task.status.value,
        "launchType": "FARGATE",
        "memory": task.memory,
        "overrides": task.overrides,
        "platformFamily": "Linux",
        "platformVersion": PLATFORM_VERSION,
        "startedBy": task.started_by,
        "stopCode": _stop_code(task),
        "stoppedReason": task.stop.reason if task.stop else None,
        "tags": task.tags if tags else [],
        "taskArn": task.arn,
        "taskDefinitionArn": task.definition.arn,
        "version": task.version,
        **task.times,
    }
    return {name: value for name, value in told.items() if value is not None}


def _container(container: Container, task: Task) -> Document:
    told: Document = {
        "containerArn": f"{task.arn.replace(':task/', ':container/')}/{container.container_id}",
        "taskArn": task.arn,
        "name": container.name,
        "image": container.image,
        "imageDigest": container.digest or None,
        "runtimeId": container.runtime_id,
        "lastStatus": container.status,
        "exitCode": container.exit_code,
        "reason": container.reason,
        "networkBindings": [],
        "networkInterfaces": [],
        "healthStatus": "UNKNOWN",
        "cpu": str(container.cpu),
        "memory": _text(container.memory),
        "memoryReservation": _text(
            container.override.get("memoryReservation") or container.definition.get("memoryReservation")
        ),
    }
    return {name: value for name, value in told.items() if value is not None}


def _stop_code(task: Task) -> str | None:
    """Of a task that Spot takes, TerminationNotice while it still runs (page "Task state change events")."""
    if task.stop is None:
        return None
    if task.stop.code is StopCode.SPOT and task.status is Status.RUNNING:
        return StopCode.TERMINATION.value
    return task.stop.code.value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _attachments(task: Task) -> list[Document]:
    if task.subnet is None:
        return []
    status = {Status.PROVISIONING: "PRECREATED", Status.STOPPED: "DELETED"}.get(task.status, "ATTACHED")
    details = [{"name": "subnetId", "value": task.subnet}]
    return [
        {"id": task.attachment_id, "type": "ElasticNetworkInterface", "status": status, "details": details}
    ]


def architecture() -> str:
    """This machine's, by the name that ECS has for it."""
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


def event(
    detail_type: str, resource: str, detail: Document, *, place: Place, now: float, event_id: str
) -> Document:
    """An event as EventBridge delivers it."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": detail_type,
        "source": SOURCE,
        "account": place.account,
        "time": whole_instant(now),
        "region": place.region,
        "resources": [resource],
        "detail": detail,
    }


def state_change(task: Task, place: Place, now: float, event_id: str) -> Document:
    """The event that EventBridge is told of a task's state.

    Times are ISO 8601 text here (developer guide, "Amazon ECS task state change events"), tags are left out.
    """
    detail = describe(task, place)
    detail |= {name: instant(seconds) for name, seconds in task.times.items()}
    detail.pop("tags")
    told = {**detail, "updatedAt": instant(now)}
    return event(DETAIL_TYPE, task.arn, told, place=place, now=now, event_id=event_id)


def instant(seconds: float) -> str:
    """An instant as ISO 8601 text with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole_instant(seconds: float) -> str:
    """An instant as ISO 8601 text in whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
