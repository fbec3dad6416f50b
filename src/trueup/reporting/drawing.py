"""The pictures of a report: inline SVG, every square and bar with its own words.

Colour never speaks alone: whatever did not go well carries a letter, and tables say the same in text.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from html import escape
from itertools import groupby

from trueup.model.report import Cell, LaunchLine
from trueup.model.states import PartitionStatus

_P = PartitionStatus
MARKS = {_P.FAILED: "F", _P.STUCK: "S", _P.REFUSED: "R", _P.REJECTED: "J", _P.SKIPPED: "-"}
"""The letters of what did not go well."""

_SIDE, _STEP = 12, 14
_ACROSS = 50
_LEFT, _TOP = 30, 16
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def heat_map(cells: Sequence[Cell], label: str) -> str:
    """A calendar where the partitions are days, else rows of squares."""
    if cells and all(cell.day for cell in cells):
        return "".join(_calendar(cells, label))
    return _grid(cells, label)


def square(status: PartitionStatus) -> str:
    """One square, for the key."""
    body = "".join(_square(0, 0, status))
    return f'<svg width="{_SIDE}" height="{_SIDE}" aria-hidden="true">{body}</svg>'


def _grid(cells: Sequence[Cell], label: str) -> str:
    rows = -(-len(cells) // _ACROSS)
    body = "".join(
        _titled(cell, number % _ACROSS * _STEP, number // _ACROSS * _STEP)
        for number, cell in enumerate(cells)
    )
    return _svg(min(len(cells), _ACROSS) * _STEP, rows * _STEP, label, body)


def _calendar(cells: Sequence[Cell], label: str) -> Iterator[str]:
    """One block for each year: a column for each week, a row for each day of it."""
    for year, members in groupby(cells, key=lambda cell: _day(cell).year):
        first = date(year, 1, 1)
        days = list(members)
        body = "".join(_of_day(cell, first) for cell in days)
        columns = _column(date(year, 12, 31), first) + 1
        words = "".join(_text(0, _TOP + row * _STEP + 10, name) for row, name in ((0, "Mon"), (4, "Fri")))
        words += "".join(
            _text(_LEFT + _column(date(year, number, 1), first) * _STEP, 10, name)
            for number, name in enumerate(_MONTHS, start=1)
        )
        yield f'<p class="quiet">{year}</p>'
        yield _svg(_LEFT + columns * _STEP, _TOP + 7 * _STEP, f"{label}, {year}", words + body)


def _of_day(cell: Cell, first: date) -> str:
    day = _day(cell)
    return _titled(cell, _LEFT + _column(day, first) * _STEP, _TOP + day.weekday() * _STEP)


def _day(cell: Cell) -> date:
    return date.fromisoformat(cell.day or "")


def _column(day: date, first: date) -> int:
    return ((day - first).days + first.weekday()) // 7


def _titled(cell: Cell, x: int, y: int) -> str:
    what = cell.first if cell.partitions == 1 else f"{cell.first} to {cell.last} ({cell.partitions:,})"
    said = f"<title>{escape(what)}: {cell.status.value}</title>"
    return f"<g>{said}{''.join(_square(x, y, cell.status))}</g>"


def _square(x: int, y: int, status: PartitionStatus) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" rx="2" class="s-{status.value}"/>'
    if status in MARKS:
        yield f'<text class="mark" x="{x + _SIDE // 2}" y="{y + 9}">{MARKS[status]}</text>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(width: float, height: float, label: str, body: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{body}</svg>'
    )


# The time line: launches in lanes, each in the first lane that is free.

_WIDTH, _LANE, _BAR = 900, 16, 12


def time_line(lines: Sequence[LaunchLine], label: str) -> str:
    """A bar for each launch from when it was asked for: pale until it registered, marked where it was cut."""
    spans = [(line, *span) for line in lines if (span := _span(line)) is not None]
    if not spans:
        return ""
    start, end = min(one for _, one, _ in spans), max(one for _, _, one in spans)
    scale = (_WIDTH - 2 * _SIDE) / max(1.0, (end - start).total_seconds())
    body, lanes = [], 0
    for (line, begun, ended), lane in zip(spans, _lanes(spans), strict=True):
        lanes = max(lanes, lane + 1)
        left, right = ((one - start).total_seconds() * scale for one in (begun, ended))
        work = (line.registered_at or begun) - start
        body.append(_bar(line, left, work.total_seconds() * scale, right, lane * _LANE))
    height = lanes * _LANE + _TOP
    axis = f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{lanes * _LANE}" y2="{lanes * _LANE}"/>'
    ends = _text(0, height - 3, f"{start:%Y-%m-%d %H:%M:%S}")
    ends += _text(_WIDTH, height - 3, f"{end:%H:%M:%S} UTC", "end")
    return _svg(_WIDTH, height, label, axis + "".join(body) + ends)


def _span(line: LaunchLine) -> tuple[datetime, datetime] | None:
    begun = line.launched_at or line.registered_at
    ended = line.ended_at or line.registered_at or begun
    return None if begun is None or ended is None else (begun, max(begun, ended))


def _lanes(spans: Iterable[tuple[LaunchLine, datetime, datetime]]) -> Iterator[int]:
    """The lane of each: the lowest one whose last bar ended before this one begins."""
    free: list[int] = []
    busy: list[tuple[datetime, int]] = []
    lanes = 0
    for _, begun, ended in spans:
        while busy and busy[0][0] < begun:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, lanes)
            lanes += 1
        lane = heapq.heappop(free)
        heapq.heappush(busy, (ended, lane))
        yield lane


def _bar(line: LaunchLine, left: float, work: float, right: float, y: int) -> str:
    words = f"launch {line.launch}, slice {line.slice_id}: {line.how}"
    kind = "work" if line.clean else "unclean"
    parts = [f"<title>{escape(words)}</title>"]
    if work > left:
        parts.append(_rect(left, y, work - left, "t-cold"))
    parts.append(_rect(work, y, right - work, f"t-{kind}"))
    if not line.clean:
        x = min(right + 5, _WIDTH - 5)
        parts.append(f'<text class="mark cut" x="{x:.1f}" y="{y + 10}">X</text>')
    return f"<g>{''.join(parts)}</g>"


def _rect(x: float, y: int, width: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{max(1.5, width):.1f}" height="{_BAR}" class="{kind}"/>'
