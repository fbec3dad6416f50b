"""ECS: whether a task is alive, how it ended, and which code is the newest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of, unavailable
from trueup.errors import TrueupError
from trueup.model.plan import Addressee, CodeIdentity
from trueup.platform import Ended, TaskState

# The variables in which a task finds its order, as the machines' definitions set them.
ORDERS = ("TRUEUP_ORDER", "TRUEUP_NAMING")
_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")


class Ecs:
    """Tasks of one cluster; `client` is a boto3 or botocore ECS client. All raise StoreUnavailable.

    `stack` is the prefix of the task definitions' families.
    """

    def __init__(self, client: Any, cluster: str, stack: str = "") -> None:
        self._client = client
        self._cluster = cluster
        self._stack = stack

    def state(self, task: str) -> TaskState:
        """Whether a task is alive, by its ARN."""
        found = self._describe(task)
        if found is None:
            return TaskState.MISSING
        return TaskState.STOPPED if _is_stopped(found) else TaskState.ALIVE

    def stop(self, task: str, reason: str) -> None:
        """Ask for a task's end. One that is over, or unknown, needs no stopping."""
        try:
            self._client.stop_task(cluster=self._cluster, task=task, reason=reason[:1024])
        except (ClientError, BotoCoreError) as error:
            if code_of(error) != "InvalidParameterException":  # ECS's word for a task that it does not know
                raise unavailable("ECS", error) from error

    def alive_of(self, run_id: str, job: str) -> dict[str, int]:
        """The tasks started for a run that have not stopped, each with its launch, registered or not."""
        tasks = self._ordered(run_id, job)
        return {task["taskArn"]: launch for task, launch in tasks if not _is_stopped(task)}

    def endings_of(self, run_id: str, job: str, launch: int) -> list[Ended]:
        """How the tasks started for a launch ended, registered or not.

        ECS lists a stopped task for an hour at least, and describes it with the order that it was given.
        """
        tasks = self._ordered(run_id, job)
        return [ended_of_task(task) for task, its in tasks if its == launch and _is_stopped(task)]

    def _ordered(self, run_id: str, job: str) -> list[tuple[dict[str, Any], int]]:
        """The tasks that were told to work for a run, each with its launch."""
        try:
            found = [(task, addressee_of(task)) for task in self._of_job(job)]
        except (ClientError, BotoCoreError) as error:
            raise unavailable("ECS", error) from error
        return [(task, whose.launch) for task, whose in found if whose and whose.run_id == run_id]

    def _of_job(self, job: str) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("list_tasks")
        # Whoever is asked to stop is listed as STOPPED from then on, and may live for a while.
        for mode, wanted in product(("read", "write"), ("RUNNING", "STOPPED")):
            family = f"{self._stack}-{job}-{mode}"
            for page in pages.paginate(cluster=self._cluster, family=family, desiredStatus=wanted):
                # One page has as many as can be described at once.
                if arns := page["taskArns"]:
                    yield from self._client.describe_tasks(cluster=self._cluster, tasks=arns)["tasks"]

    def ending(self, task: str) -> Ended | None:
        """How a task ended. None where it has not, or ECS forgot it."""
        found = self._describe(task)
        return ended_of_task(found) if found and _is_stopped(found) else None

    def latest(self, family: str) -> CodeIdentity:
        """The newest active revision of a task definition, which must name its image by digest."""
        try:
            answer = self._client.describe_task_definition(taskDefinition=family)
        except (ClientError, BotoCoreError) as error:
            raise unavailable("ECS", error) from error
        definition = answer["taskDefinition"]
        image = definition["containerDefinitions"][0]["image"]
        digest = _DIGEST.search(image)
        if digest is None:
            raise TrueupError(
                f"{definition['taskDefinitionArn']} runs {image}, which can change.",
                remedy="Deploy the job with its image by digest: repository@sha256:...",
            )
        return CodeIdentity(task_definition=definition["taskDefinitionArn"], image_digest=digest[1])

    def _describe(self, task: str) -> dict[str, Any] | None:
        try:
            answer = self._client.describe_tasks(cluster=self._cluster, tasks=[task])
        except (ClientError, BotoCoreError) as error:
            raise unavailable("ECS", error) from error
        # Anything but a task is a `failure` with the reason MISSING: forgotten, or not known yet.
        return next(iter(answer["tasks"]), None)


def _is_stopped(task: Mapping[str, Any]) -> bool:
    return task.get("lastStatus") == "STOPPED"


def addressee_of(task: Mapping[str, Any]) -> Addressee | None:
    """For whom a task was told to work, from ECS's description of it; None where it is none of ours."""
    for container in task.get("overrides", {}).get("containerOverrides", []):
        for variable in container.get("environment", []):
            if variable.get("name") in ORDERS and (whose := Addressee.of(variable.get("value") or "")):
                return whose
    return None


def ended_of_task(task: dict[str, Any]) -> Ended:
    """How a task ended, from ECS's description of it: one container, camelCase keys."""
    container: dict[str, Any] = next(iter(task.get("containers") or []), {})
    reasons = [task.get("stoppedReason"), container.get("reason")]
    return Ended(
        exit_code=container.get("exitCode"),
        stop_code=task.get("stopCode"),
        reason="; ".join(reason for reason in reasons if reason) or None,
    )
