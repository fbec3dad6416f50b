"""The states that call nothing: Pass, Choice, Wait, Succeed, Fail."""

from __future__ import annotations

from trueup.local.stepfunctions.errors import EvaluationError, Missing, StateError
from trueup.local.stepfunctions.intrinsics import Call
from trueup.local.stepfunctions.model import Choice, Fail, Pass, Succeed, Wait
from trueup.local.stepfunctions.parsing.failing import MAX_SECONDS
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.running.visit import Step, Visit
from trueup.local.stepfunctions.running.workflow import PERFORMERS
from trueup.local.stepfunctions.timestamps import NANOS, parse_timestamp
from trueup.local.stepfunctions.values import Json, is_integer, to_text


async def _pass(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Pass)
    given = visit.effective_input()
    if state.result is not None:
        return visit.finish(visit.effective_result(None, state.result.value))
    return visit.finish(visit.effective_result(None, visit.effective_parameters(state.parameters, given)))


async def _succeed(visit: Visit) -> Step:
    return visit.finish(visit.effective_input())


async def _choice(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Choice)
    given = visit.effective_input()
    scope = visit.scope(given)
    output = visit.document_of(visit.select(state.output_path, given))
    for rule in state.rules:
        if rule.holds(scope):
            return Step(output, rule.next, rule.assign.render(scope) if rule.assign else None)
    if state.default is None:
        # Documented as States.NoChoiceMatched; measured on AWS as States.Runtime (floci-io/floci#3167).
        raise EvaluationError(
            "Failed to transition out of the state. The state does not point to a next state."
        )
    return Step(output, state.default, state.assign.render(scope) if state.assign else None)


async def _wait(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Wait)
    given = visit.effective_input()
    clock = visit.strand.execution.clock
    if state.until is not None:
        seconds = _moment(visit, state.until, given) - clock.now()
    else:
        seconds = _seconds(visit, state.seconds, given)
    await clock.sleep(seconds)
    return visit.finish(given)


def _moment(visit: Visit, until: float | Path, given: Json) -> float:
    if not isinstance(until, Path):
        return until
    text = _given(visit, until, "TimestampPath", given)
    moment = parse_timestamp(text)
    if moment is None:
        # Recorded on AWS: test_wait_timestamp_path.
        raise EvaluationError(
            "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time "
            f"format string: {until.text} == {text if isinstance(text, str) else to_text(text)}"
        )
    return moment / NANOS


def _given(visit: Visit, path: Path, field: str, given: Json) -> Json:
    """What the path of a Wait selects. Raises EvaluationError, in AWS's words
    (serverless-operations/serverless-step-functions#346)."""
    try:
        return path.find(visit.scope(given))
    except Missing as missing:
        raise EvaluationError(
            f"The {field} parameter does not reference an input value: {path.text}"
        ) from missing


def _seconds(visit: Visit, seconds: float | Path | None, given: Json) -> float:
    if not isinstance(seconds, Path):
        return seconds or 0
    value = _given(visit, seconds, "SecondsPath", given)
    told = f"{seconds.text} == {to_text(value)}"
    if not is_integer(value):
        raise EvaluationError(f"The SecondsPath parameter cannot be parsed as a long value: {told}")
    if value < 0:
        raise EvaluationError(f"The SecondsPath parameter references a negative value: {told}")
    if value > MAX_SECONDS:
        raise EvaluationError(f"The SecondsPath parameter references a value above {MAX_SECONDS}: {told}")
    return float(value)


async def _fail(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Fail)
    raise StateError(
        _words(visit, state.error, "ErrorPath"),
        _words(visit, state.cause, "CausePath"),
    )


def _words(visit: Visit, given: str | Path | Call | None, field: str) -> str | None:
    if given is None or isinstance(given, str):
        return given
    scope = visit.scope(visit.document.value)
    value = given.require(scope, field) if isinstance(given, Path) else given.evaluate(scope)
    if not isinstance(value, str):
        raise EvaluationError(f"The {field} parameter does not reference a string: {given.text}")
    return value


PERFORMERS.update({Pass: _pass, Succeed: _succeed, Choice: _choice, Wait: _wait, Fail: _fail})
