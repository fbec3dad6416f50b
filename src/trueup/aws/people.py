"""What people are told (SNS), and what their word wakes (Step Functions)."""

from __future__ import annotations

import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of, unavailable

log = logging.getLogger("trueup.gate")

# The state went on without it: it timed out, or somebody was faster (aws-facts, section 1.5).
_WENT_ON = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})

# SNS refuses a longer subject.
LONGEST_TITLE = 100


class TaskTokens:
    """Executions that wait by token; `client` is a boto3 or botocore Step Functions client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def wake(self, token: str) -> None:
        """Let the execution go on, with nothing told. Raises StoreUnavailable."""
        try:
            self._client.send_task_success(taskToken=token, output="{}")
        except (ClientError, BotoCoreError) as error:
            if code_of(error) not in _WENT_ON:
                raise unavailable("Step Functions", error) from error
            log.info("nothing waits by this token any more: %s", code_of(error))


class Topic:
    """An SNS topic; `client` is a boto3 or botocore SNS client."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def tell(self, title: str, text: str) -> None:
        """Publish it; a title is cut where SNS takes no longer one. Raises StoreUnavailable."""
        try:
            self._client.publish(TopicArn=self._arn, Subject=title[:LONGEST_TITLE], Message=text)
        except (ClientError, BotoCoreError) as error:
            raise unavailable("SNS", error) from error
