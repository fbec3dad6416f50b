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
    return document | _times(task, {"PullStartedAt": "pullStartedAt", "PullStoppedAt": "pullStoppedAt"})


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
        "Labels": {
            "com.amazonaws.ecs.cluster": task.cluster_arn,
            "com.amazonaws.ecs.container-name": container.name,
            "com.amazonaws.ecs.task-arn": task.arn,
            "com.amazonaws.ecs.task-definition-family": task.definition.family,
            "com.amazonaws.ecs.task-definition-version": str(task.definition.revision),
        },
        "DesiredStatus": task.desired,
        "KnownStatus": container.status,
        "Limits": {"CPU": int(container.definition.get("cpu", 0))},
        "Type": "NORMAL",
        "ContainerARN": f"{task.arn.replace(':task/', ':container/')}/{container.container_id}",
    }
    return (
        document | _logging(task, place) | _times(task, {"CreatedAt": "createdAt", "StartedAt": "startedAt"})
    )


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
