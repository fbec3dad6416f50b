"""What a service's scheduler does next: how many tasks to start, and which to stop. Pure.

Sources: [botocore ecs], DeploymentConfiguration: maximumPercent bounds the tasks that are RUNNING or PENDING
during a deployment (rounded down), minimumHealthyPercent those that must stay RUNNING (rounded up); developer
guide, "Protect your Amazon ECS tasks from being terminated by scale-in events": protected tasks are passed
over, in scaling in and in deployments, and count meanwhile.
Which of several tasks is stopped first is not documented for Fargate without zones; here it is one that does
not run yet, then the youngest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trueup.local.ecs.services import Rollout, Service, ServiceStatus
from trueup.local.ecs.tasks import Status, Task


@dataclass(frozen=True, slots=True)
class Move:
    """What to do now."""

    start: int = 0
    stop: list[Task] = field(default_factory=list)
    stuck: bool = False
    """The limits of the deployment, or protected tasks, let it neither start nor stop anything."""


def decide(service: Service, now: float, healthy_after: float = 0.0) -> Move:
    """The next move. A task is healthy when it has run for `healthy_after` seconds."""
    if service.status is not ServiceStatus.ACTIVE:
        return Move(stop=[task for task in service.tasks if task.lives])
    new = service.primary.live
    surplus = _pass_over(new, len(new) - service.desired, now)
    if not service.older:
        return Move(_wanted(service, now), surplus)
    return _deploy(service, new, surplus, now, healthy_after)


def _deploy(service: Service, new: list[Task], surplus: list[Task], now: float, healthy_after: float) -> Move:
    """A step of a rolling update: as many new ones as fit, as few old ones less as that takes."""
    old = [task for deployment in service.older for task in deployment.live]
    upper = service.desired * service.plan.maximum_percent // 100
    lower = -(-service.desired * service.plan.minimum_healthy_percent // 100)
    wanted = _wanted(service, now)
    start = min(wanted, max(0, upper - len(new) - len(old)))
    healthy = sum(_healthy(task, now, healthy_after) for task in [*new, *old])
    running = [task for task in old if task.status is Status.RUNNING]
    less = min(max(healthy - service.desired, wanted - start), healthy - lower)
    stop = _pass_over(running, less, now)
    stop += [task for task in old if task not in running and not task.protected(now)]
    moving = start or stop or surplus or any(not task.lives for task in service.tasks)
    settled = all(_healthy(task, now, healthy_after) for task in [*new, *old])
    return Move(start, [*surplus, *stop], stuck=bool(wanted and not moving and settled))


def _wanted(service: Service, now: float) -> int:
    """How many more tasks the primary deployment may start."""
    primary = service.primary
    if primary.rollout is Rollout.FAILED or now < primary.retry_at:
        return 0
    return max(0, service.desired - len(primary.live))


def _healthy(task: Task, now: float, healthy_after: float) -> bool:
    return task.status is Status.RUNNING and task.lives and now >= task.times["startedAt"] + healthy_after


def _pass_over(tasks: list[Task], count: int, now: float) -> list[Task]:
    """So many of them to stop, or as many as are not protected."""
    free = [task for task in tasks if not task.protected(now)]
    free.sort(key=lambda task: (task.status is Status.RUNNING, -task.times["createdAt"]))
    return free[: max(0, count)]


def rolled_out(service: Service) -> bool:
    """Whether the primary deployment runs in full, and nothing else does."""
    if service.primary.count(Status.RUNNING) != len(service.primary.live):
        return False
    return len(service.primary.live) == service.desired and not any(one.tasks for one in service.older)
