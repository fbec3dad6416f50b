"""Whether what came from an address is what the API answers there, by its OpenAPI document.

Only what commands rely on is checked: kinds of values, and what has to be there. Names and states that this
version does not know pass, so that an older command line can speak to a newer API.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_MOST = 2**53 - 1

Schema = Mapping[str, Any]


@cache
def _described() -> dict[str, Any]:
    text = files("trueup").joinpath("handling/api/openapi.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def what_is_wrong(method: str, path: str, status: int, document: Any) -> str | None:
    """What is not as described in an answer, in a few words; None where all is well."""
    schema = _schema(method, path, status)
    if schema is None:
        return f"{status}, which it has no reason to"
    return next(_wrong(document, schema, ""), None)


def _schema(method: str, path: str, status: int) -> Schema | None:
    for template, operations in _described()["paths"].items():
        if _fits(path, template) and method.lower() in operations:
            answer = operations[method.lower()]["responses"].get(str(status))
            return answer["content"]["application/json"]["schema"] if answer else None
    raise AssertionError(f"no route of the API is {method} {path}")


def _fits(path: str, template: str) -> bool:
    parts, wanted = path.split("/"), template.split("/")
    return len(parts) == len(wanted) and all(
        part == want or want.startswith("{") for part, want in zip(parts, wanted, strict=True)
    )


def _wrong(value: Any, schema: Schema, where: str) -> Iterator[str]:
    """Each thing that is wrong with a value, or with what is in it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from _wrong(value, _described()["components"]["schemas"][name], where)
    elif "anyOf" in schema:
        each = [list(_wrong(value, one, where)) for one in schema["anyOf"]]
        if all(each):
            yield each[0][0]
    elif (kind := schema.get("type")) and not _KINDS[kind](value):
        yield f"something whose {where!r} is no {kind}" if where else f"what is no {kind}"
    elif isinstance(value, dict):
        yield from _wrong_within(value, schema, where)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _wrong(one, schema.get("items", {}), f"{where}[{number}]")


def _wrong_within(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"something without {_inside(where, name)!r}"
    rest = schema.get("additionalProperties")
    for name, one in value.items():
        if name in known:
            yield from _wrong(one, known[name], _inside(where, name))
        elif isinstance(rest, dict):
            yield from _wrong(one, rest, _inside(where, name))


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _MOST if isinstance(value, int) else math.isfinite(value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
}
