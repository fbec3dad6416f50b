"""ECS: whether a task is alive, how it ended, and which code is the newest."""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of, unavailable
from trueup.errors import TrueupError
from trueup.model.plan import CodeIdentity
from trueup.platform import Ended, TaskState

_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")


class Ecs:
    """Tasks of one cluster; `client` is a boto3 or botocore ECS client. All raise StoreUnavailable."""

    def __init__(self, client: Any, cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    def state(self, task: str) -> TaskState:
        """Whether a task is alive, by its ARN."""
        found = self._describe(task)
        if found is None:
            return TaskState.MISSING
        return TaskState.STOPPED if found.get("lastStatus") == "STOPPED" else TaskState.ALIVE

    def stop(self, task: str, reason: str) -> None:
        """Ask for a task's end. One that is over, or unknown, needs no stopping."""
        try:
            self._client.stop_task(cluster=self._cluster, task=task, reason=reason[:1024])
        except (ClientError, BotoCoreError) as error:
            if code_of(error) != "InvalidParameterException":  # ECS's word for a task that it does not know
                raise unavailable("ECS", error) from error

    def ending(self, task: str) -> Ended | None:
        """How a task ended. None where it has not, or ECS forgot it."""
        found = self._describe(task)
        return ended_of_task(found) if found and found.get("lastStatus") == "STOPPED" else None

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


def ended_of_task(task: dict[str, Any]) -> Ended:
    """How a task ended, from ECS's description of it: one container, camelCase keys."""
    container: dict[str, Any] = next(iter(task.get("containers") or []), {})
    reasons = [task.get("stoppedReason"), container.get("reason")]
    return Ended(
        exit_code=container.get("exitCode"),
        stop_code=task.get("stopCode"),
        reason="; ".join(reason for reason in reasons if reason) or None,
    )
