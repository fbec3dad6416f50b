"""What counts as the same value: looked at only where the bytes of two fields differ."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from trueup.compare.findings import Difference
from trueup.compare.layout import Layout
from trueup.compare.lines import ABSENT, NULL, UNREADABLE, unescape
from trueup.model.reconcile import NUMBERS, Column, ColumnType

__all__ = ["Rule", "differences"]

# Wide enough for any two numbers of PostgreSQL; a difference that would be rounded raises.
EXACT = Context(prec=300_000, Emax=999_999, Emin=-999_999, traps=[Inexact, InvalidOperation])
_MARKS = {NULL: "NULL", ABSENT: "absent"}

Rule = Callable[[bytes, bytes], "str | None"]
"""Two fields that differ in their bytes: why they differ, or None where they count as the same."""


def differences(layout: Layout) -> Callable[[bytes, bytes], tuple[Difference, ...]]:
    """A function of two lines of one key: the columns in which they differ, if any."""
    start = len(layout.key)
    rules = [
        (start + index, column.name, _rule(column))
        for index, column in enumerate(layout.values)
        if column.compared
    ]
    width = len(layout.columns)

    def compare(truth: bytes, target: bytes) -> tuple[Difference, ...]:
        ours, theirs = truth.split(b"\t"), target.split(b"\t")
        if not len(ours) == len(theirs) == width:
            raise ValueError(f"A line must have {width} fields; these have {len(ours)} and {len(theirs)}.")
        return tuple(
            Difference(name, reason, ours[at], theirs[at])
            for at, name, rule in rules
            if (ours[at] != theirs[at] or ours[at][:2] == UNREADABLE)
            and (reason := rule(ours[at], theirs[at])) is not None
        )

    return compare


def _rule(column: Column) -> Rule:
    make = _RULES.get(column.type)
    of_type = _differ if make is None else make(column)

    def rule(truth: bytes, target: bytes) -> str | None:
        return _marked(truth, target, column.type) or of_type(truth, target)

    return rule


def _marked(truth: bytes, target: bytes, kind: ColumnType) -> str | None:
    """Why two fields differ of which at least one is no value."""
    wrong = [side for side, one in (("truth", truth), ("target", target)) if one[:2] == UNREADABLE]
    if wrong:
        return f"unreadable in {' and '.join(wrong)}: no {kind}"
    if truth in _MARKS or target in _MARKS:
        ours, theirs = (_MARKS.get(one, "empty" if not one else "a value") for one in (truth, target))
        return f"{ours} in truth, {theirs} in target"
    return None


def _differ(_truth: bytes, _target: bytes) -> str:
    return "other value"


def _numbers(column: Column) -> Rule:
    tolerance = column.tolerance

    def rule(truth: bytes, target: bytes) -> str | None:
        if tolerance is None:
            return "other value"
        ours, theirs = Decimal(truth.decode()), Decimal(target.decode())
        if not (ours.is_finite() and theirs.is_finite()):
            return "other value"
        apart = EXACT.abs(EXACT.subtract(ours, theirs))  # abs() alone would round to 28 digits
        return None if EXACT.compare(apart, tolerance) <= 0 else f"apart by more than {tolerance:f}"

    return rule


def _timestamps(column: Column) -> Rule:
    tolerance = column.tolerance

    def rule(truth: bytes, target: bytes) -> str | None:
        if tolerance is None:
            return "other value"
        try:
            ours, theirs = (datetime.fromisoformat(one.decode()) for one in (truth, target))
        except ValueError:  # infinity, or a year that Python does not have
            return "other value"
        apart = abs(ours - theirs)
        seconds = apart.days * 86_400 + apart.seconds + Decimal(apart.microseconds) / 1_000_000
        return None if seconds <= tolerance else f"apart by more than {tolerance:f} s"

    return rule


def _texts(column: Column) -> Rule:
    form = column.normal

    def rule(truth: bytes, target: bytes) -> str | None:
        if not truth or not target:
            return "empty in truth, a value in target" if not truth else "a value in truth, empty in target"
        ours, theirs = (unescape(one).decode("utf-8", "surrogateescape") for one in (truth, target))
        if form is not None and unicodedata.normalize(form, ours) == unicodedata.normalize(form, theirs):
            return None
        if unicodedata.normalize("NFC", ours) == unicodedata.normalize("NFC", theirs):
            return "other Unicode form"
        return "other value"

    return rule


def _documents(_column: Column) -> Rule:
    def rule(truth: bytes, target: bytes) -> str | None:
        try:
            return None if _document(truth) == _document(target) else "other value"
        except (ValueError, ArithmeticError, RecursionError):  # too deep, or a number that no Decimal has
            return "other text, and too deep or too large to compare as a document"

    return rule


def _document(field: bytes) -> Any:
    return _typed(json.loads(unescape(field), parse_int=Decimal, parse_float=Decimal))


def _typed(value: Any) -> Any:
    """A JSON value with its types: Python holds True for 1."""
    if isinstance(value, dict):
        return "object", {name: _typed(part) for name, part in value.items()}
    if isinstance(value, list):
        return "array", [_typed(part) for part in value]
    return type(value).__name__, value


_RULES: dict[ColumnType, Callable[[Column], Rule]] = {
    **dict.fromkeys(NUMBERS, _numbers),
    ColumnType.TIMESTAMP: _timestamps,
    ColumnType.TEXT: _texts,
    ColumnType.JSON: _documents,
}
