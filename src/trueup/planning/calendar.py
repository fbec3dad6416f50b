"""Local days, ISO weeks, months, years and hours: their labels, their neighbours and where they begin.

Days and longer units are arithmetic on local dates and know no clock; only hours need the time zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from trueup.errors import RequestError

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_YEAR = re.compile(r"([0-9]{4})")
_HOUR = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2})(?::([0-9]{2}))?(?::([0-9]{2}))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?"
)
_MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]00:00(?::00)?")
_EXAMPLES = {
    "hour": "2024-01-31T05, 2024-01-31T05Z or 2024-01-31T05+01:00",
    "day": "2024-01-31",
    "week": "2024-W05 or the Monday, 2024-01-29",
    "month": "2024-01 or its first day, 2024-01-01",
    "year": "2024 or its first day, 2024-01-01",
}


@dataclass(frozen=True, slots=True)
class Span:
    """One unit of a calendar: its label, its bounds as text and what an input pattern may say of it."""

    label: str
    low: str
    high: str
    day: date
    hour: int | None = None


def days(low: date, high: date, unit: str) -> Iterator[Span]:
    """The units from `low` (included) to `high` (not included); both begin a unit."""
    while low < high:
        after = _next(low, unit)
        yield Span(label(low, unit), low.isoformat(), after.isoformat(), low)
        low = after


def hours(low: datetime, high: datetime, zone: ZoneInfo) -> Iterator[Span]:
    """The local hours from `low` (included) to `high` (not included), both instants in UTC.

    One begins whenever the wall clock shows a full hour. Where it jumps past one, by half an hour, say,
    the hours around the jump are shorter.
    """
    while low < high:
        local = low.astimezone(zone)
        rest = timedelta(hours=1) - timedelta(minutes=local.minute, seconds=local.second)
        after = min(low + rest, high)
        yield Span(_hour_label(local), utc_text(low), utc_text(after), local.date(), local.hour)
        low = after


def label(day: date, unit: str) -> str:
    """How a unit that begins on `day` is written: 2024-01-31, 2024-W05, 2024-01, 2024."""
    if unit == "day":
        return day.isoformat()
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: 7 if unit == "month" else 4]


def floor(day: date, unit: str) -> date:
    """The first day of the unit that holds `day`."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _next(day: date, unit: str) -> date:
    if unit == "day":
        return day + timedelta(days=1)
    if unit == "week":
        return day + timedelta(days=7)
    return floor(day + timedelta(days=31 if unit == "month" else 366), unit)


def day_bound(text: str, unit: str, field: str) -> date:
    """The day on which a window begins or ends; RequestError where no unit begins on it."""
    day = _day(text, unit, field)
    start = floor(day, unit)
    if day != start:
        raise RequestError(
            f"{text} is inside the {unit} {label(start, unit)}, and a partition named after a {unit} "
            "must hold all of it.",
            remedy=f"Begin or end at {start}{_or_next(start, unit)}.",
            field=field,
        )
    return day


def _or_next(start: date, unit: str) -> str:
    """The other end of a unit, in a remedy; nothing is said of what comes after the year 9999."""
    try:
        return f" or {_next(start, unit)}"
    except OverflowError:
        return ""


def day_span(text: str, unit: str, field: str) -> Span:
    """The unit that a label names, such as 2024-01."""
    low = day_bound(text, unit, field)
    try:
        return next(days(low, _next(low, unit), unit))
    except OverflowError as error:
        raise _malformed(text, unit, field) from error


def _day(text: str, unit: str, field: str) -> date:
    midnight = _MIDNIGHT.fullmatch(text)
    try:
        if match := _DAY.fullmatch(midnight[1] if midnight else text):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if unit == "week" and (match := _WEEK.fullmatch(text)):
            return date.fromisocalendar(int(match[1]), int(match[2]), 1)
        if unit == "month" and (match := _MONTH.fullmatch(text)):
            return date(int(match[1]), int(match[2]), 1)
        if unit == "year" and (match := _YEAR.fullmatch(text)):
            return date(int(match[1]), 1, 1)
    except ValueError as error:
        raise _malformed(text, unit, field) from error
    raise _malformed(text, unit, field)


def _malformed(text: str, unit: str, field: str) -> RequestError:
    article = "an" if unit == "hour" else "a"
    return RequestError(
        f"{text!r} is not {article} {unit}.", remedy=f"Write it like {_EXAMPLES[unit]}.", field=field
    )


def hour_bound(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The instant, in UTC, at which a window of hours begins or ends: a full hour of the wall clock.

    A date means its first instant. A local time that the clock shows twice, or never, is refused.
    """
    return datetime.fromisoformat(hour_span(text, zone, field).low)


def hour_span(text: str, zone: ZoneInfo, field: str) -> Span:
    """The hour that begins at a time, such as 2024-01-31T05+01:00."""
    try:
        span = _span_at(_hour(text, zone, field), zone)
    except (ValueError, OverflowError) as error:
        raise _malformed(text, "hour", field) from error
    if span is None:
        raise RequestError(
            f"{text} is inside an hour of {zone.key}, and a partition named after one must hold all of it.",
            remedy="Begin and end at full hours of the local clock.",
            field=field,
        )
    return span


def _span_at(moment: datetime, zone: ZoneInfo) -> Span | None:
    early = moment - timedelta(hours=3)
    local = early.astimezone(zone)
    early -= timedelta(minutes=local.minute, seconds=local.second)
    wanted = utc_text(moment)
    return next((s for s in hours(early, moment + timedelta(hours=2), zone) if s.low == wanted), None)


def _hour(text: str, zone: ZoneInfo, field: str) -> datetime:
    if _DAY.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)
    match = _HOUR.fullmatch(text)
    if match is None:
        raise _malformed(text, "hour", field)
    day, hour, minute, second, offset = match.groups()
    naive = f"{day}T{hour}:{minute or '00'}:{second or '00'}"
    if offset:
        return datetime.fromisoformat(naive + offset).astimezone(UTC)
    return _unambiguous(datetime.fromisoformat(naive), zone, field)


def _unambiguous(naive: datetime, zone: ZoneInfo, field: str) -> datetime:
    first, second = (naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    shown = first.astimezone(zone).replace(tzinfo=None) == naive
    what = "happens twice" if shown else "never happens"
    raise RequestError(
        f"{naive.isoformat()} {what} in {zone.key}, because the clock is changed then.",
        remedy=f"Write the instant in UTC: {utc_text(first)} or {utc_text(second)}.",
        field=field,
    )


def _hour_label(local: datetime) -> str:
    offset = local.utcoffset() or timedelta()
    clock = f"{local.hour:02d}"
    if local.minute or local.second:
        clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    written = "Z" if not offset else local.isoformat()[19:]
    return f"{local.date().isoformat()}T{clock}{written}"


def utc_text(moment: datetime) -> str:
    """An instant as 2024-01-31T04:00:00Z."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
