"""A task as ECS knows it: its states, what happened when, and why it stopped."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trueup.local.ecs.definitions import DEFAULT_STOP_TIMEOUT, Definition

Document = dict[str, Any]


class Status(StrEnum):
    """`lastStatus`, in the words of the page "Amazon ECS task lifecycle"."""

    PROVISIONING = "PROVISIONING"
    PENDING = "PENDING"
    ACTIVATING = "ACTIVATING"
    RUNNING = "RUNNING"
    DEACTIVATING = "DEACTIVATING"
    STOPPING = "STOPPING"
    DEPROVISIONING = "DEPROVISIONING"
    STOPPED = "STOPPED"


MOVES: Mapping[Status, Mapping[Status, str]] = {
    Status.PROVISIONING: {
        Status.PENDING: "Fargate found room for it",
        Status.DEPROVISIONING: "it was stopped before there was room",
    },
    Status.PENDING: {
        Status.ACTIVATING: "the agent has taken it over",
        Status.DEPROVISIONING: "it was stopped before the agent had it",
    },
    Status.ACTIVATING: {
        Status.RUNNING: "its image was pulled and its container started",
        Status.DEPROVISIONING: "its image, its secrets or its program could not be had, or it was stopped",
    },
    Status.RUNNING: {
        Status.DEACTIVATING: "somebody asked for its end",
        Status.DEPROVISIONING: "its container ended by itself",
    },
    Status.DEACTIVATING: {Status.STOPPING: "it takes no more traffic: SIGTERM is out, SIGKILL follows"},
    Status.STOPPING: {Status.DEPROVISIONING: "its container has ended"},
    Status.DEPROVISIONING: {Status.STOPPED: "what it used has been given back"},
    Status.STOPPED: {},
}
"""Each arrow with its reason."""


class StopCode(StrEnum):
    """Why a task stopped: the seven of [botocore]."""

    FAILED_TO_START = "TaskFailedToStart"
    CONTAINER_EXITED = "EssentialContainerExited"
    USER = "UserInitiated"
    SCHEDULER = "ServiceSchedulerInitiated"
    SPOT = "SpotInterruption"
    TERMINATION = "TerminationNotice"
    INFRASTRUCTURE = "InfrastructureHealth"


EXITED = "Essential container in task exited"
"""As a real failure document words it (aws-facts section 2.4)."""
STOPPED_BY_USER = "Task stopped by user"
INTERRUPTED = "Your Spot Task was interrupted."
"""Developer guide, "Amazon ECS clusters for Fargate workloads"."""
HOST_LOST = "The host of the task failed."
"""Ours: no document with this stop code was found."""


@dataclass(frozen=True, slots=True)
class Stop:
    """That a task shall end, and what will be told of it."""

    code: StopCode
    reason: str


@dataclass(slots=True)
class Container:
    """The one container of a task."""

    name: str
    image: str
    runtime_id: str
    definition: Mapping[str, Any]
    override: Mapping[str, Any]
    container_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    digest: str = ""
    status: str = "PENDING"
    exit_code: int | None = None
    reason: str | None = None

    @property
    def cpu(self) -> int:
        """Its own units of CPU; 0 where they are the task's."""
        return int(self.override.get("cpu") or self.definition.get("cpu") or 0)

    @property
    def memory(self) -> int | None:
        """Its own limit in MiB, beyond which it is killed; None where it is the task's."""
        return self.override.get("memory") or self.definition.get("memory")

    @property
    def stop_timeout(self) -> float:
        """Seconds from SIGTERM to SIGKILL."""
        given = self.definition.get("stopTimeout")
        return DEFAULT_STOP_TIMEOUT if given is None else float(given)


@dataclass(slots=True)
class Task:
    """One task. Times are seconds since 1970, by their names in the API, in the order of happening."""

    task_id: str
    arn: str
    cluster: str
    cluster_arn: str
    definition: Definition
    container: Container
    cpu: str
    memory: str
    overrides: Mapping[str, Any]
    group: str
    started_by: str | None = None
    capacity_provider: str | None = None
    subnet: str | None = None
    service: str | None = None
    """The name of the service whose scheduler started it."""
    role: str | None = None
    """The ARN of its task role."""
    pid: int | None = None
    """Of the first process of its container, while it runs here."""
    protected_until: float | None = None
    """Until when scaling in and deployments pass it over, where it was protected."""
    tags: list[Document] = field(default_factory=list)
    status: Status = Status.PROVISIONING
    desired: str = "RUNNING"
    times: dict[str, float] = field(default_factory=dict)
    stop: Stop | None = None
    version: int = 1
    attachment_id: str = field(default_factory=lambda: secrets.token_hex(16))

    def move(self, status: Status) -> None:
        """Go on to another state; only along MOVES."""
        if status not in MOVES[self.status]:
            raise AssertionError(f"a task cannot go from {self.status} to {status}")
        self.status = status
        self.version += 1

    def stop_because(self, stop: Stop, now: float) -> bool:
        """Note that it shall end, and why. The first reason stands: False where there is one already."""
        if self.stop is not None:
            return False
        self.stop = stop
        self.desired = "STOPPED"
        self.times["stoppingAt"] = now
        return True

    def protected(self, now: float) -> bool:
        """Whether its service may not end it now. Protection lapses by itself."""
        return self.protected_until is not None and now < self.protected_until

    @property
    def lives(self) -> bool:
        """Whether it is meant to run, and may still."""
        return self.desired == "RUNNING" and not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether it is over."""
        return self.status is Status.STOPPED

    @property
    def family(self) -> str:
        """The family of its definition."""
        return self.definition.family
