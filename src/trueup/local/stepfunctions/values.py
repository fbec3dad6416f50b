"""JSON values and their text: what travels between states, and how large it may be.

A value is never changed in place: states share them, and build new ones along the path that they change.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

Json: TypeAlias = Any

MAX_DATA = 262_144
"""Bytes (UTF-8) of an input or output: aws-facts section 1.1 [dg:service-quotas]."""

MAX_DEPTH = 200
"""How deep arrays and objects may be nested: what walks through a value calls itself for each level."""

_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_MANY_DIGITS = re.compile(r"[0-9]{309}")
"""More than those of the largest number that a double holds."""
_TOLD = 40
"""Characters of a number that a refusal repeats."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def to_text(value: Json) -> str:
    """The JSON text of a value as AWS writes it: no spaces, keys in their order, characters as they are."""
    return _encode(value)


def from_text(text: str | bytes, *, unique: bool = False) -> Json:
    """The value of a JSON text: the one place where values come in.

    Raises ValueError for what is not JSON, NaN and Infinity among it, and for what cannot go out again:
    numbers that no double holds, half of a surrogate pair, nesting beyond MAX_DEPTH.
    `unique` refuses an object that has a name twice, of which the last one would count.
    """
    text = _decoded(text) if isinstance(text, bytes) else text
    if text.startswith("\ufeff"):
        raise ValueError("the text begins with a byte order mark, which is not JSON")
    try:
        value = json.loads(
            text,
            parse_float=finite,
            # A function for each whole number takes time, which only texts with very long ones cost.
            parse_int=_whole if _MANY_DIGITS.search(text) else None,
            parse_constant=_no_constant,
            object_pairs_hook=_unique if unique else None,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if too_deep(value, text):
        raise ValueError(_TOO_DEEP)
    if _HALF_A_PAIR.search(text):
        _check_pairs(value)
    return value


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not UTF-8, from byte {error.start} on") from error


_TOO_DEEP = f"arrays and objects are nested more than {MAX_DEPTH} deep"


def too_deep(value: Json, text: str) -> bool:
    """Whether a value, of which this is the text, is nested deeper than MAX_DEPTH."""
    # Nothing is nested deeper than it has brackets, so that most texts need no walk through the value.
    return text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, (dict, list))]:
        depth += 1
        level = [inner for each in level for inner in _members(each)]
    return depth


def _members(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value


def _check_pairs(value: Json) -> None:
    try:
        to_text(value).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a string has half of a surrogate pair, which no UTF-8 can carry") from error


def finite(digits: str) -> float:
    """A number with a fraction or an exponent. Raises ValueError for one that no double holds."""
    number = float(digits)
    if not math.isfinite(number):
        told = digits if len(digits) <= _TOLD else f"{digits[:_TOLD]}… ({len(digits)} characters)"
        raise ValueError(f"{told} is larger than any number here")
    return number


def _whole(digits: str) -> int:
    finite(digits)
    return int(digits)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Duplicate field '{twice}'")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def too_large(text: str) -> bool:
    """Whether a text has more bytes than a state may hand on."""
    # One character is at most four bytes, so that most texts need no counting.
    return len(text) * 4 > MAX_DATA and len(text.encode()) > MAX_DATA


def is_number(value: Json) -> bool:
    """Whether a value is a JSON number; Python counts booleans among integers, JSON does not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Json) -> bool:
    """Whether a value is a whole JSON number."""
    return isinstance(value, int) and not isinstance(value, bool)


class Document:
    """A value on its way between two states, with its text made once, when somebody asks for it."""

    __slots__ = ("_text", "value")

    def __init__(self, value: Json, text: str | None = None) -> None:
        self.value = value
        self._text = text

    @property
    def text(self) -> str:
        """The JSON text; an execution's input keeps the very text that it was started with."""
        if self._text is None:
            self._text = to_text(self.value)
        return self._text


EMPTY: dict[str, Json] = {}
"""What a path of null selects."""
