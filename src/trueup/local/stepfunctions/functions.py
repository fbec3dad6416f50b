"""What each intrinsic function does ([dg:intrinsic-functions]). Pure but for the chance handed in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.values import Json, from_text, is_integer, is_number, to_text

MAX_RANGE = 1_000
"""Elements that States.ArrayRange may make."""
MAX_TEXT = 10_000
"""Characters that States.Base64Encode, Base64Decode and Hash take."""

_HASHES = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}


class FunctionError(Exception):
    """The arguments are not those that the function takes."""


class Literal(str):
    """A string as written between quotes; States.Format has to see which brackets were escaped."""

    __slots__ = ("raw",)
    raw: str

    def __new__(cls, raw: str) -> Literal:
        """Take the text between the quotes, escapes and all."""
        literal = super().__new__(cls, re.sub(r"\\(['{}\\])", r"\1", raw))
        literal.raw = raw
        return literal


@dataclass(frozen=True, slots=True)
class Function:
    """A function and how many arguments it takes."""

    apply: Callable[[Chance, Sequence[Json]], Json]
    least: int
    most: int

    def takes(self) -> str:
        """The number of arguments, in words."""
        if self.least == self.most:
            return f"{self.least} argument" + ("" if self.least == 1 else "s")
        return f"{self.least} to {self.most} arguments"


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise FunctionError(f"{to_text(value)} is not an array")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise FunctionError(f"{to_text(value)} is not a string")
    return value


def _whole(value: Json) -> int:
    if is_integer(value):
        return _within(int(value))
    if is_number(value):
        # A fraction is rounded to the nearest whole number ([dg:intrinsic-functions]: States.MathAdd);
        # halves go up, as in Java.
        return _within(math.floor(value + 0.5))
    raise FunctionError(f"{to_text(value)} is not an integer")


def _within(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise FunctionError("an integer has at most 64 bits")
    return number


def _bounded(value: Json) -> str:
    text = _text(value)
    if len(text) > MAX_TEXT:
        raise FunctionError(f"the string is longer than {MAX_TEXT} characters")
    return text


def _format(_: Chance, values: Sequence[Json]) -> Json:
    template = values[0].raw if isinstance(values[0], Literal) else _text(values[0])
    parts = re.split(r"(?<!\\)\{\}", template)
    if len(parts) != len(values):
        raise FunctionError(f"the template has {len(parts) - 1} {{}} for {len(values) - 1} arguments")
    filled = [_unescape(parts[0])]
    for part, value in zip(parts[1:], values[1:], strict=True):
        filled += [_spelled(value), _unescape(part)]
    return "".join(filled)


def _spelled(value: Json) -> str:
    """A value within a text, as Java spells its collections: `[1, 2]`, `{a=1}`."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_spelled, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_spelled(item)}" for key, item in value.items()) + "}"
    return value if isinstance(value, str) else to_text(value)


def _unescape(text: str) -> str:
    return re.sub(r"\\(['{}\\])", r"\1", text)


def _string_to_json(_: Chance, values: Sequence[Json]) -> Json:
    if values[0] is None or (isinstance(values[0], str) and not values[0].strip()):
        return None  # no text is no value
    try:
        return from_text(_text(values[0]))
    except ValueError as error:
        raise FunctionError(f"the string is not JSON: {error}") from error


def _partition(_: Chance, values: Sequence[Json]) -> Json:
    array, size = _array(values[0]), _whole(values[1])
    if size <= 0:
        raise FunctionError("the chunk size has to be a positive integer")
    return [array[start : start + size] for start in range(0, len(array), size)]


def _range(_: Chance, values: Sequence[Json]) -> Json:
    first, last, step = (_whole(value) for value in values)
    if step == 0:
        raise FunctionError("the step cannot be 0")
    if (last - first) // step >= MAX_RANGE:
        raise FunctionError(f"the range has more than {MAX_RANGE} elements")
    return list(range(first, last + (1 if step > 0 else -1), step))


def _get_item(_: Chance, values: Sequence[Json]) -> Json:
    array, index = _array(values[0]), _whole(values[1])
    if not 0 <= index < len(array):
        raise FunctionError(f"the index {index} is outside of the array")
    return array[index]


def _unique(_: Chance, values: Sequence[Json]) -> Json:
    seen: dict[str, Json] = {}
    for item in _array(values[0]):
        seen.setdefault(_identity(item), item)
    return list(seen.values())


def _identity(value: Json) -> str:
    """Equal for equal JSON values, whatever the order of their keys."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_identity(value[key])}" for key in sorted(value)) + "}"
    return "[" + ",".join(map(_identity, value)) + "]" if isinstance(value, list) else to_text(value)


def _contains(_: Chance, values: Sequence[Json]) -> Json:
    wanted = _identity(values[1])
    return any(_identity(item) == wanted for item in _array(values[0]))


def _encode(_: Chance, values: Sequence[Json]) -> Json:
    return base64.b64encode(_bounded(values[0]).encode()).decode()


def _decode(_: Chance, values: Sequence[Json]) -> Json:
    try:
        return base64.b64decode(_bounded(values[0]), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise FunctionError("the string is not Base64 of text") from error


def _hash(_: Chance, values: Sequence[Json]) -> Json:
    data, algorithm = values
    if algorithm not in _HASHES:
        raise FunctionError(f"the algorithm has to be one of {', '.join(_HASHES)}")
    text = data if isinstance(data, str) else to_text(data)
    return hashlib.new(_HASHES[algorithm], _bounded(text).encode(), usedforsecurity=False).hexdigest()


def _merge(_: Chance, values: Sequence[Json]) -> Json:
    left, right, deep = values
    if not isinstance(left, dict) or not isinstance(right, dict):
        raise FunctionError("both values have to be objects")
    if deep is not False:
        raise FunctionError("only shallow merging (false) is supported, as on AWS")
    return {**left, **right}


def _random(chance: Chance, values: Sequence[Json]) -> Json:
    start, end = _whole(values[0]), _whole(values[1])
    if start >= end:
        raise FunctionError("the start has to be smaller than the end")
    return chance.between(start, end, _whole(values[2]) if len(values) == 3 else None)


def _split(_: Chance, values: Sequence[Json]) -> Json:
    text, splitters = _text(values[0]), _text(values[1])
    if not splitters:
        return [text]
    # Each character of the second argument splits; nothing stands between two of them.
    return [part for part in re.split("[" + re.escape(splitters) + "]", text) if part]


FUNCTIONS: dict[str, Function] = {
    "States.Format": Function(_format, 1, 100),
    "States.StringToJson": Function(_string_to_json, 1, 1),
    "States.JsonToString": Function(lambda _, values: to_text(values[0]), 1, 1),
    "States.Array": Function(lambda _, values: list(values), 0, 1000),
    "States.ArrayPartition": Function(_partition, 2, 2),
    "States.ArrayContains": Function(_contains, 2, 2),
    "States.ArrayRange": Function(_range, 3, 3),
    "States.ArrayGetItem": Function(_get_item, 2, 2),
    "States.ArrayLength": Function(lambda _, values: len(_array(values[0])), 1, 1),
    "States.ArrayUnique": Function(_unique, 1, 1),
    "States.Base64Encode": Function(_encode, 1, 1),
    "States.Base64Decode": Function(_decode, 1, 1),
    "States.Hash": Function(_hash, 2, 2),
    "States.JsonMerge": Function(_merge, 3, 3),
    "States.MathRandom": Function(_random, 2, 3),
    "States.MathAdd": Function(lambda _, values: _within(_whole(values[0]) + _whole(values[1])), 2, 2),
    "States.StringSplit": Function(_split, 2, 2),
    "States.UUID": Function(lambda chance, _: chance.uuid(), 0, 0),
}
