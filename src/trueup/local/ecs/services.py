"""A service as ECS knows it: what it shall keep running, its deployments, and what it told of itself."""

from __future__ import annotations

import secrets
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trueup.local.ecs.clusters import Cluster
from trueup.local.ecs.run_request import RunRequest
from trueup.local.ecs.tasks import Status, Task

MAX_EVENTS = 100
"""API reference, Service, events: "A maximum of 100 of the latest events are displayed"."""
WAITING = (Status.PROVISIONING, Status.PENDING, Status.ACTIVATING)

Document = dict[str, Any]


class ServiceStatus(StrEnum):
    """API reference, Service, status."""

    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    INACTIVE = "INACTIVE"


class Rollout(StrEnum):
    """API reference, Deployment, rolloutState."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How deployments go: the limits, and when one is given up."""

    minimum_healthy_percent: int = 100
    maximum_percent: int = 200
    breaker: bool = False
    rollback: bool = False


@dataclass(slots=True)
class Deployment:
    """One revision on its way into a service, or out of it."""

    request: RunRequest
    given: Mapping[str, Any]
    """How its tasks were asked for: network, launch type, platform."""
    created_at: float
    updated_at: float
    deployment_id: str
    rollout: Rollout = Rollout.IN_PROGRESS
    reason: str = ""
    tasks: list[Task] = field(default_factory=list)
    """Those that were started for it and have not stopped, or whose end was not counted yet."""
    failed: int = 0
    """Tasks in a row that never ran."""
    ran: bool = False
    """Whether a task of it has run; failures are not counted from then on."""
    retry_at: float = 0.0

    @property
    def live(self) -> list[Task]:
        """Its tasks that are meant to run."""
        return [task for task in self.tasks if task.lives]

    def count(self, *statuses: Status) -> int:
        """How many of its tasks are in one of these states."""
        return sum(task.status in statuses for task in self.tasks)


@dataclass(slots=True)
class Service:
    """A service; the newest deployment comes first and is its primary one."""

    name: str
    arn: str
    cluster: Cluster
    given: Document
    """What it was created with, as far as DescribeServices tells it back."""
    desired: int
    plan: Plan
    created_at: float
    deployments: list[Deployment]
    tags: list[Document]
    status: ServiceStatus = ServiceStatus.ACTIVE
    completed: Deployment | None = None
    """The last deployment that came through: what a rollback goes back to."""
    steady: bool = False
    stuck: bool = False
    events: deque[Document] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))

    @property
    def primary(self) -> Deployment:
        """The deployment that it shall run."""
        return self.deployments[0]

    @property
    def older(self) -> list[Deployment]:
        """The deployments that are on their way out."""
        return self.deployments[1:]

    @property
    def tasks(self) -> list[Task]:
        """All tasks that were started for it and have not stopped."""
        return [task for deployment in self.deployments for task in deployment.tasks]

    def say(self, words: str, now: float) -> None:
        """Add to its events, as AWS words them: "(service name) …"."""
        message = f"(service {self.name}) {words}"
        self.events.appendleft({"id": str(uuid.uuid4()), "createdAt": now, "message": message})


def new_deployment_id() -> str:
    """`ecs-svc/` and 19 digits, as real ones are."""
    return f"ecs-svc/{secrets.randbelow(9 * 10**18) + 10**18}"
