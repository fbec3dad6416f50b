"""Values as other stores hand them out, made canonical: what PostgreSQL's COPY would write in UTC.

A reader never guesses: what is not of the declared type becomes an unreadable field, which equals nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from trueup.compare.lines import ABSENT, NULL, escape, unreadable
from trueup.compare.values import EXACT
from trueup.model.reconcile import Column, ColumnType, Reading, Side

__all__ = ["Missing", "divided", "instant_text", "number_text", "reader"]

Read = Callable[[Any], bytes]

_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?|NaN|-?Infinity")
_DIGITS_MOST = 1_000  # of a number in a file; more is a bomb (1E+999999999) sooner than a quantity
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6}0*)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}
_BOOLEANS = {"true": b"t", "false": b"f", "t": b"t", "f": b"f"}


class Missing:
    """What a document has in the place of an attribute that it does not have."""


def reader(column: Column, side: Side, absent: bytes = ABSENT) -> Read:
    """A function from a value of that side to its canonical field.

    It takes what JSON and CSV give: text, numbers (Decimal, no float), bools, bytes, None, `Missing`.
    """
    reading = column.reading(side)
    of_type = _READERS[column.type](reading)
    if reading.nulls:
        of_type = _unless_null(frozenset(reading.nulls), of_type)

    def read(value: Any) -> bytes:
        try:
            return of_type(value)
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RecursionError):
            # Nearly all values are some: what is none is told here, and costs the others nothing.
            if value is None:
                return NULL
            return absent if value is Missing else unreadable(value)

    return read


def _unless_null(nulls: frozenset[str], of_type: Read) -> Read:
    return lambda value: NULL if type(value) is str and value in nulls else of_type(value)


def number_text(value: Decimal) -> bytes:
    """A number without exponent, trailing zeros or negative zero; the value is exact."""
    if not value.is_finite():
        return str(value).encode()
    if abs(value.adjusted()) > _DIGITS_MOST:
        raise ValueError(f"more than {_DIGITS_MOST} digits")
    return _trimmed(format(value, "f"))


def divided(field: bytes, times: Decimal) -> Decimal:
    """The stored number that `times` makes a canonical one of. ValueError where there is no exact one."""
    try:
        return _SHORT.divide(Decimal(field.decode()), times)
    except Inexact as error:
        raise ValueError(f"{field.decode()} is no multiple of {times:f}") from error


_SHORT = Context(prec=_DIGITS_MOST, traps=[Inexact, InvalidOperation])


def _trimmed(text: str) -> bytes:
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text in ("-0", "-") else text.encode()


def _number(value: Any) -> Decimal:
    """The exact number that a value is. ValueError where it is none."""
    if type(value) is int:
        return Decimal(value)
    if isinstance(value, Decimal):
        return value
    if type(value) is str and len(value) < 2 * _DIGITS_MOST and _NUMBER.fullmatch(value):
        return Decimal(value)
    raise ValueError(f"{value!r} is no number")


def _decimals(reading: Reading) -> Read:
    if reading.times is not None:
        times = reading.times
        return lambda value: number_text(EXACT.multiply(_number(value), times))

    def read(value: Any) -> bytes:
        if type(value) is str and len(value) < _DIGITS_MOST and _PLAIN.fullmatch(value):
            return _trimmed(value)
        return number_text(_number(value))

    return read


def _integers(reading: Reading) -> Read:
    decimals = _decimals(reading)

    def read(value: Any) -> bytes:
        if type(value) is int and reading.times is None:
            return b"%d" % value
        text = decimals(value)
        if b"." in text or not text.strip(b"-").isdigit():
            raise ValueError(f"{value!r} is no whole number")
        return text

    return read


def _texts(_reading: Reading) -> Read:
    def read(value: Any) -> bytes:
        if type(value) is not str:
            raise ValueError(f"{value!r} is no text")
        return escape(value.encode())

    return read


def _booleans(_reading: Reading) -> Read:
    return lambda value: (b"t" if value else b"f") if type(value) is bool else _BOOLEANS[value.lower()]


def _timestamps(reading: Reading) -> Read:
    if reading.format != "iso":
        return partial(_from_epoch, _MICROSECONDS[reading.format])
    zone = ZoneInfo(reading.zone) if reading.zone else None
    return partial(_from_iso, zone)


def _from_iso(zone: ZoneInfo | None, value: Any) -> bytes:
    found = _ISO.fullmatch(value)
    if found is None:
        raise ValueError(f"{value!r} is no timestamp of at most six decimals")
    moment = datetime.fromisoformat(value)
    fraction, offset = found.groups()
    if offset in _UTC:  # the text is canonical but for its signs, and building it anew takes twice as long
        fraction = fraction.rstrip("0") if fraction else ""
        return f"{value[:10]} {value[11:19]}{fraction if fraction != '.' else ''}+00".encode()
    return instant_text(_in_zone(moment, zone) if offset is None else moment)


_UTC = frozenset({"Z", "+00", "+00:00", "+0000"})


def _in_zone(moment: datetime, zone: ZoneInfo | None) -> datetime:
    """A timestamp without a zone, in the declared one."""
    if zone is None:
        raise ValueError("a timestamp without a zone, and none is declared")
    local = moment.replace(tzinfo=zone)
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        raise ValueError("the clock showed this time twice, or never")
    return local


def _from_epoch(scale: int, value: Any) -> bytes:
    count = EXACT.multiply(_number(value), Decimal(scale))
    if count != count.to_integral_value():
        raise ValueError(f"{value!r} is finer than a microsecond")
    return instant_text(_EPOCH + timedelta(microseconds=int(count)))


def instant_text(moment: datetime) -> bytes:
    """An instant as PostgreSQL writes it in UTC."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return (text.rstrip("0") if len(text) > 19 else text).encode() + b"+00"


def _dates(_reading: Reading) -> Read:
    def read(value: Any) -> bytes:
        if len(value) != 10:
            raise ValueError(f"{value!r} is no date")
        return date.fromisoformat(value).isoformat().encode()

    return read


def _uuids(_reading: Reading) -> Read:
    return lambda value: str(uuid.UUID(value)).encode()


def _binaries(reading: Reading) -> Read:
    def read(value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray):
            value = _decoded(value, reading.encoding)
        return escape(b"\\x" + bytes(value).hex().encode())

    return read


def _decoded(value: str, encoding: str) -> bytes:
    if encoding == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{value!r} is no base64") from error
    return bytes.fromhex(value.removeprefix("\\x"))


def _documents(_reading: Reading) -> Read:
    def read(value: Any) -> bytes:
        if value is None:
            raise ValueError("a null where the document would be is a NULL")
        return escape(_json(value).encode())

    return read


def _json(value: Any) -> str:
    """A JSON value with its names in order, no spaces, and exact numbers."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(name, ensure_ascii=False)}:{_json(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return number_text(value).decode()
    if isinstance(value, float):
        raise ValueError("a float has lost its digits")
    return json.dumps(value, ensure_ascii=False)


_READERS: dict[ColumnType, Callable[[Reading], Read]] = {
    ColumnType.INTEGER: _integers,
    ColumnType.DECIMAL: _decimals,
    ColumnType.FLOAT: _decimals,
    ColumnType.TEXT: _texts,
    ColumnType.BOOLEAN: _booleans,
    ColumnType.TIMESTAMP: _timestamps,
    ColumnType.DATE: _dates,
    ColumnType.UUID: _uuids,
    ColumnType.BYTES: _binaries,
    ColumnType.JSON: _documents,
}
