"""The word of a task that its state waits for: heartbeats, and at the end success or failure."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of

log = logging.getLogger("trueup.worker")

# The state went on without this task: it timed out, or somebody answered before.
_FINISHED_BY_OTHERS = frozenset({"TaskTimedOut", "TaskDoesNotExist"})


class TaskToken:
    """What waits for this task; `client` is a boto3 or botocore Step Functions client.

    Nothing here raises: whatever is lost, the heartbeat's timeout and `accept` find out what the task did.
    """

    def __init__(self, client: Any, token: str) -> None:
        self._client = client
        self._token = token

    def beat(self) -> None:
        """Say that the task is alive."""
        self._send("send_task_heartbeat")

    def succeed(self, result: Mapping[str, Any]) -> None:
        """Say that the slice is finished, and where its result is."""
        self._send("send_task_success", output=json.dumps(result))

    def fail(self, error: str, cause: Mapping[str, Any]) -> None:
        """Say that the task leaves early, and how."""
        self._send("send_task_failure", error=error, cause=json.dumps(cause))

    def _send(self, call: str, **arguments: str) -> None:
        try:
            getattr(self._client, call)(taskToken=self._token, **arguments)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) in _FINISHED_BY_OTHERS:
                log.info("somebody else finished this task's state: %s", error)
            else:
                log.warning("%s was not heard: %s", call, error)
