"""Checks of a request against the service's own model, before the operation sees it.

What is missing, too long, out of range or not among the values is told in the words of AWS's front end:
`1 validation error detected: Value null at 'name' failed to satisfy constraint: Member must not be null`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.shapes import Shape
from trueup.local.stepfunctions.values import Json, is_integer, is_number, to_text

_KINDS: Mapping[str, tuple[Callable[[Json], bool], str]] = {
    "string": (lambda value: isinstance(value, str), "String"),
    "boolean": (lambda value: isinstance(value, bool), "Boolean"),
    "integer": (is_integer, "Integer"),
    "long": (is_integer, "Long"),
    "float": (is_number, "Float"),
    "double": (is_number, "Double"),
    "list": (lambda value: isinstance(value, list), "List"),
    "structure": (lambda value: isinstance(value, dict), "Structure"),
}
_LATER = ("definition", "nextToken", "resourceArn")
"""What the operations themselves check, under names of errors of their own."""


def check_request(operation: str, body: Json) -> None:
    """Raises ApiError: SerializationException for a wrong type, ValidationException with all the rest."""
    shape = shapes.operation("stepfunctions", operation).input_shape
    if shape is None:
        return
    problems = list(_structure(shape, body, ""))
    if problems:
        count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: "
        raise ApiError("ValidationException", count + "; ".join(problems))


def _structure(shape: Shape, value: Json, where: str) -> Iterator[str]:
    for name, member in shape.members.items():
        place = f"{where}.{name}" if where else name
        given = value.get(name)
        if given is None:
            if name in shape.required_members:
                yield f"Value null at '{place}' failed to satisfy constraint: Member must not be null"
        elif name not in _LATER:
            yield from _value(member, given, place)


def _value(shape: Shape, value: Json, where: str) -> Iterator[str]:
    fits, kind = _KINDS[shape.type_name]
    if not fits(value):
        raise ApiError("SerializationException", f"{to_text(value)[:100]} at '{where}' is not of type {kind}")
    for constraint in _broken(shape, value):
        told = (
            ""
            if shape.metadata.get("sensitive")
            else f" '{value if isinstance(value, str) else to_text(value)}'"
        )
        yield f"Value{told} at '{where}' failed to satisfy constraint: Member must {constraint}"
    if shape.type_name == "structure":
        yield from _structure(shape, value, where)
    elif shape.type_name == "list":
        for index, item in enumerate(value, 1):
            yield from _value(shape.member, item, f"{where}.{index}.member")


def _broken(shape: Shape, value: Json) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    sized = isinstance(value, (str, list))
    size, noun = (len(value), "length") if sized else (value, "value")
    if least is not None and size < least:
        yield f"have {noun} greater than or equal to {least}"
    if most is not None and size > most:
        yield f"have {noun} less than or equal to {most}"
    choices = getattr(shape, "enum", None)
    if choices and value not in choices:
        yield f"satisfy enum value set: [{', '.join(choices)}]"
    pattern = shape.metadata.get("pattern")
    if pattern and not _compiled(pattern).fullmatch(value):
        yield f"satisfy regular expression pattern: {pattern}"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(r"\p{ASCII}", r"[\x00-\x7f]"))
