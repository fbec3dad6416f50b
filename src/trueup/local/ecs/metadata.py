"""The task metadata endpoint, version 4, as tasks on Fargate see it.

Source: developer guide, "Amazon ECS task metadata v4 JSON response for tasks on Fargate".
"""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.awslogs import stream_of
from trueup.local.ecs.describing import instant
from trueup.local.ecs.names import Place
from trueup.local.ecs.tasks import Task

Document = dict[str, Any]

UNITS_PER_CPU = 1024
ADDRESS = "127.0.0.1"
"""Where every task is reached: networks do not exist here."""


def task_metadata(task: Task, place: Place) -> Document:
    """What `$ECS_CONTAINER_METADATA_URI_V4/task` answers."""
    document: Document = {
        "Cluster": task.cluster_arn,
        "TaskARN": task.arn,
        "Family": task.definition.family,
        "Revision": str(task.definition.revision),
        "DesiredStatus": task.desired,
        "KnownStatus": task.status.value,
        "Limits": {"CPU": int(task.cpu) / UNITS_PER_CPU, "Memory": int(task.memory)},
        "AvailabilityZone": f"{place.region}a",
        "LaunchType": "FARGATE",
        "Containers": [container_metadata(task, place)],
    }
    if task.service is not None:
        document["ServiceName"] = task.service
    times = {
        "PullStartedAt": "pullStartedAt",
        "PullStoppedAt": "pullStoppedAt",
        "ExecutionStoppedAt": "executionStoppedAt",
    }
    return document | _times(task, times)


def task_with_tags(task: Task, place: Place) -> Document:
    """What `$ECS_CONTAINER_METADATA_URI_V4/taskWithTags` answers."""
    tags = {tag["key"]: tag.get("value", "") for tag in task.tags}
    return task_metadata(task, place) | {"TaskTags": tags}


def container_metadata(task: Task, place: Place) -> Document:
    """What `$ECS_CONTAINER_METADATA_URI_V4` answers."""
    container = task.container
    document: Document = {
        "DockerId": container.runtime_id,
        "Name": container.name,
        "DockerName": container.name,
        "Image": container.image,
        "ImageID": container.digest,
        "Labels": container_labels(task),
        "DesiredStatus": task.desired,
        "KnownStatus": container.status,
        "Limits": {"CPU": container.cpu, **({"Memory": container.memory} if container.memory else {})},
        "Type": "NORMAL",
        "Networks": [{"NetworkMode": "awsvpc", "IPv4Addresses": [ADDRESS], "AttachmentIndex": 0}],
        "ContainerARN": f"{task.arn.replace(':task/', ':container/')}/{container.container_id}",
    }
    if container.exit_code is not None:
        document["ExitCode"] = container.exit_code
    times = {"CreatedAt": "pullStoppedAt", "StartedAt": "startedAt", "FinishedAt": "executionStoppedAt"}
    return document | _logging(task, place) | _times(task, times)


def container_labels(task: Task) -> dict[str, str]:
    """A container's labels: those of its definition, and what ECS adds."""
    return {
        **(task.container.definition.get("dockerLabels") or {}),
        "com.amazonaws.ecs.cluster": task.cluster_arn,
        "com.amazonaws.ecs.container-name": task.container.name,
        "com.amazonaws.ecs.task-arn": task.arn,
        "com.amazonaws.ecs.task-definition-family": task.definition.family,
        "com.amazonaws.ecs.task-definition-version": str(task.definition.revision),
    }


def _times(task: Task, names: dict[str, str]) -> Document:
    return {name: instant(task.times[known]) for name, known in names.items() if known in task.times}


def _logging(task: Task, place: Place) -> Document:
    given = task.container.definition.get("logConfiguration")
    if not given or given.get("logDriver") != "awslogs":
        return {}
    options = {**(given.get("options") or {})}
    prefix = options.pop("awslogs-stream-prefix", None)
    if prefix is not None:
        options["awslogs-stream"] = stream_of(task, given["options"])
    return {"LogDriver": "awslogs", "LogOptions": {"awslogs-region": place.region, **options}}
