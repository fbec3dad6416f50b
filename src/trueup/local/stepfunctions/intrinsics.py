"""Intrinsic functions: `States.Format('{} of {}', $.done, $.all)`, parsed when the machine is created.

Arguments are strings in single quotes, numbers, true, false, null, paths, and further functions
([dg:intrinsic-functions]). What each function does is in `functions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from trueup.local.stepfunctions.errors import EvaluationError, Missing
from trueup.local.stepfunctions.functions import FUNCTIONS, FunctionError, Literal
from trueup.local.stepfunctions.paths import Path, parse_path
from trueup.local.stepfunctions.scope import Scope
from trueup.local.stepfunctions.values import Json, finite, to_text

_NAME = re.compile(r"\s*(States\.\w+)\s*\(")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_OPEN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[^'{}\\]")
"""A backslash that escapes nothing ([dg:intrinsic-functions], reserved characters)."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PATH = re.compile(
    r"\$(?:[^\[\](),\s]|\[(?:'[^']*'|\"[^\"]*\"|\?\((?:[^()]|\([^()]*\))*\)|[^\]'\"?])*\]|\(\))*"
)
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}

MAX_DEPTH = 10
"""How deep functions may be nested ([dg:intrinsic-functions])."""

Argument = Callable[[Scope], Json]


class _MissingArgument(Exception):
    """A path among the arguments finds nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.text)
        self.path = path


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    text: str
    name: str
    arguments: tuple[Argument, ...]

    def evaluate(self, scope: Scope) -> Json:
        """What the function gives. Raises EvaluationError: States.IntrinsicFailure, or States.Runtime where
        an argument's path finds nothing.
        """
        try:
            values = [argument(scope) for argument in self.arguments]
        except _MissingArgument as missing:
            seen = to_text(missing.path.start(scope))
            raise EvaluationError(
                f"The function '{self.text}' had the following error: The JsonPath argument for the field "
                f"'{missing.path.text}' could not be found in the input '{seen}'"
            ) from missing
        try:
            return FUNCTIONS[self.name].apply(scope.chance, values)
        except FunctionError as error:
            raise EvaluationError(
                f"The function '{self.text}' had the following error: {error}",
                error="States.IntrinsicFailure",
            ) from error


def is_call(text: str) -> bool:
    """Whether a text is written as a function."""
    return text.lstrip().startswith("States.")


def parse_call(text: str) -> Call:
    """Parse a function with everything in it. Raises ValueError with what is wrong."""
    call, end = _call(text, 0, 1)
    if text[end:].strip():
        raise ValueError(f"{text[end:].strip()!r} follows the end of the function")
    return call


def _call(text: str, start: int, depth: int) -> tuple[Call, int]:
    head = _NAME.match(text, start)
    if head is None or head[1] not in FUNCTIONS:
        named = head[1] if head else text[start:]
        raise ValueError(f"{named} is not an intrinsic function; known are {', '.join(FUNCTIONS)}")
    if depth > MAX_DEPTH:
        raise ValueError(f"functions are nested more than {MAX_DEPTH} deep")
    arguments, end = _arguments(text, head.end(), depth)
    _check_count(head[1], len(arguments))
    return Call(text[start:end].strip(), head[1], tuple(arguments)), end


def _check_count(name: str, count: int) -> None:
    function = FUNCTIONS[name]
    if not function.least <= count <= function.most:
        raise ValueError(f"{name} takes {function.takes()}, not {count}")


def _arguments(text: str, position: int, depth: int) -> tuple[list[Argument], int]:
    arguments: list[Argument] = []
    position = _skip(text, position)
    if text.startswith(")", position):
        return arguments, position + 1
    while True:
        argument, position = _argument(text, position, depth)
        arguments.append(argument)
        position = _skip(text, position)
        if text.startswith(")", position):
            return arguments, position + 1
        if not text.startswith(",", position):
            raise ValueError(f"a comma or a closing bracket is missing at {text[position:]!r}")
        position = _skip(text, position + 1)


def _argument(text: str, position: int, depth: int) -> tuple[Argument, int]:
    if text.startswith("States.", position):
        call, end = _call(text, position, depth + 1)
        return call.evaluate, end
    path = _PATH.match(text, position)
    if path is not None:
        return _reader(parse_path(path[0])), path.end()
    value, end = _literal(text, position)
    return (lambda _: value), end


def _literal(text: str, position: int) -> tuple[Json, int]:
    string = _STRING.match(text, position)
    if string is not None:
        if _OPEN_ESCAPE.search(string[1]):
            raise ValueError(f"{string[0]}: a backslash stands before ', {{, }} and \\ alone")
        return Literal(string[1]), string.end()
    number = _NUMBER.match(text, position)
    if number is not None:
        whole = not any(character in number[0] for character in ".eE")
        return int(number[0]) if whole else finite(number[0]), number.end()
    for word, value in _WORDS.items():
        if text.startswith(word, position):
            return value, position + len(word)
    raise ValueError(f"{text[position:]!r} is not an argument: write strings in single quotes")


def _reader(path: Path) -> Argument:
    def read(scope: Scope) -> Json:
        try:
            return path.find(scope)
        except Missing as missing:
            raise _MissingArgument(path) from missing

    return read


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
