"""One function per type of state."""

from __future__ import annotations

from collections.abc import Callable

from trueup.local.stepfunctions.model import (
    WHOLE,
    Fail,
    Parallel,
    Pass,
    State,
    Succeed,
    Wait,
    Workflow,
)
from trueup.local.stepfunctions.parsing.choices import parse_choice
from trueup.local.stepfunctions.parsing.failing import MAX_SECONDS, parse_catch, parse_retry
from trueup.local.stepfunctions.parsing.fields import SCHEMA, Fields
from trueup.local.stepfunctions.parsing.maps import parse_map
from trueup.local.stepfunctions.parsing.tasks import parse_task
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.timestamps import NANOS, parse_timestamp
from trueup.local.stepfunctions.values import Document, Json

TYPES = ("Pass", "Task", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map")
_JSONATA = ("Arguments", "Output", "Items")
_MAX_NAME = 80

ParseWorkflow = Callable[[Fields], Workflow]


def parse_state(name: str, fields: Fields, workflow: ParseWorkflow) -> State:
    """A state of any type, with all its problems noted."""
    kind = fields.text("Type", required=True)
    if kind not in TYPES:
        if kind is not None:
            fields.problem(SCHEMA, f"Type has to be one of {', '.join(TYPES)}", "Type")
        fields.forget()
        return Succeed(name=name)
    fields.owner = f"State '{name}' ({kind})"
    if len(name) > _MAX_NAME:
        fields.problem(SCHEMA, f"A state's name has at most {_MAX_NAME} characters")
    _refuse_jsonata(fields)
    state = _PARSERS[kind](name, fields, workflow)
    fields.finish()
    return state


def _refuse_jsonata(fields: Fields) -> None:
    fields.one_of("QueryLanguage", ("JSONPath",), "JSONPath")
    for field in _JSONATA:
        if fields.pop(field):
            # AWS's own words (measured: floci-io/floci#2968).
            fields.problem(
                SCHEMA,
                f"The QueryLanguage is set to 'JSONPath', but field '{field}' is only supported for the "
                "'JSONata' QueryLanguage",
            )


def _paths(name: str, fields: Fields) -> dict[str, Json]:
    return {
        "name": name,
        "input_path": fields.selector("InputPath", WHOLE),
        "output_path": fields.selector("OutputPath", WHOLE),
    }


def _moving(name: str, fields: Fields) -> dict[str, Json]:
    """The fields of states that go on to one other state, or end."""
    next_state, end = fields.text("Next"), fields.boolean("End")
    if bool(next_state) is end:
        fields.problem(SCHEMA, f"{fields.owner}: either Next or End: true is required")
    return {**_paths(name, fields), "next": next_state or None, "assign": fields.template("Assign")}


def _working(name: str, fields: Fields) -> dict[str, Json]:
    return {
        **_moving(name, fields),
        "parameters": fields.template("Parameters"),
        "result_path": fields.reference("ResultPath"),
    }


def _fallible(name: str, fields: Fields) -> dict[str, Json]:
    return {
        **_working(name, fields),
        "result_selector": fields.template("ResultSelector"),
        "retry": parse_retry(fields),
        "catch": parse_catch(fields),
    }


def _pass(name: str, fields: Fields, _: ParseWorkflow) -> State:
    result = Document(fields.raw["Result"]) if fields.has("Result") else None
    return Pass(**_working(name, fields), result=result)


def _succeed(name: str, fields: Fields, _: ParseWorkflow) -> State:
    return Succeed(**_paths(name, fields))


def _fail(name: str, fields: Fields, _: ParseWorkflow) -> State:
    fields.exclusive("Error", "ErrorPath")
    fields.exclusive("Cause", "CausePath")
    return Fail(
        name=name,
        error=fields.expression("ErrorPath") or fields.text("Error"),
        cause=fields.expression("CausePath") or fields.text("Cause"),
    )


def _wait(name: str, fields: Fields, _: ParseWorkflow) -> State:
    names = ("Seconds", "SecondsPath", "Timestamp", "TimestampPath")
    if sum(fields.has(field) for field in names) != 1:
        fields.problem(SCHEMA, f"{fields.owner}: exactly one of {', '.join(names)} is required")
    seconds: float | Path | None = fields.path("SecondsPath")
    if seconds is None:
        seconds = fields.integer("Seconds", 0, MAX_SECONDS)
    until: float | Path | None = fields.path("TimestampPath")
    return Wait(**_moving(name, fields), seconds=seconds, until=_moment(fields) if until is None else until)


def _moment(fields: Fields) -> float | None:
    text = fields.text("Timestamp")
    moment = parse_timestamp(text)
    if text is not None and moment is None:
        # AWS's own words (recorded: test_wait_timestamp_invalid).
        fields.problem(SCHEMA, "String does not match RFC3339 timestamp", "Timestamp")
    return None if moment is None else moment / NANOS


def _choice(name: str, fields: Fields, _: ParseWorkflow) -> State:
    return parse_choice(fields, {**_paths(name, fields), "assign": fields.template("Assign")})


def _task(name: str, fields: Fields, _: ParseWorkflow) -> State:
    return parse_task(fields, _fallible(name, fields))


def _parallel(name: str, fields: Fields, workflow: ParseWorkflow) -> State:
    branches = [
        workflow(
            Fields(raw, f"{fields.location}/Branches[{index}]", fields.problems, f"{fields.owner}, a branch")
        )
        for index, raw in enumerate(fields.list("Branches", required=True))
    ]
    return Parallel(**_fallible(name, fields), branches=tuple(branches))


def _map(name: str, fields: Fields, workflow: ParseWorkflow) -> State:
    return parse_map(fields, _fallible(name, fields), workflow)


_PARSERS: dict[str, Callable[[str, Fields, ParseWorkflow], State]] = {
    "Pass": _pass,
    "Task": _task,
    "Choice": _choice,
    "Wait": _wait,
    "Succeed": _succeed,
    "Fail": _fail,
    "Parallel": _parallel,
    "Map": _map,
}
