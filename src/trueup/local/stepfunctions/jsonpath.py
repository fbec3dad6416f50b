"""The query part of JSONPath (what follows the root), after Jayway's rules, which AWS uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from trueup.local.stepfunctions import jsonfilters
from trueup.local.stepfunctions.errors import Missing, OutOfBounds
from trueup.local.stepfunctions.values import Json, to_text

_NAME = re.compile(r"[^\s.\[\]()'\",]+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_INTEGER = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d*))?")


class Step(Protocol):
    """One step of a query: from one node to those that it selects."""

    def nodes(self, node: Json) -> Iterator[Json]:
        """The nodes that the step selects; none where it does not fit."""


@dataclass(frozen=True, slots=True)
class Key:
    """`.name` or `['name']`."""

    name: str

    def nodes(self, node: Json) -> Iterator[Json]:
        """The member's value."""
        if isinstance(node, dict) and self.name in node:
            yield node[self.name]

    def __str__(self) -> str:
        return f"['{self.name}']"


@dataclass(frozen=True, slots=True)
class Index:
    """`[3]`, or `[-1]` from the end."""

    position: int

    def nodes(self, node: Json) -> Iterator[Json]:
        """The element."""
        if isinstance(node, list) and -len(node) <= self.position < len(node):
            yield node[self.position]

    def __str__(self) -> str:
        return f"[{self.position}]"


@dataclass(frozen=True, slots=True)
class Union:
    """`['a','b']` or `[0,2]`."""

    parts: tuple[Key | Index, ...]

    def each(self, node: Json) -> Iterator[Json]:
        """What the parts select, one by one: within a path no object is made of them."""
        for part in self.parts:
            yield from part.nodes(node)

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts).replace("][", ",")

    def nodes(self, node: Json) -> Iterator[Json]:
        """Whichever of the parts are there; several names together select an object."""
        if isinstance(self.parts[0], Key):
            if isinstance(node, dict):
                names = [part.name for part in self.parts if isinstance(part, Key)]
                yield {name: node[name] for name in names if name in node}
            return
        for part in self.parts:
            yield from part.nodes(node)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`.*` or `[*]`."""

    def nodes(self, node: Json) -> Iterator[Json]:
        """All members or elements."""
        if isinstance(node, dict):
            yield from node.values()
        elif isinstance(node, list):
            yield from node


@dataclass(frozen=True, slots=True)
class Slice:
    """`[1:5]`."""

    bounds: slice

    def nodes(self, node: Json) -> Iterator[Json]:
        """The elements between the bounds."""
        if isinstance(node, list):
            yield from node[self.bounds]


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(@.a > 1)]`."""

    keep: jsonfilters.Predicate

    def nodes(self, node: Json) -> Iterator[Json]:
        """The elements for which the condition holds; of an object, the object itself."""
        candidates = node if isinstance(node, list) else [node]
        yield from (candidate for candidate in candidates if self.keep(candidate))


@dataclass(frozen=True, slots=True)
class Descend:
    """`..`: the node and everything below it, for the step that follows."""

    def nodes(self, node: Json) -> Iterator[Json]:
        """The node, then its descendants."""
        yield node
        for child in Wildcard().nodes(node):
            yield from self.nodes(child)


def _aggregate(_: Json) -> Json:
    """AWS parses these and finds nothing (repost.aws: "sum() function returns error …")."""
    raise Missing("Aggregation functions find nothing")


_FUNCTIONS: dict[str, Callable[[Json], Json]] = {
    "length": lambda node: len(node) if isinstance(node, (list, dict, str)) else None,
    "size": lambda node: len(node) if isinstance(node, (list, dict, str)) else None,
    "keys": lambda node: list(node) if isinstance(node, dict) else None,
    "first": lambda node: node[0] if node else None,
    "last": lambda node: node[-1] if node else None,
    "min": _aggregate,
    "max": _aggregate,
    "sum": _aggregate,
    "avg": _aggregate,
}


@dataclass(frozen=True, slots=True)
class Query:
    """The steps of a path, and the function at its end where there is one."""

    steps: tuple[Step, ...]
    function: str | None = None
    definite: bool = field(init=False)
    """Whether the path names exactly one node."""

    def __post_init__(self) -> None:
        """Look at the steps once: paths are evaluated often."""
        # Several names at the end select one object of them (Jayway: multiPropertyMergeCase).
        named = self.steps[:-1] if self.steps and _merges(self.steps[-1]) else self.steps
        definite = all(isinstance(step, Key | Index) for step in named)
        object.__setattr__(self, "definite", definite)

    def keys(self) -> tuple[str | int, ...] | None:
        """The steps as keys and indexes; None where the path is not a reference path."""
        if self.function is not None:
            return None
        keys: list[str | int] = []
        for step in self.steps:
            if not isinstance(step, Key | Index) or (isinstance(step, Index) and step.position < 0):
                return None
            keys.append(step.name if isinstance(step, Key) else step.position)
        return tuple(keys)

    def find(self, node: Json) -> Json:
        """What the query selects from a node. Raises Missing."""
        found = self._definite(node) if self.definite else self._all(node)
        return found if self.function is None else _FUNCTIONS[self.function](found)

    def _all(self, node: Json) -> list[Json]:
        nodes = [node]
        for step in self.steps[:-1]:
            select = step.each if isinstance(step, Union) else step.nodes
            nodes = [found for one in nodes for found in select(one)]
        return [found for one in nodes for step in self.steps[-1:] for found in step.nodes(one)]

    def _definite(self, node: Json) -> Json:
        for depth, step in enumerate(self.steps):
            if isinstance(step, Key):
                if not isinstance(node, dict) or step.name not in node:
                    raise self._missing(depth, node)
                node = node[step.name]
            else:
                found = next(step.nodes(node), _NOTHING)
                if found is _NOTHING:
                    raise self._missing(depth, node) if _merges(step) else self._no_element(depth, node)
                node = found
        return node

    def _no_element(self, depth: int, node: Json) -> Missing:
        if node is None:
            return Missing(f"The path {self._upto(depth)} is null")
        if not isinstance(node, list):
            told = f"Filter: {self.steps[depth]} can only be applied to arrays."
            return Missing(f"{told} Current context is: {to_text(node)}")
        kind = OutOfBounds if depth == len(self.steps) - 1 else Missing
        return kind(f"Index out of bounds when evaluating path {self._upto(depth + 1)}")

    def _missing(self, depth: int, node: Json) -> Missing:
        if depth == len(self.steps) - 1 or not isinstance(node, dict):
            return Missing(f"No results for path: {self._upto(len(self.steps))}")
        return Missing(f"Missing property in path {self._upto(depth + 1)}")

    def _upto(self, depth: int) -> str:
        return "$" + "".join(str(step) for step in self.steps[:depth])


_NOTHING = object()


def _merges(step: Step) -> bool:
    return isinstance(step, Union) and isinstance(step.parts[0], Key)


def parse(text: str) -> Query:
    """Parse the part of a path that follows its root. Raises ValueError."""
    steps: list[Step] = []
    position, function = 0, None
    while position < len(text):
        if function is not None:
            raise ValueError(f"nothing may follow the function {function}()")
        if text.startswith("[", position):
            step, position = _bracket(text, position)
            steps.append(step)
        elif text.startswith(".", position):
            position, function = _dotted(text, position, steps)
        else:
            raise ValueError(f"{text[position:]!r} is neither a .name nor a [bracket]")
    return Query(tuple(steps), function)


def _dotted(text: str, position: int, steps: list[Step]) -> tuple[int, str | None]:
    position += 1
    if text.startswith(".", position):
        steps.append(Descend())
        position += 1
    if text.startswith("[", position):
        return position, None  # `$.['a']` is `$['a']`
    if text.startswith("*", position):
        steps.append(Wildcard())
        return position + 1, None
    name = _NAME.match(text, position)
    if name is None:
        raise ValueError("a name has to follow the dot")
    if text.startswith("()", name.end()):
        return name.end() + 2, _known_function(name[0])
    steps.append(Key(name[0]))
    return name.end(), None


def _known_function(name: str) -> str:
    if name not in _FUNCTIONS:
        raise ValueError(f"the function {name}() is not known; known are {', '.join(_FUNCTIONS)}")
    return name


def _bracket(text: str, position: int) -> tuple[Step, int]:
    if text.startswith("[*]", position):
        return Wildcard(), position + 3
    if text.startswith("[?(", position):
        keep, position = jsonfilters.parse(text, position + 3, _relative)
        return Filter(keep), _expect(text, position, ")]")
    bounds = _SLICE.match(text, position + 1)
    if bounds is not None:
        numbers = (int(part) if part else None for part in bounds.groups())
        return Slice(slice(*numbers)), _expect(text, bounds.end(), "]")
    return _union(text, position + 1)


def _union(text: str, position: int) -> tuple[Step, int]:
    parts: list[Key | Index] = []
    while True:
        part, position = _part(text, position)
        parts.append(part)
        if not text.startswith(",", position):
            break
        position = _skip(text, position + 1)
    if len({type(part) for part in parts}) > 1:
        raise ValueError("names and indexes cannot be mixed in one bracket")
    return parts[0] if len(parts) == 1 else Union(tuple(parts)), _expect(text, position, "]")


def _part(text: str, position: int) -> tuple[Key | Index, int]:
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        name = quoted[1] if quoted[1] is not None else quoted[2]
        return Key(re.sub(r"\\(.)", r"\1", name)), _skip(text, quoted.end())
    number = _INTEGER.match(text, position)
    if number is None:
        raise ValueError("a bracket holds a quoted name, an index, a slice, * or ?( a filter )")
    return Index(int(number[0])), _skip(text, number.end())


def _skip(text: str, position: int) -> int:
    while text.startswith(" ", position):
        position += 1
    return position


def _expect(text: str, position: int, token: str) -> int:
    position = _skip(text, position)
    if not text.startswith(token, position):
        raise ValueError(f"{token!r} is missing in {text!r}")
    return position + len(token)


def _relative(text: str) -> Query:
    return parse(text)
