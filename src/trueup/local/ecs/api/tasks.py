"""Operations on tasks."""

from __future__ import annotations

from typing import Any

from trueup.local.ecs.api.requests import Answer, Body, page, required
from trueup.local.ecs.describing import describe
from trueup.local.ecs.errors import invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.names import task_id
from trueup.local.ecs.tasks import Task

MAX_DESCRIBED = 100
_TASK_TAGS = "TAGS"
_FILTERS = ("family", "desiredStatus", "launchType", "serviceName")


def run(fargate: Fargate, body: Body) -> Answer:
    """RunTask."""
    tasks, refusals = fargate.run(body)
    return {
        "tasks": [describe(task, fargate.place, tags=True) for task in tasks],
        "failures": [{"reason": refusal.message} for refusal in refusals],
    }


def stop(fargate: Fargate, body: Body) -> Answer:
    """StopTask: its answer still says RUNNING, with a desired status of STOPPED."""
    cluster = fargate.clusters.find(body.get("cluster")).name
    task = fargate.find(cluster, task_id(required(body, "task"), cluster))
    if task is None:
        # The wording: griptape-ai/griptape-nodes-engine#1454.
        raise invalid("The referenced task was not found.")
    fargate.stop(task, body.get("reason"))
    return {"task": describe(task, fargate.place)}


def describe_all(fargate: Fargate, body: Body) -> Answer:
    """DescribeTasks: those that ECS knows, and the others as MISSING."""
    cluster = fargate.clusters.find(body.get("cluster")).name
    wanted = body.get("tasks") or []
    if not wanted:
        raise invalid("Tasks cannot be empty.")
    if len(wanted) > MAX_DESCRIBED:
        raise invalid(f"Tasks can have at most {MAX_DESCRIBED} items.")
    tags = _TASK_TAGS in (body.get("include") or [])
    tasks: list[Any] = []
    failures = []
    for identifier in dict.fromkeys(task_id(reference, cluster) for reference in wanted):
        arn = fargate.place.task(cluster, identifier)
        task = fargate.find(cluster, identifier)
        if task is None or arn in fargate.lost or fargate.faults.loses(arn):
            failures.append({"arn": arn, "reason": "MISSING"})
        else:
            tasks.append(describe(task, fargate.place, tags=tags))
    return {"tasks": tasks, "failures": failures}


def list_all(fargate: Fargate, body: Body) -> Answer:
    """ListTasks: those whose desired status is RUNNING, unless another one is asked for."""
    if body.get("startedBy") and any(body.get(name) for name in _FILTERS):
        # "It must be the only filter that you use" (API reference); the wording: aws/aws-sdk-go-v2#1893.
        raise invalid("cannot specify startedBy with other arguments")
    cluster = fargate.clusters.find(body.get("cluster")).name
    if body.get("serviceName"):
        fargate.services.existing(cluster, body["serviceName"])  # as AWS: turbot/steampipe-plugin-aws#1415
    listed, more = page(body, [task.arn for task in fargate.tasks(cluster) if _wanted(task, body)])
    return {"taskArns": listed, **more}


def _named(body: Body) -> str | None:
    """The service whose tasks are asked for."""
    return str(body["serviceName"]).rpartition("/")[2] if body.get("serviceName") else None


def _wanted(task: Task, body: Body) -> bool:
    return (
        task.desired == body.get("desiredStatus", "RUNNING")
        and _named(body) in (None, task.service)
        and body.get("family") in (None, task.family)
        and body.get("startedBy") in (None, task.started_by)
        and body.get("launchType") in (None, "FARGATE")
    )
