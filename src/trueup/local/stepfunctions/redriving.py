"""Which executions can be redriven (aws-facts section 1.4)."""

from __future__ import annotations

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.history import MAX_EVENTS
from trueup.local.stepfunctions.running.execution import REDRIVABLE, Execution

_DAY = 86_400
PERIOD = 14 * _DAY
"""Seconds after its end in which an execution can be redriven."""
LONGEST = 365 * _DAY
"""Seconds after its first start in which an execution may run at all."""


def check_redrivable(execution: Execution) -> None:
    """Raises ApiError (ExecutionNotRedrivable) with the reason."""
    status, reason = redrive_status(execution)
    if status != "REDRIVABLE":
        reason = reason or "it is redriven by its Map Run"
        raise ApiError("ExecutionNotRedrivable", f"Execution is not redrivable: '{execution.arn}': {reason}")


def redrive_status(execution: Execution) -> tuple[str, str | None]:
    """`redriveStatus` and, where it is NOT_REDRIVABLE, the reason."""
    reason = _reason(execution)
    if reason is not None:
        return "NOT_REDRIVABLE", reason
    return ("REDRIVABLE_BY_MAP_RUN" if execution.origin.map_run else "REDRIVABLE"), None


def _reason(execution: Execution) -> str | None:
    """AWS's reasons, word by word ([botocore] DescribeExecutionOutput.redriveStatusReason)."""
    now = execution.clock.now()
    if execution.told_status not in REDRIVABLE:
        return f"Execution is {execution.told_status} and cannot be redriven"
    if execution.history.last >= MAX_EVENTS - 1:
        return "Execution history event limit exceeded"
    if now - (execution.stopped_at or now) > PERIOD:
        return "Execution redrivable period exceeded"
    if now - execution.started_at > LONGEST:
        return "Execution has exceeded the max execution time"
    return None
