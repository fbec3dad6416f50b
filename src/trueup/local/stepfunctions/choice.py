"""Choice rules: every comparison of the language, compiled to a predicate.

A comparison with a value of another type is false (recorded on AWS: choice_operators); a Variable or
`…Path` operand that is not there fails the state.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from trueup.local.stepfunctions.errors import EvaluationError, Missing
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.regexes import has_open_escape, wildcards
from trueup.local.stepfunctions.scope import Scope
from trueup.local.stepfunctions.timestamps import parse_timestamp
from trueup.local.stepfunctions.values import Json, is_number

Predicate = Callable[[Scope], bool]
Compare = Callable[[Json, Json], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of comparisons: what its operands are read as, and what the definition may hold."""

    name: str
    read: Callable[[Json], Json]
    """The comparable value; None for a value of another type."""
    refusal: str
    """What is said of a constant of another type."""


def _text(value: Json) -> Json:
    """What texts are ordered by: UTF-16 code units, as Java's are."""
    return value.encode("utf-16-be") if isinstance(value, str) else None


def _number(value: Json) -> Json:
    return value if is_number(value) else None


def _boolean(value: Json) -> Json:
    return value if isinstance(value, bool) else None


STRING = Kind("String", _text, "Expected value of type String")
NUMERIC = Kind("Numeric", _number, "Expected value of type Number")
BOOLEAN = Kind("Boolean", _boolean, "Expected value of type Boolean")
TIMESTAMP = Kind("Timestamp", parse_timestamp, "String does not match RFC3339 timestamp")

_ORDERS: dict[str, Compare] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}

COMPARISONS: dict[str, tuple[Kind, Compare]] = {
    f"{kind.name}{name}": (kind, compare)
    for kind in (STRING, NUMERIC, TIMESTAMP)
    for name, compare in _ORDERS.items()
} | {"BooleanEquals": (BOOLEAN, operator.eq)}
"""By operator; each has a `…Path` twin."""

TYPE_TESTS: dict[str, Callable[[Json], bool]] = {
    "IsNull": lambda value: value is None,
    "IsString": lambda value: isinstance(value, str),
    "IsNumeric": is_number,
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: parse_timestamp(value) is not None,
}

OPERATORS = [
    *COMPARISONS,
    *(f"{name}Path" for name in COMPARISONS),
    "StringMatches",
    *TYPE_TESTS,
    "IsPresent",
]


def _get(path: Path, scope: Scope) -> Json:
    try:
        return path.find(scope)
    except Missing as missing:
        raise EvaluationError(
            f"Invalid path '{path.text}': The choice state's condition path references an invalid value."
        ) from missing


def compare_value(variable: Path, name: str, wanted: Json) -> Predicate:
    """`NumericEquals: 3` and its like. `wanted` has been checked to be of the operator's kind."""
    kind, compare = COMPARISONS[name]
    constant = kind.read(wanted)

    def holds(scope: Scope) -> bool:
        value = kind.read(_get(variable, scope))
        return value is not None and compare(value, constant)

    return holds


def compare_path(variable: Path, name: str, other: Path) -> Predicate:
    """`NumericEqualsPath: $.limit` and its like. `name` is the operator without Path."""
    kind, compare = COMPARISONS[name]

    def holds(scope: Scope) -> bool:
        left, right = kind.read(_get(variable, scope)), kind.read(_get(other, scope))
        return left is not None and right is not None and compare(left, right)

    return holds


def matches(variable: Path, pattern: str) -> Predicate:
    """`StringMatches`."""
    test = wildcards(pattern)
    open_escape = has_open_escape(pattern)

    def holds(scope: Scope) -> bool:
        value = _get(variable, scope)
        if open_escape:  # "the interpreter will throw a runtime error" (the language's specification)
            raise EvaluationError(f"StringMatches '{pattern}' has a backslash before neither * nor \\")
        return isinstance(value, str) and test(value)

    return holds


def has_type(variable: Path, name: str, wanted: bool) -> Predicate:
    """`IsNull: true` and its like."""
    test = TYPE_TESTS[name]
    return lambda scope: test(_get(variable, scope)) is wanted


def is_present(variable: Path, wanted: bool) -> Predicate:
    """`IsPresent`: the one test that a missing path does not fail."""

    def holds(scope: Scope) -> bool:
        try:
            found = variable.find(scope)
        except Missing:
            return not wanted
        return (variable.query.definite or bool(found)) is wanted

    return holds


def all_of(parts: list[Predicate]) -> Predicate:
    """`And`."""
    return lambda scope: all(part(scope) for part in parts)


def any_of(parts: list[Predicate]) -> Predicate:
    """`Or`."""
    return lambda scope: any(part(scope) for part in parts)


def negated(part: Predicate) -> Predicate:
    """`Not`."""
    return lambda scope: not part(scope)
