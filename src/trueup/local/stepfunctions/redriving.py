"""Which executions can be redriven (aws-facts section 1.4), and where ours cannot yet follow AWS.

Within a Parallel or an inline Map AWS runs only the branches again that did not succeed. That is not
implemented, and running all of them would be something else, so such executions are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.history import MAX_EVENTS
from trueup.local.stepfunctions.model import Map, Parallel, State
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
    state = _unsupported(execution)
    if state is not None:
        yield (
            f"stopped in '{state.name}', and redriving from within a {state.type} is not implemented; "
            "supported are all other states and Distributed Maps"
        )


def _unsupported(execution: Execution) -> State | None:
    """The state of the execution, or of a child that would be redriven with it, that stands in the way."""
    state = execution.workflow.states[execution.stopped_in or execution.workflow.start_at]
    if isinstance(state, Parallel) or (isinstance(state, Map) and state.distributed is None):
        return state
    runs = [run for run in execution.map_runs if run.state is state and run.status in REDRIVABLE]
    children = runs[-1].children if runs else []
    found = (_unsupported(child) for child in children if child and child.status in REDRIVABLE)
    return next((state for state in found if state is not None), None)
