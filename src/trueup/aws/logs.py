"""CloudWatch Logs: what tasks said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.aws import code_of, unavailable
from trueup.errors import NotFound, RequestError


class TaskLogs:
    """The log group of the tasks; `client` is a boto3 or botocore CloudWatch Logs client."""

    def __init__(self, client: Any, group: str) -> None:
        self._client = client
        self._group = group

    def lines(
        self, stream: str, *, limit: int, after: str | None
    ) -> tuple[list[tuple[datetime, str]], str | None]:
        """Lines of a stream, oldest first, and what `after` takes for those behind them; None at the end.

        Raises NotFound where there is no such stream, RequestError for an `after` that is none of this
        stream, StoreUnavailable.
        """
        token = {"nextToken": after} if after else {}
        try:
            found = self._client.get_log_events(
                logGroupName=self._group, logStreamName=stream, startFromHead=True, limit=limit, **token
            )
        except (ClientError, BotoCoreError) as error:
            raise self._told(stream, error) from error
        lines = [(_instant(one["timestamp"]), one["message"].rstrip("\n")) for one in found["events"]]
        return lines, found.get("nextForwardToken") if lines else None

    def _told(self, stream: str, error: ClientError | BotoCoreError) -> Exception:
        if code_of(error) == "ResourceNotFoundException":
            return NotFound(
                f"There is no log stream {stream} in {self._group}.",
                remedy="Logs are kept for a while only, and a task that never began has none.",
            )
        if code_of(error) == "InvalidParameterException":
            return RequestError("it is no token of this log.", remedy="Give `next` unchanged.", field="after")
        return unavailable("CloudWatch Logs", error)


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
