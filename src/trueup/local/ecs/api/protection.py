"""Operations on the protection of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trueup.local.ecs import protection
from trueup.local.ecs.api.requests import Answer, Body
from trueup.local.ecs.errors import invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.names import task_id
from trueup.local.ecs.tasks import Task

MAX_READ = 100
MAX_UPDATED = 10


def get(fargate: Fargate, body: Body) -> Answer:
    """GetTaskProtection."""
    return _answer(fargate, body, MAX_READ, lambda task: None)


def update(fargate: Fargate, body: Body) -> Answer:
    """UpdateTaskProtection: asked again, the time begins anew."""
    enabled = body.get("protectionEnabled")
    if not isinstance(enabled, bool):
        raise invalid("protectionEnabled can not be blank.")
    minutes = protection.minutes_of(body.get("expiresInMinutes"))

    def change(task: Task) -> str | None:
        return fargate.protect(task, minutes * protection.MINUTE if enabled else None)

    return _answer(fargate, body, MAX_UPDATED, change)


def _answer(fargate: Fargate, body: Body, most: int, change: Callable[[Task], str | None]) -> Answer:
    protected, failures = [], []
    for arn, task in _tasks(fargate, body, most):
        reason = protection.unfit(task)
        if reason is None and task is not None:
            reason = change(task)
        if reason is not None or task is None:
            failures.append({"arn": arn, "reason": reason})
        else:
            protected.append(protection.told(task, fargate.now()))
    return {"protectedTasks": protected, "failures": failures}


def _tasks(fargate: Fargate, body: Body, most: int) -> Iterator[tuple[str, Task | None]]:
    cluster = fargate.clusters.find(body.get("cluster")).name
    wanted = body.get("tasks") or []
    if not wanted:
        raise invalid("Tasks cannot be empty.")
    if len(wanted) > most:
        raise invalid(f"Tasks can have at most {most} items.")
    for identifier in dict.fromkeys(task_id(reference, cluster) for reference in wanted):
        arn = fargate.place.task(cluster, identifier)
        task = fargate.find(cluster, identifier)
        yield arn, None if arn in fargate.lost else task
