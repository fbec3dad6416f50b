"""Step Functions: the executions that serve runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of, unavailable
from trueup.errors import TrueupError


class StateMachine:
    """Executions of one state machine; `client` is a boto3 or botocore client. All raise StoreUnavailable."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def start(self, name: str, data: Mapping[str, Any]) -> None:
        """Start an execution; asked again with the same input, nothing changes, also when it is over."""
        try:
            self._client.start_execution(stateMachineArn=self._arn, name=name, input=_text(data))
        except (ClientError, BotoCoreError) as error:
            if code_of(error) != "ExecutionAlreadyExists":
                raise unavailable("Step Functions", error) from error
            self._check_that_it_is_ours(name, data)

    def status(self, name: str) -> str | None:
        """RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED or PENDING_REDRIVE. None where there is none."""
        found = self._describe(name)
        return None if found is None else str(found["status"])

    def _check_that_it_is_ours(self, name: str, data: Mapping[str, Any]) -> None:
        found = self._describe(name)
        if found is None or json.loads(found.get("input", "null")) != json.loads(_text(data)):
            raise TrueupError(
                f"Another execution is called {name}.",
                remedy="Find out who started it; nobody but trueup should start this state machine.",
            )

    def _describe(self, name: str) -> dict[str, Any] | None:
        arn = f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}"
        try:
            found: dict[str, Any] = self._client.describe_execution(executionArn=arn)
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "ExecutionDoesNotExist":
                return None
            raise unavailable("Step Functions", error) from error
        return found


def _text(data: Mapping[str, Any]) -> str:
    # Sorted, since the same name with another text is another input to Step Functions.
    return json.dumps(data, sort_keys=True)
