"""The columns of canonical lines, and their keys in a form that can be compared."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from trueup.compare.lines import ABSENT, NULL, UNREADABLE, escape, unescape
from trueup.model.reconcile import Column, ColumnType

__all__ = ["Key", "Layout", "Order", "Span", "order"]

Key = tuple[str, ...]
"""The canonical texts of a key's columns: what reports, cursors and `fetch` use."""

Order = Any
"""A key as Python compares it: a number or bytes, a tuple of such where the key has several columns."""

_FIRST_FIELDS = re.compile(rb"^[^\t\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Span:
    """The keys from `low` up to, without, `high`; None is without end. Of these, only those after `after`."""

    low: Key | None = None
    high: Key | None = None
    after: Key | None = None

    def resumed(self, cursor: Key) -> Span:
        """What of it follows a key."""
        return replace(self, after=cursor)


@dataclass(frozen=True)
class Layout:
    """What the fields of a line are: those of the key, then the others.

    `version` is the name of the column that says when a row changed.
    """

    key: tuple[Column, ...]
    values: tuple[Column, ...] = ()
    version: str | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All, in the order of the fields."""
        return self.key + self.values

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def order_of(self) -> Callable[[bytes], Order]:
        """The key of a line, as it is compared. ValueError where a part is no value of its type."""
        parts = [order(column.type) for column in self.key]
        if len(parts) == 1:
            (part,) = parts
            return lambda line: part(line.partition(b"\t")[0])
        count = len(parts)
        return lambda line: tuple(
            part(field) for part, field in zip(parts, line.split(b"\t", count)[:count], strict=True)
        )

    def order_of_key(self, key: Key) -> Order:
        """The same for a key in its texts; of a key's first columns, where there are no more."""
        parts = [order(column.type)(_field(text)) for column, text in zip(self.key, key, strict=False)]
        return parts[0] if len(self.key) == 1 else tuple(parts)

    def key_of(self, line: bytes) -> Key:
        """The key of a line, in texts."""
        fields = line.split(b"\t", len(self.key))[: len(self.key)]
        return tuple(unescape(field).decode("utf-8", "backslashreplace") for field in fields)

    def ascends(self, lines: bytes) -> bool:
        """Whether the keys of whole lines ascend, each once; false too where there is none."""
        try:
            keys = self._orders(lines)
        except ValueError:
            return False
        return all(map(operator.lt, keys, keys[1:]))

    def _orders(self, lines: bytes) -> list[Order]:
        if len(self.key) > 1:
            return [self.order_of(line) for line in lines.removesuffix(b"\n").split(b"\n")]
        fields = _FIRST_FIELDS.findall(lines.removesuffix(b"\n"))
        part = order(self.key[0].type)
        if part is _bytes and b"\\" not in lines:
            return fields
        return list(map(part, fields))

    def within(self, span: Span) -> Callable[[Order], bool]:
        """Whether a key is in a span, whose bounds may be the first columns of a key only."""
        bounds = ((operator.ge, span.low), (operator.lt, span.high), (operator.gt, span.after))
        tests = [
            (holds, self.order_of_key(bound), len(bound)) for holds, bound in bounds if bound is not None
        ]
        if len(self.key) == 1:
            return lambda key: all(holds(key, bound) for holds, bound, _ in tests)
        return lambda key: all(holds(key[:width], bound) for holds, bound, width in tests)

    def why_unkeyed(self, line: bytes) -> str:
        """What is wrong with the key of a line that has none, without its values."""
        fields = line.split(b"\t")
        if len(fields) == 1 and fields[0].startswith(UNREADABLE) and len(self.columns) > 1:
            return unescape(fields[0][2:]).decode("utf-8", "backslashreplace")
        for column, field in zip(self.key, fields, strict=False):
            try:
                order(column.type)(field)
            except ValueError:
                mark = {NULL: "is NULL", ABSENT: "is absent"}.get(field, f"is no {column.type}")
                return f"key column {column.name} {mark}"
        return "a part of the key is not there"

    def version_of(self, line: bytes) -> datetime | None:
        """When a row changed, where the layout says so and the line has a readable instant."""
        if self.version is None:
            return None
        field = line.split(b"\t")[self.names.index(self.version)]
        try:
            return datetime.fromisoformat(field.decode())
        except ValueError:
            return None


def _field(text: str) -> bytes:
    return escape(text.encode("utf-8", "surrogateescape"))


def order(kind: ColumnType) -> Callable[[bytes], Any]:
    """What puts the fields of a type in order; it raises ValueError for one without a value."""
    # Of the other types the canonical texts are ordered as their values are, in PostgreSQL too.
    return _ORDERS.get(kind, _bytes)


def _decimal(field: bytes) -> Decimal:
    try:
        value = Decimal(field.decode())
    except ArithmeticError as error:
        raise ValueError(f"{field!r} is no number") from error
    if not value.is_finite():
        raise ValueError(f"{field!r} has no place in the order")
    return value


def _bytes(field: bytes) -> bytes:
    if field[:1] != b"\\":
        return unescape(field)
    if field[:2] in (NULL, ABSENT, UNREADABLE):
        raise ValueError("a key must have a value in each column")
    return unescape(field)


_ORDERS: dict[ColumnType, Callable[[bytes], Any]] = {ColumnType.INTEGER: int, ColumnType.DECIMAL: _decimal}
