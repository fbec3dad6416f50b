"""Which executions can be redriven (aws-facts section 1.4)."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.history import MAX_EVENTS
from trueup.local.stepfunctions.running.execution import REDRIVABLE, Execution


def check_redrivable(execution: Execution) -> None:
    """Raises ApiError (ExecutionNotRedrivable) with the reason."""
    for reason in _reasons(execution):
        raise ApiError("ExecutionNotRedrivable", f"Execution is not redrivable: '{execution.arn}' {reason}")


def _reasons(execution: Execution) -> Iterator[str]:
    if execution.origin.map_run is not None:
        yield "is redriven by its Map Run"
    if execution.status not in REDRIVABLE:
        yield f"is {execution.status}"
    if execution.history.last >= MAX_EVENTS - 1:
        yield f"has {execution.history.last} events"
