"""Retry and Catch around the states that can fail: Task, Parallel, Map."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trueup.local.stepfunctions.errors import EvaluationError, StateError
from trueup.local.stepfunctions.model import Catcher, Fallible
from trueup.local.stepfunctions.retry import Retries, find_catcher
from trueup.local.stepfunctions.running.visit import Step, Visit


async def run_fallible(
    visit: Visit, attempt: Callable[[], Awaitable[Step]], *, failed_event: str | None = None
) -> Step:
    """Attempt, try again, catch: in this order. Raises StateError when neither helps.

    `failed_event` is written once no retry is left, before a catcher takes over
    (recorded on AWS: test_map_state_retry_multiple_retriers, test_map_state_catch), but not where a state
    within could not be run at all (measured on AWS: floci-io/floci#2868).
    """
    state = visit.state
    assert isinstance(state, Fallible)
    execution = visit.strand.execution
    retries = Retries(state.retry, execution.chance)
    while True:
        try:
            return await attempt()
        except EvaluationError as problem:
            # The state itself is at fault, not what runs in it: there is no event of its failing
            # (recorded on AWS: test_map_state_tolerated_failure_count_path).
            error, event = visit.failed(problem), None
        except StateError as failure:
            error, event = failure, None if failure.unrunnable else failed_event
        delay = retries.next_delay(error)
        inspection = execution.inspection
        if inspection is not None and delay is not None:
            inspection.retry(retries.latest, delay, error)
        if delay is None:
            return _give_up(visit, error, state, event)
        visit.retries = retries.count
        await execution.clock.sleep(delay)


def _give_up(visit: Visit, error: StateError, state: Fallible, failed_event: str | None) -> Step:
    if failed_event is not None:
        visit.note(failed_event)
    catcher = find_catcher(state.catch, error)
    if catcher is None:
        raise error
    if visit.strand.execution.inspection is not None:
        visit.strand.execution.inspection.catch(state.catch.index(catcher), error)
    return _caught(visit, error, catcher)


def _caught(visit: Visit, error: StateError, catcher: Catcher) -> Step:
    # OutputPath does not apply (recorded on AWS: test_raise_exception_catch_output_path).
    result = {"Error": error.error or "", "Cause": error.cause or ""}
    output = visit.document_of(visit.combine(catcher.result_path, result))
    assigned = visit.render(catcher.assign, result) if catcher.assign else None
    return Step(output, catcher.next, assigned)
