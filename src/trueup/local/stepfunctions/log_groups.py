"""Events of executions on their way to CloudWatch Logs, as the logging of machines says ([dg:cw-logs])."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.history import Event
from trueup.local.stepfunctions.integrations.port import Calls, ServiceFailure
from trueup.local.stepfunctions.outbox import Outbox
from trueup.local.stepfunctions.values import Json, to_text

if TYPE_CHECKING:
    from trueup.local.stepfunctions.running.execution import Execution

log = logging.getLogger(__name__)

OFF = "OFF"
_FATAL = ("ExecutionAborted", "ExecutionFailed", "ExecutionTimedOut")
_BAD = ("Aborted", "Failed", "TimedOut")
_BATCH = 1_000
"""Events that are put at once: with 256 KiB each at most, PutLogEvents refuses larger batches itself."""
_BYTES = 1_000_000
"""PutLogEvents takes 1 MiB, with 26 bytes for each event."""
_AROUND = 26

Settings = Mapping[str, Json]
"""A machine's loggingConfiguration."""


def wants(level: str, kind: str) -> bool:
    """Whether a level logs events of a type (the table of [dg:cw-logs])."""
    if level == "ALL":
        return True
    if level == "ERROR":
        return kind.endswith(_BAD) or kind == "FailStateEntered"
    return kind in _FATAL


def check_logging(settings: Settings | None) -> None:
    """Raises ApiError where nothing could be logged as it says ([botocore] LoggingConfiguration)."""
    if settings is None or settings.get("level", OFF) == OFF:
        return
    destinations = settings.get("destinations") or []
    if len(destinations) != 1:
        raise _refused("Must specify exactly one Log Destination.")
    arn = _group_arn(settings)
    if ":log-group:" not in arn or not arn.endswith(":*"):
        raise _refused(f"The ARN of a log group ends with :*, and this is '{arn}'")


def _refused(why: str) -> ApiError:
    return ApiError("InvalidLoggingConfiguration", f"Invalid Logging Configuration: {why}")


def _group_arn(settings: Settings) -> str:
    destination = settings["destinations"][0].get("cloudWatchLogsLogGroup") or {}
    return str(destination.get("logGroupArn", ""))


@dataclass(frozen=True, slots=True)
class _Line:
    group: str
    stream: str
    timestamp: int
    text: str


class LogSink:
    """Takes events on the engine's loop without holding it up."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._streams: set[tuple[str, str]] = set()
        self._lines = Outbox(self._deliver, "events", "CloudWatch Logs", _BATCH)

    def listener(self, execution: Execution) -> Callable[[Event], None] | None:
        """What is to hear of an execution's events; None where its machine logs nothing."""
        settings = execution.origin.revision.logging or {}
        level = settings.get("level", OFF)
        if level == OFF:
            return None
        group = _group_arn(settings).partition(":log-group:")[2].removesuffix(":*")
        # On AWS `states/<machine>/<minute>/<id>`; here one for each machine and day, which tails well.
        day = datetime.fromtimestamp(execution.started_at, UTC).strftime("%Y-%m-%d")
        stream = f"states/{execution.origin.machine_name}/{day}"
        data = bool(settings.get("includeExecutionData"))

        def hear(event: Event) -> None:
            if wants(level, event.type):
                text = to_text(_told(execution, event, data=data))
                self._lines.put(_Line(group, stream, round(event.timestamp * 1000), text))

        return hear

    async def close(self) -> None:
        """Send what is waiting, for a second at most, and stop."""
        await self._lines.close()

    async def _deliver(self, lines: list[_Line]) -> None:
        for (group, stream), texts in _sorted(lines).items():
            await self._put(group, stream, texts)

    async def _put(self, group: str, stream: str, lines: list[_Line]) -> None:
        try:
            await self._open(group, stream)
            for part in _parts(lines):
                events = [{"Timestamp": line.timestamp, "Message": line.text} for line in part]
                asked = {"LogGroupName": group, "LogStreamName": stream, "LogEvents": events}
                await self._calls.call("logs", "putLogEvents", asked)
        except ServiceFailure as failure:
            log.warning("log group %s did not take %d events: %s", group, len(lines), failure)

    async def _open(self, group: str, stream: str) -> None:
        if (group, stream) in self._streams:
            return
        try:
            asked = {"LogGroupName": group, "LogStreamName": stream}
            await self._calls.call("logs", "createLogStream", asked)
        except ServiceFailure as failure:
            if failure.code != "ResourceAlreadyExistsException":
                raise
        self._streams.add((group, stream))


def _told(execution: Execution, event: Event, *, data: bool) -> Json:
    """An event as Step Functions logs it: numbers are text, and the details stand under one name."""
    answer = event.as_answer(data=data)
    return {
        "id": str(event.id),
        "type": event.type,
        "details": answer.get(event.field, {}) if event.field else {},
        "redrive_count": str(execution.redrive_count),
        "previous_event_id": str(event.previous),
        "event_timestamp": str(round(event.timestamp * 1000)),
        "execution_arn": execution.arn,
    }


def _sorted(lines: list[_Line]) -> dict[tuple[str, str], list[_Line]]:
    found: dict[tuple[str, str], list[_Line]] = {}
    for line in lines:
        found.setdefault((line.group, line.stream), []).append(line)
    return found


def _parts(lines: list[_Line]) -> list[list[_Line]]:
    """Lines in batches of the size that one call takes."""
    parts: list[list[_Line]] = []
    size = _BYTES
    for line in lines:
        bytes_ = len(line.text.encode()) + _AROUND
        if size + bytes_ > _BYTES:
            parts.append([])
            size = 0
        parts[-1].append(line)
        size += bytes_
    return parts
