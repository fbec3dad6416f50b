"""What EventBridge is told when an execution's status changes ([dg:cw-events]; recorded on AWS:
test_event_bridge_events_base).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from trueup.local.stepfunctions.redriving import redrive_status
from trueup.local.stepfunctions.running.execution import RUNNING, Execution
from trueup.local.stepfunctions.values import Json

DETAIL_TYPE = "Step Functions Execution Status Change"
SOURCE = "aws.states"

Sink = Callable[[dict[str, Json]], None]
"""Takes an event as EventBridge delivers it. Called on the engine's loop: it must not block."""


def status_event(execution: Execution, event_id: str, account: str) -> dict[str, Json]:
    """The event for an execution's present status."""
    moment = datetime.fromtimestamp(execution.stopped_at or execution.started_at, UTC)
    return {
        "version": "0",
        "id": event_id,
        "detail-type": DETAIL_TYPE,
        "source": SOURCE,
        "account": account,
        "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": execution.region,
        "resources": [execution.arn],
        "detail": _detail(execution),
    }


def _detail(execution: Execution) -> dict[str, Json]:
    status, reason = redrive_status(execution)
    ended = execution.status != RUNNING
    return {
        "executionArn": execution.arn,
        "stateMachineArn": execution.origin.machine_arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": _millis(execution.started_at),
        "stopDate": _millis(execution.stopped_at) if ended else None,
        "input": execution.input.text,
        "output": execution.output.text if execution.output else None,
        "stateMachineVersionArn": execution.origin.version_arn,
        "stateMachineAliasArn": execution.origin.alias_arn,
        "redriveCount": execution.redrive_count,
        "redriveDate": _millis(execution.redriven_at),
        "redriveStatus": status,
        "redriveStatusReason": reason,
        "inputDetails": {"included": True},
        "outputDetails": {"included": True} if execution.output else None,
        "error": execution.error,
        "cause": execution.cause,
    }


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
