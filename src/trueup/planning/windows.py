"""What a request covers: read, checked against the job's partitioning, and as the lock compares it.

A window is half-open: `from` is included, `to` is not. One that does not fall on a date unit's boundary is
refused, since the partition's id names the whole unit and half of it would overwrite the result of all of it;
one that does not fall on a step of an integer key is cut there, since such an id names exactly what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from trueup.errors import RequestError
from trueup.model.job import (
    DatePartitions,
    JobPartitions,
    KeyRangePartitions,
    ListPartitions,
    S3PrefixPartitions,
)
from trueup.model.jobs import AnyJob
from trueup.model.plan import Window
from trueup.model.reconcile_job import QuantilePartitions, SplitPartitions
from trueup.model.request import MOST_KEY_BYTES, Request
from trueup.planning.calendar import Span, day_bound, day_span, days, hour_bound, hour_span, hours, utc_text

MOST_PARTITIONS = 1_000_000
LOCK_BYTES = 16_384
"""More names than this do not fit the lock's item beside other holders; it then covers everything."""

_MOST_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_INTEGER = re.compile(r"-?[0-9]{1,38}")
_RANGE = re.compile(r"(-?[0-9]{1,38})-(-?[0-9]{1,38})")


def window(job: AnyJob, request: Request) -> Window:
    """What the run covers, as the lock compares it. Keys of an ordered job are covered from first to last.

    RequestError where the request does not fit the job's partitioning, or is not Unicode.
    """
    covered = _window(job, request)
    for text in (covered.low, covered.high, *covered.items):
        in_utf8(text or "")
    return covered


def in_utf8(text: str, field: str = "keys") -> bytes:
    """The text in UTF-8. RequestError where it holds half of a surrogate pair, which no store can keep."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        shown = text[max(0, error.start - 80) : error.end]
        raise RequestError(
            f"{shown!a} is not Unicode: it holds half of a surrogate pair.",
            remedy="Read it as UTF-8 where it comes from.",
            field=field,
        ) from error


def _window(job: AnyJob, request: Request) -> Window:
    match job.partitions:
        case DatePartitions() as settings:
            return _date_window(settings, request)
        case KeyRangePartitions(type="integer") as settings:
            ranges = integer_ranges(settings, request)
            return Window(kind="key", key_type="integer", low=str(ranges[0][0]), high=str(ranges[-1][1]))
        case KeyRangePartitions() as settings:
            bounds = text_ranges(settings, request)
            return Window(kind="key", key_type="text", low=bounds[0][0], high=bounds[-1][1])
        case ListPartitions() as settings:
            return _list_window(list_items(settings, request))
        case S3PrefixPartitions():
            _no_window(request, "objects under an S3 prefix")
        case SplitPartitions() | QuantilePartitions():
            _no_window(request, "all keys of two sources")
            return Window(kind="all")
        case JobPartitions():
            pass
    if request.keys is not None:
        return _list_window(_distinct(request.keys, job.partitions.key))
    return Window(kind="all", low=request.start, high=request.end)


def _date_window(settings: DatePartitions, request: Request) -> Window:
    if request.keys is not None:
        spans = sorted(date_spans(settings, request), key=lambda span: span.low)
        return Window(kind="date", low=spans[0].low, high=spans[-1].high, timezone=settings.timezone)
    low, high = date_bounds(settings, request)
    return Window(kind="date", low=low, high=high, timezone=settings.timezone)


def date_bounds(settings: DatePartitions, request: Request) -> tuple[str, str]:
    """The window's ends as text: local dates, or instants in UTC where the unit is the hour."""
    start, end = _both_ends(request, "dates")
    if settings.unit == "hour":
        zone = ZoneInfo(settings.timezone)
        low, high = (hour_bound(text, zone, field) for text, field in ((start, "from"), (end, "to")))
        _forward(low < high, start, end, empty=low == high)
        check_count((high - low) // timedelta(hours=1))
        return utc_text(low), utc_text(high)
    first, last = day_bound(start, settings.unit, "from"), day_bound(end, settings.unit, "to")
    _forward(first < last, start, end, empty=first == last)
    check_count((last - first).days // _MOST_DAYS[settings.unit])
    return first.isoformat(), last.isoformat()


def date_spans(settings: DatePartitions, request: Request) -> list[Span]:
    """The calendar units of the request in order of time: of its window, or those that its keys name."""
    if request.keys is None:
        return _spans_between(settings, *date_bounds(settings, request))
    zone, labels = ZoneInfo(settings.timezone), _distinct(request.keys, "date")
    if settings.unit == "hour":
        spans = [hour_span(text, zone, "keys") for text in labels]
    else:
        spans = [day_span(text, settings.unit, "keys") for text in labels]
    return sorted({span.low: span for span in spans}.values(), key=lambda span: span.low)


def _spans_between(settings: DatePartitions, low: str, high: str) -> list[Span]:
    first, last = datetime.fromisoformat(low), datetime.fromisoformat(high)
    if settings.unit == "hour":
        return list(hours(first, last, ZoneInfo(settings.timezone)))
    return list(days(first.date(), last.date(), settings.unit))


def integer_ranges(settings: KeyRangePartitions, request: Request) -> list[tuple[int, int]]:
    """The window's ends, or the ranges that the keys name, as half-open (low, high) in order of the key."""
    if request.keys is None:
        start, end = _both_ends(request, "a range of integers")
        low, high = _integer(start, "from"), _integer(end, "to")
        _forward(low < high, start, end, empty=low == high)
        check_count((high - low) // (settings.size or 1))
        return [(low, high)]
    ranges = sorted(_named_range(text, settings) for text in _distinct(request.keys, settings.key))
    for (low, high), (after, _) in pairwise(ranges):
        if after < high:
            raise RequestError(
                f"two of the keys overlap: {low}-{high - 1} and the one from {after}.",
                remedy="Name each range once.",
                field="keys",
            )
    return ranges


def _named_range(text: str, settings: KeyRangePartitions) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    size = settings.size or 1
    if match is None or int(match[2]) < int(match[1]) or int(match[1]) // size != int(match[2]) // size:
        raise RequestError(
            f"{text!r} is not a partition of this job.",
            remedy=f"Name it by its first and last key within one step of {size}, like 0-{size - 1}.",
            field="keys",
        )
    return int(match[1]), int(match[2]) + 1


def _integer(text: str, field: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise RequestError(f"{text!r} is not an integer.", remedy="Write it like 1000000.", field=field)
    return int(text)


def text_ranges(settings: KeyRangePartitions, request: Request) -> list[tuple[str | None, str | None]]:
    """The ranges between the splits, half-open and in order; None is unbounded. Keys choose among them."""
    start, end = request.start, request.end
    if start is not None and end is not None:
        _forward(start < end, start, end, empty=start == end)
    inside = [cut for cut in settings.splits if (start is None or cut > start) and (end is None or cut < end)]
    cuts = [start, *inside, end]
    ranges = list(pairwise(cuts))
    if request.keys is None:
        return ranges
    named = {text_label(low, high): (low, high) for low, high in ranges}
    chosen = chosen_of(_distinct(request.keys, settings.key), named)
    return [span for label, span in named.items() if label in chosen]


def text_label(low: str | None, high: str | None) -> str:
    """How a range of text is written: `a..m`, with nothing on an open side.

    Dots that could be taken for those between the bounds are quoted, so that no two ranges share a label.
    """
    return f"{_bound_label(low)}..{_bound_label(high)}"


def _bound_label(bound: str | None) -> str:
    text = bound or ""
    if ".." in text or "%" in text or text.startswith(".") or text.endswith("."):
        return text.replace("%", "%25").replace(".", "%2E")
    return text


def list_items(settings: ListPartitions, request: Request) -> list[str]:
    """The items to work: the request's keys, which the job file's items bound where it has any."""
    _no_window(request, "a list")
    if request.keys is None and not settings.items:
        raise RequestError(
            "the job file lists no items, so the request has to.", remedy="Give `keys`.", field="keys"
        )
    if request.keys is None:
        return list(settings.items)
    labels = _distinct(request.keys, settings.key)
    if not settings.items:
        return labels
    chosen = chosen_of(labels, settings.items)
    return [item for item in settings.items if item in chosen]


def keys_of(request: Request, key: str) -> list[str] | None:
    """The labels of the request's keys, each once, without the `key=` of ids; None without keys."""
    return None if request.keys is None else _distinct(request.keys, key)


def chosen_of(wanted: list[str], known: Iterable[str]) -> set[str]:
    """The wanted labels; RequestError names those that are not known."""
    names = set(known)
    unknown = [label for label in wanted if label not in names]
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise RequestError(
            f"no partition is called {', '.join(map(repr, unknown[:3]))}{more}.",
            remedy=f"The job has {len(names)}, such as {min(names)!r}." if names else "The job has none.",
            field="keys",
        )
    return set(wanted)


def _distinct(keys: tuple[str, ...], key: str) -> list[str]:
    if not keys:
        raise RequestError("no keys are given.", remedy="Name at least one, or give a window.", field="keys")
    size = sum(len(text.encode(errors="replace")) for text in keys)
    if size > MOST_KEY_BYTES:
        raise RequestError(
            f"the {len(keys):,} keys have {size:,} bytes, and the ledger keeps {MOST_KEY_BYTES:,}.",
            remedy="Give a window, or ask for some of the keys at a time.",
            field="keys",
        )
    return list(dict.fromkeys(text.removeprefix(f"{key}=") for text in keys))


def _list_window(items: list[str]) -> Window:
    if sum(len(item.encode(errors="replace")) + 3 for item in items) > LOCK_BYTES:
        return Window(kind="all")
    return Window(kind="list", items=tuple(items))


def _both_ends(request: Request, what: str) -> tuple[str, str]:
    if request.start is None or request.end is None:
        raise RequestError(
            f"this job works {what}, so it needs to know which.",
            remedy="Give `from` and `to`, or `keys`.",
            field="from",
        )
    return request.start, request.end


def _no_window(request: Request, what: str) -> None:
    if request.start is not None:
        raise RequestError(
            f"this job works {what}, which has no beginning and end.",
            remedy="Leave out `from` and `to`; give `keys` to work only some.",
            field="from",
        )


def check_count(count: int) -> None:
    """RequestError where a run would have more partitions than it may."""
    if count > MOST_PARTITIONS:
        raise RequestError(
            f"that makes {count:,} partitions or more, and a run has at most {MOST_PARTITIONS:,}.",
            remedy="Choose larger partitions or a shorter window.",
            field="to",
        )


def _forward(forward: bool, start: str, end: str, *, empty: bool) -> None:
    if forward:
        return
    what = "is empty" if empty else "runs backwards"
    raise RequestError(
        f"the window from {start} to {end} {what}.",
        remedy="`to` is not included in the window, so it must lie after `from`.",
        field="to",
    )
