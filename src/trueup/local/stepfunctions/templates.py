"""Payload templates: Parameters, ItemSelector, ResultSelector, Assign. Compiled once, rendered often.

A field whose name ends in `.$` holds a path or an intrinsic function; everything else stands for itself.
What stands for itself comes first and in its order, what is evaluated after it and in a HashMap's
(recorded on AWS: test_query_context_object_values, test_result_selector, test_dynamodb_put_update_get_item).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trueup.local.stepfunctions.errors import Missing, OutOfBounds
from trueup.local.stepfunctions.hash_order import hash_order
from trueup.local.stepfunctions.intrinsics import is_call, parse_call
from trueup.local.stepfunctions.paths import Path, parse_path
from trueup.local.stepfunctions.scope import Scope
from trueup.local.stepfunctions.values import Json

Render = Callable[[Scope], Json]


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. `source` is what the definition says."""

    source: Json
    render: Render


class TemplateError(ValueError):
    """A field of a template cannot be read. `location` points to the object that it is in, within the
    template: so AWS places it (aws-cloudformation/cfn-lint#4085)."""

    def __init__(self, message: str, location: str) -> None:
        super().__init__(message)
        self.location = location


def parse_template(source: Json) -> Template:
    """Compile a template. Raises TemplateError."""
    return Template(source, _compile(source, ""))


def _compile(source: Json, location: str) -> Render:
    if isinstance(source, dict):
        return _object(source, location)
    if isinstance(source, list):
        return _array(source, location)
    return _constant(source)


def _constant(value: Json) -> Render:
    return lambda _: value


def _array(source: list[Json], location: str) -> Render:
    if not has_expressions(source):
        return _constant(source)
    items = [_compile(item, f"{location}[{index}]") for index, item in enumerate(source)]
    return lambda scope: [item(scope) for item in items]


def _object(source: dict[str, Json], location: str) -> Render:
    if not has_expressions(source):
        return _constant(source)
    members: dict[str, Render] = {}
    for key, value in source.items():
        if key.endswith(".$"):
            if key[:-2] in source:
                raise TemplateError(f"'{key[:-2]}' is given beside '{key}'", location)
            members[key[:-2]] = _expression(key, value, location)
        else:
            members[key] = _compile(value, f"{location}/{key}")
    order = [key for key in members if key in source]
    order += hash_order(key for key in members if key not in source)

    def render(scope: Scope) -> Json:
        # Evaluated as written, so that the first of several that find nothing is the one that is told.
        found = {key: member(scope) for key, member in members.items()}
        return {key: found[key] for key in order}

    return render


def has_expressions(source: Json) -> bool:
    """Whether anything in a template has to be evaluated."""
    if isinstance(source, dict):
        return any(key.endswith(".$") or has_expressions(value) for key, value in source.items())
    return isinstance(source, list) and any(has_expressions(item) for item in source)


def _expression(key: str, value: Json, location: str) -> Render:
    if not isinstance(value, str):
        raise TemplateError(_WANTED.format(key=key), location)
    try:
        if is_call(value):
            return parse_call(value).evaluate
        path = parse_path(value)
    except ValueError as error:
        raise TemplateError(_WANTED.format(key=key), location) from error
    return lambda scope: _read(path, scope, key)


def _read(path: Path, scope: Scope, key: str) -> Json:
    """What a path selects. Past the end of an array there is null (measured on AWS: floci-io/floci#3167);
    anything else that is not there is an error.
    """
    try:
        return path.find(scope)
    except OutOfBounds:
        return None
    except Missing:
        return path.require(scope, key)


_WANTED = "The value for the field '{key}' must be a valid JSONPath or a valid intrinsic function call"
