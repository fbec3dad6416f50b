"""The scheduler of services: looks at each from time to time, and does what `scheduling` decides.

Sources: developer guide, "Amazon ECS services", "Amazon ECS service throttle logic", "How the Amazon ECS
deployment circuit breaker detects failures", "Viewing Amazon ECS service event messages", "Amazon ECS service
action events", "Amazon ECS service deployment state change events"; [botocore ecs], Deployment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trueup.local.ecs.describing import instant
from trueup.local.ecs.faults import Refusal
from trueup.local.ecs.run_request import RunRequest
from trueup.local.ecs.scheduling import decide, rolled_out
from trueup.local.ecs.services import Deployment, Rollout, Service, ServiceStatus
from trueup.local.ecs.tasks import Status, Stop, StopCode, Task

FIRST_RETRY = 10.0
LONGEST_RETRY = 27 * 60.0
"""Seconds between attempts to start tasks that never run; the longest is that of "service throttle logic"."""
IMPAIRED_AFTER = 3
"""Failures in a row before the service says so. Ours: AWS says "repeatedly"."""
BREAKER_LEAST, BREAKER_MOST = 3, 200
"""The breaker opens after half the desired count of failures, within these."""

STEADY = "has reached a steady state."
IMPAIRED = "is unable to consistently start tasks successfully."
THROTTLED = "operations are being throttled. Will try again later."
STUCK = (
    "was unable to stop or start tasks during a deployment because of the service deployment configuration. "
    "Update the minimumHealthyPercent or maximumPercent value and try again."
)
BROKEN = "ECS deployment circuit breaker: tasks failed to start."

_GONE = (Status.STOPPING, Status.DEPROVISIONING, Status.STOPPED)

Announce = Callable[[str, str, dict[str, Any]], None]
"""Tells EventBridge of a service: the detail type, the service's ARN, the detail."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Starts and stops tasks for services. `start` may be refused, as RunTask may."""

    now: Callable[[], float]
    start: Callable[[RunRequest], Task | Refusal]
    stop: Callable[[Task, Stop], None]
    announce: Announce
    healthy_after: float = 0.0

    def look(self, service: Service) -> None:
        """Look at a service once, and bring it nearer to what it shall be."""
        for deployment in service.deployments:
            self._count_ends(service, deployment)
        if service.status is ServiceStatus.ACTIVE:
            self._judge(service)
        self._act(service)
        self._conclude(service)

    def begin(self, service: Service, deployment: Deployment) -> None:
        """Say that a deployment is on its way."""
        deployment.rollout = Rollout.IN_PROGRESS
        deployment.reason = deployment.reason or f"ECS deployment {deployment.deployment_id} in progress."
        service.steady = service.stuck = False
        self._announce_deployment(service, deployment, "INFO", "SERVICE_DEPLOYMENT_IN_PROGRESS")

    def _count_ends(self, service: Service, deployment: Deployment) -> None:
        if any("startedAt" in task.times for task in deployment.tasks):
            deployment.ran, deployment.failed, deployment.retry_at = True, 0, 0.0
        for task in [task for task in deployment.tasks if task.stopped]:
            deployment.tasks.remove(task)
            service.steady = False
            if task.stop is not None and task.stop.code is StopCode.FAILED_TO_START:
                self._failed(service, deployment, task.stop.reason)

    def _failed(self, service: Service, deployment: Deployment, reason: str) -> None:
        """A task was not launched, or did not come to run."""
        now = self.now()
        service.say(f"was unable to place a task. Reason: {reason}", now)
        deployment.failed += 1
        deployment.retry_at = now + min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** (deployment.failed - 1))
        if deployment.failed == IMPAIRED_AFTER:
            service.say(IMPAIRED, now)
            self._announce_action(service, "WARN", "SERVICE_TASK_START_IMPAIRED")

    def _judge(self, service: Service) -> None:
        """Give up a deployment whose tasks do not run, where the service has a circuit breaker."""
        primary, plan = service.primary, service.plan
        most = max(BREAKER_LEAST, min(BREAKER_MOST, -(-service.desired // 2)))
        if not plan.breaker or primary.rollout is not Rollout.IN_PROGRESS or primary.ran:
            return
        if primary.failed < most:
            return
        primary.rollout, primary.reason, primary.updated_at = Rollout.FAILED, BROKEN, self.now()
        words = f"(deployment {primary.deployment_id}) deployment failed: tasks failed to start."
        service.say(words, self.now())
        self._announce_deployment(service, primary, "ERROR", "SERVICE_DEPLOYMENT_FAILED")
        if plan.rollback and service.completed is not None:
            self._roll_back(service, service.completed)

    def _roll_back(self, service: Service, to: Deployment) -> None:
        service.deployments = [to, *(one for one in service.deployments if one is not to)]
        service.given = dict(to.given)
        to.updated_at = self.now()
        to.reason = f"ECS deployment circuit breaker: rolling back to deploymentId {to.deployment_id}."
        service.say(f"rolling back to deployment {to.deployment_id}.", self.now())
        self.begin(service, to)

    def _act(self, service: Service) -> None:
        move = decide(service, self.now(), self.healthy_after)
        for task in move.stop:
            reason = f"Scaling activity initiated by (deployment {task.started_by})"
            self.stop(task, Stop(StopCode.SCHEDULER, reason))
        if move.stop:
            service.steady = False
            service.say(f"has stopped {len(move.stop)} running tasks: {_names(move.stop)}.", self.now())
        self._start(service, move.start)
        if move.stuck and not service.stuck:
            service.say(STUCK, self.now())
        service.stuck = move.stuck

    def _start(self, service: Service, count: int) -> None:
        started: list[Task] = []
        primary = service.primary
        while len(started) < count:
            task = self.start(primary.request)
            if isinstance(task, Refusal):
                self._refused(service, task)
                break
            started.append(task)
            primary.tasks.append(task)
        if started:
            service.steady = False
            service.say(f"has started {len(started)} tasks: {_names(started)}.", self.now())

    def _refused(self, service: Service, refusal: Refusal) -> None:
        if "Rate exceeded" in refusal.message:
            service.say(THROTTLED, self.now())
            self._announce_action(service, "ERROR", "ECS_OPERATION_THROTTLED")
            return
        self._announce_action(service, "ERROR", "SERVICE_TASK_PLACEMENT_FAILURE", reason=refusal.message)
        self._failed(service, service.primary, refusal.message)

    def _conclude(self, service: Service) -> None:
        if service.status is ServiceStatus.DRAINING:
            if all(task.status in _GONE for task in service.tasks):
                service.status = ServiceStatus.INACTIVE
            return
        if not rolled_out(service):
            return
        if service.primary.rollout is Rollout.IN_PROGRESS:
            self._complete(service)
        if not service.steady:
            service.steady = True
            service.say(STEADY, self.now())
            self._announce_action(service, "INFO", "SERVICE_STEADY_STATE")

    def _complete(self, service: Service) -> None:
        primary = service.primary
        service.deployments, service.completed = [primary], primary
        primary.rollout, primary.updated_at = Rollout.COMPLETED, self.now()
        primary.reason = f"ECS deployment {primary.deployment_id} completed."
        service.say(f"(deployment {primary.deployment_id}) deployment completed.", self.now())
        self._announce_deployment(service, primary, "INFO", "SERVICE_DEPLOYMENT_COMPLETED")

    def _announce_action(self, service: Service, kind: str, name: str, **more: str) -> None:
        about = {"eventType": kind, "eventName": name, "clusterArn": service.cluster.arn}
        detail = {**about, **more, "createdAt": instant(self.now())}
        self.announce("ECS Service Action", service.arn, detail)

    def _announce_deployment(self, service: Service, deployment: Deployment, kind: str, name: str) -> None:
        detail = {
            "eventType": kind,
            "eventName": name,
            "clusterArn": service.cluster.arn,
            "deploymentId": deployment.deployment_id,
            "updatedAt": instant(self.now()),
            "reason": deployment.reason,
        }
        self.announce("ECS Deployment State Change", service.arn, detail)


def _names(tasks: list[Task]) -> str:
    return " ".join(f"(task {task.task_id})" for task in tasks)
