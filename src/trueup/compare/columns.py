"""Many values of a column made canonical at once: the same fields as `reader` makes of each.

Nearly all values of a column are written plainly: their texts are canonical but for zeros at the end, or the
like. Whether they are is asked of all together, in loops that Python runs in C. Where one is not, all of them
go to `reader`, one by one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import compress
from typing import Any

from trueup.compare.canonical import reader
from trueup.compare.lines import ABSENT, SPECIAL
from trueup.model.reconcile import Column, ColumnType, Reading, Side

__all__ = ["ReadAll", "column_reader"]

ReadAll = Callable[[Sequence[Any]], list[str]]
"""Values to their canonical fields, as texts; a line of them is to be encoded as UTF-8."""

_NUMBERS = re.compile(r"(?:-?(?:0|[1-9][0-9]{0,899})(?:\.[0-9]{1,99})?\n)*")
_WHOLE_NUMBERS = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,899})\n)*")
_INSTANT = rb"0000-00-00[T ]00:00:00(?:\.0{1,6})?"
_WITH_ZONE = re.compile(_INSTANT + rb"(?:Z|\+00(?::?00)?)")
_ZONE_OR_NONE = re.compile(_INSTANT + rb"(?:Z|\+00(?::?00)?)?")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_ZEROS = re.compile(r"\.[0-9]*0$|\.$", re.MULTILINE)
_UUIDS = re.compile("(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\n)*")
_BOOLEANS = {True: "t", False: "f", "true": "t", "false": "f", "t": "t", "f": "f"}


@dataclass(frozen=True, slots=True)
class _Plain:
    """How plain values of these types become fields; `read` raises where one is none."""

    kinds: frozenset[type]
    read: ReadAll


def column_reader(column: Column, side: Side, absent: bytes = ABSENT) -> ReadAll:
    """A function from values of that side to their canonical fields; `reader` says what they may be."""
    read = reader(column, side, absent)

    def each(values: Sequence[Any]) -> list[str]:
        return [read(value).decode() for value in values]

    reading = column.reading(side)
    plain = _plain(column.type, reading)
    if plain is None:
        return each
    plainly, kinds, nulls = plain.read, plain.kinds, frozenset(reading.nulls)

    def is_null(value: Any) -> bool:
        return type(value) is str and value in nulls

    def together(values: Sequence[Any]) -> list[str]:
        try:
            return plainly(values) if values else []
        except (ValueError, TypeError, ArithmeticError, LookupError):
            return each(values)

    def fields(values: Sequence[Any]) -> list[str]:
        if kinds.issuperset(map(type, values)) and not (nulls and any(map(is_null, values))):
            return together(values)
        are = [type(value) in kinds and not is_null(value) for value in values]
        some = iter(together(list(compress(values, are))))
        return [next(some) if one else read(value).decode() for one, value in zip(are, values, strict=True)]

    return fields


def _plain(kind: ColumnType, reading: Reading) -> _Plain | None:
    if reading.times is not None or reading.format != "iso":
        return None
    if kind is ColumnType.TIMESTAMP:
        return _INSTANTS.get(reading.zone)
    return _PLAIN.get(kind)


def _check(lines: re.Pattern[str], texts: Sequence[str]) -> None:
    together = "\n".join([*texts, ""])
    if together.count("\n") != len(texts) or lines.fullmatch(together) is None:
        raise ValueError("not all are plain")


def _trimmed(texts: Sequence[str]) -> list[str]:
    """The same without zeros at the end of a fraction."""
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]


def _numbers(values: Sequence[Any]) -> list[str]:
    texts = list(map(str, values))
    _check(_NUMBERS, texts)
    fields = _trimmed(texts)
    return ["0" if field == "-0" else field for field in fields] if "-0" in fields else fields


def _whole_numbers(values: Sequence[Any]) -> list[str]:
    with suppress(TypeError):
        return list(map(int.__repr__, values))  # refuses what is no int
    texts = list(map(str, values))
    _check(_WHOLE_NUMBERS, texts)
    return texts


def _texts(values: Sequence[Any]) -> list[str]:
    together = "".join(values).encode()
    if len(together.translate(None, SPECIAL)) != len(together):
        raise ValueError("not all are plain")
    return list(values)


def _instants(shape: re.Pattern[bytes]) -> _Plain:
    """`shape` is that of an instant in UTC with zeros for digits: a column has few, whatever it holds."""

    def read(values: Sequence[Any]) -> list[str]:
        together = "\n".join(values)
        shapes = set(together.encode().translate(_DIGITS).split(b"\n"))
        deque(map(datetime.fromisoformat, values), 0)  # which knows how many days a month has
        together = together.replace("T", " ").replace("Z", "")
        for zone in ("+00:00", "+0000", "+00"):
            together = together.replace(zone, "")
        if "+" in together or not all(map(shape.fullmatch, shapes)):
            raise ValueError("not all are plain")
        if _ZEROS.search(together):
            together = "\n".join(_trimmed(together.split("\n")))
        return (together.replace("\n", "+00\n") + "+00").split("\n")

    return _Plain(frozenset({str}), read)


def _dates(values: Sequence[Any]) -> list[str]:
    if not {10}.issuperset(map(len, values)):
        raise ValueError("not all are plain")
    return list(map(date.isoformat, map(date.fromisoformat, values)))


def _booleans(values: Sequence[Any]) -> list[str]:
    return list(map(_BOOLEANS.__getitem__, values))


def _uuids(values: Sequence[Any]) -> list[str]:
    _check(_UUIDS, values)
    return list(values)


_INSTANTS = {None: _instants(_WITH_ZONE), "UTC": _instants(_ZONE_OR_NONE)}
_QUANTITIES = frozenset({int, str, Decimal})
_PLAIN: Mapping[ColumnType, _Plain] = {
    ColumnType.INTEGER: _Plain(_QUANTITIES, _whole_numbers),
    ColumnType.DECIMAL: _Plain(_QUANTITIES, _numbers),
    ColumnType.FLOAT: _Plain(_QUANTITIES, _numbers),
    ColumnType.TEXT: _Plain(frozenset({str}), _texts),
    ColumnType.BOOLEAN: _Plain(frozenset({bool, str}), _booleans),
    ColumnType.DATE: _Plain(frozenset({str}), _dates),
    ColumnType.UUID: _Plain(frozenset({str}), _uuids),
}
