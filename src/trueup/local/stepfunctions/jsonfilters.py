"""Conditions of JSONPath filters: `@.price < 10 && (@.kind == 'book' || !@.hidden)`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Protocol

from trueup.local.stepfunctions.errors import Missing
from trueup.local.stepfunctions.regexes import regular
from trueup.local.stepfunctions.values import Json, is_number

Predicate = Callable[[Json], bool]
_Operand = Callable[[Json], Json]

_NOTHING = object()
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>|=~|(?:in|nin|contains|size|empty)\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_REGEX = re.compile(r"/((?:[^/\\]|\\.)*)/([imsx]*)")
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_PATH = re.compile(r"@(?:\.[A-Za-z0-9_-]+|\[(?:\d+|'[^']*')\])*")
_WORDS = {"true": True, "false": False, "null": None}


class Query(Protocol):
    """A path relative to the element under test."""

    def find(self, node: Json) -> Json:
        """What the path selects."""


def parse(text: str, position: int, path: Callable[[str], Query]) -> tuple[Predicate, int]:
    """Parse a condition up to its closing bracket: the predicate, and where it ends. Raises ValueError."""
    parser = _Parser(text, position, path)
    return parser.alternatives(), parser.position


class _Parser:
    def __init__(self, text: str, position: int, path: Callable[[str], Query]) -> None:
        self.text = text
        self.position = position
        self._path = path

    def alternatives(self) -> Predicate:
        parts = [self._conjunction()]
        while self._take("||"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda node: any(part(node) for part in parts)

    def _conjunction(self) -> Predicate:
        parts = [self._term()]
        while self._take("&&"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else lambda node: all(part(node) for part in parts)

    def _term(self) -> Predicate:
        if self._take("!"):
            inner = self._term()
            return lambda node: not inner(node)
        if self._take("("):
            inner = self.alternatives()
            if not self._take(")"):
                raise ValueError("a bracket of the filter is not closed")
            return inner
        return self._comparison()

    def _comparison(self) -> Predicate:
        left = self._operand()
        found = self._match(_OPERATOR)
        if found is None:
            return lambda node: left(node) is not _NOTHING
        if found[0] == "=~":
            return self._matching(left)
        right = self._operand()
        compare = _COMPARISONS[found[0]]
        return lambda node: compare(left(node), right(node))

    def _matching(self, left: _Operand) -> Predicate:
        found = self._match(_REGEX)
        if found is None:
            raise ValueError("=~ takes a /regular expression/")
        flags = sum(_FLAGS[flag] for flag in set(found[2]))
        test = regular(found[1], flags)

        def matches(node: Json) -> bool:
            value = left(node)
            return isinstance(value, str) and test(value)

        return matches

    def _operand(self) -> _Operand:
        found = self._match(_PATH)
        if found is not None:
            return _reading(self._path(found[0][1:]))
        value = self._literal()
        return lambda _: value

    def _literal(self) -> Json:
        found = self._match(_STRING)
        if found is not None:
            return found[1] if found[1] is not None else found[2]
        found = self._match(_NUMBER)
        if found is not None:
            return float(found[0]) if any(c in found[0] for c in ".eE") else int(found[0])
        for word, value in _WORDS.items():
            if self._take(word):
                return value
        if self._take("["):
            return self._list()
        raise ValueError(f"the filter cannot be read from {self.text[self.position :]!r}")

    def _list(self) -> list[Json]:
        items: list[Json] = []
        while not self._take("]"):
            items.append(self._literal())
            if not self._take(",") and self.text[self.position : self.position + 1] != "]":
                raise ValueError(f"a list of the filter is not closed: {self.text!r}")
        return items

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self._skip()
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def _take(self, token: str) -> bool:
        self._skip()
        if not self.text.startswith(token, self.position) or self.text.startswith("!=", self.position):
            return False
        self.position += len(token)
        return True

    def _skip(self) -> None:
        while self.text.startswith(" ", self.position):
            self.position += 1


def _reading(query: Query) -> _Operand:
    def read(node: Json) -> Json:
        try:
            return query.find(node)
        except Missing:
            return _NOTHING

    return read


def _ordered(compare: Callable[[Json, Json], bool]) -> Callable[[Json, Json], bool]:
    def both(left: Json, right: Json) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        return is_number(left) and is_number(right) and compare(left, right)

    return both


def _equal(left: Json, right: Json) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _among(left: Json, right: Json) -> bool:
    return isinstance(right, list) and any(_equal(left, item) for item in right)


def _contains(left: Json, right: Json) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    return _among(right, left)


def _has_size(left: Json, right: Json) -> bool:
    return isinstance(left, (str, list)) and len(left) == right


_COMPARISONS: dict[str, Callable[[Json, Json], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _among,
    "nin": lambda left, right: left is not _NOTHING and not _among(left, right),
    "contains": _contains,
    "size": _has_size,
    "empty": lambda left, right: isinstance(left, (str, list)) and (not left) is right,
}
