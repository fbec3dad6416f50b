"""TestState: one state, run alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from trueup.local.stepfunctions.api.requests import Body, required
from trueup.local.stepfunctions.engine import Engine, read_input
from trueup.local.stepfunctions.errors import TIMEOUT, ApiError, EvaluationError, StateError
from trueup.local.stepfunctions.inspection import Inspection, Mock, Retriable, waits
from trueup.local.stepfunctions.machines import compile_definition
from trueup.local.stepfunctions.model import Machine, Map, Parallel, State, Task
from trueup.local.stepfunctions.running.execution import Execution
from trueup.local.stepfunctions.running.visit import Step, Visit
from trueup.local.stepfunctions.running.workflow import PERFORMERS
from trueup.local.stepfunctions.values import Document, Json, from_text, to_text

_SECONDS = 300
"""How long a state under test may run [botocore]."""
_NAME = "StateUnderTest"
_UNSUPPORTED = ("stateConfiguration", "context")


async def test_state(engine: Engine, body: Body) -> Json:
    """TestState: how the state ended, where it would go, and with DEBUG each step of its data."""
    name, machine = _read(body)
    state = machine.states[name]
    _check(state, body)
    given = read_input(body.get("input", "{}"))
    execution = engine.rehearse(machine, given, body.get("roleArn", ""), _mock(body.get("mock")))
    inspection = execution.inspection = Inspection()
    execution.strand.variables.assign(_object(body, "variables"))
    inspection.data["input"] = given.text
    answer = await _run(execution, state, inspection)
    if (body.get("inspectionLevel") or "INFO") == "INFO":
        return answer
    return {**answer, "inspectionData": _inspected(execution, inspection)}


test_state.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test where it is imported


async def _run(execution: Execution, state: State, inspection: Inspection) -> dict[str, Json]:
    try:
        async with asyncio.timeout_at(execution.clock.deadline(_SECONDS)):
            step = await _visit(execution, state)
    except Retriable as retriable:
        return {"status": "RETRIABLE", **_told(retriable.error)}
    except StateError as error:
        return {"status": "FAILED", **_told(error)}
    except TimeoutError:
        return {"status": "FAILED", "error": TIMEOUT}
    status = "SUCCEEDED" if inspection.caught is None else "CAUGHT_ERROR"
    told = {} if inspection.caught is None else _told(inspection.caught)
    way = {} if step.next is None else {"nextState": step.next}
    return {"status": status, "output": step.output.text, **told, **way}


async def _visit(execution: Execution, state: State) -> Step:
    visit = Visit(execution.strand, state, execution.input)
    try:
        step = await PERFORMERS[type(state)](visit)
        visit.leave(step)
    except EvaluationError as error:
        raise visit.failed(error) from error
    return step


def _told(error: StateError) -> dict[str, Json]:
    told = {"error": error.error, "cause": error.cause}
    return {name: value for name, value in told.items() if value is not None}


def _inspected(execution: Execution, inspection: Inspection) -> Json:
    data: dict[str, Json] = dict(inspection.data)
    variables = execution.strand.variables.own
    if variables:
        data["variables"] = to_text(variables)
    return {**data, "errorDetails": inspection.details} if inspection.details else data


def _read(body: Body) -> tuple[str, Machine]:
    """The state's name and a machine that has it at hand. Raises ApiError."""
    text, name = required(body, "definition"), body.get("stateName")
    if name is not None:
        machine = compile_definition(text)
        found = next((within for within in _workflows(machine) if name in within.states), None)
        if found is None:
            raise ApiError("ValidationException", f"The definition has no state '{name}'")
        return name, Machine(start_at=found.start_at, states=found.states, source=machine.source)
    try:
        raw = from_text(text, unique=True)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        compile_definition(text)  # says what is wrong
        raise ApiError("InvalidDefinition", "Invalid State Machine Definition: 'the state is no object'")
    ends = {target: {"Type": "Succeed"} for target in _targets(raw) if target != _NAME}
    return _NAME, compile_definition(to_text({"StartAt": _NAME, "States": {_NAME: raw, **ends}}))


def _workflows(machine: Machine) -> Iterator[Machine]:
    waiting: list[Json] = [machine]
    while waiting:
        workflow = waiting.pop()
        yield workflow
        for state in workflow.states.values():
            waiting += [state.processor] if isinstance(state, Map) else getattr(state, "branches", ())


def _targets(raw: Mapping[str, Json]) -> list[str]:
    """Where the state can go: its definition names states that are not there."""
    choices, catchers = raw.get("Choices"), raw.get("Catch")
    entries = [raw, *(choices if isinstance(choices, list) else []), *(catchers or [])]
    found = [entry.get("Next") for entry in entries if isinstance(entry, dict)] + [raw.get("Default")]
    return [target for target in found if isinstance(target, str)]


def _check(state: State, body: Body) -> None:
    """What cannot be tested. Raises ApiError (ValidationException)."""
    mock = body.get("mock")
    for name in _UNSUPPORTED:
        if name in body:
            raise ApiError("ValidationException", f"TestState with {name} is not implemented")
    if isinstance(state, Map | Parallel):
        raise ApiError("ValidationException", f"TestState of a state of type {state.type} is not implemented")
    if mock is not None and not isinstance(state, Task):
        raise ApiError(
            "ValidationException", "A mock can only be specified for Task, Map, or Parallel states"
        )
    if mock is None and isinstance(state, Task) and waits(state.resource):
        what = "Activity" if state.resource.is_activity else f".{state.resource.pattern}"
        raise ApiError("ValidationException", f"{what} tasks are only supported when a mock is specified")
    if mock is None and body.get("roleArn") is None and isinstance(state, Task):
        raise ApiError("ValidationException", "A roleArn is required when no mock is specified")
    if body.get("roleArn") is not None:
        required(body, "roleArn")


def _mock(mock: Mapping[str, Json] | None) -> Mock | None:
    if mock is None:
        return None
    error, result = mock.get("errorOutput"), mock.get("result")
    if (error is None) is (result is None):
        raise ApiError("ValidationException", "A mock has either a result or an errorOutput")
    if result is not None:
        try:
            output = Document(from_text(result))
        except ValueError as wrong:
            raise ApiError("ValidationException", f"The mocked result is not JSON: {wrong}") from wrong
        return Mock(lambda: output)

    def refuse() -> Document:
        raise StateError((error or {}).get("error"), (error or {}).get("cause"))

    return Mock(refuse)


def _object(body: Body, name: str) -> Mapping[str, Json]:
    """A JSON object given as text. Raises ApiError."""
    try:
        value = from_text(body.get(name, "{}"))
    except ValueError as error:
        raise ApiError("ValidationException", f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ApiError("ValidationException", f"{name} has to be a JSON object")
    return value
