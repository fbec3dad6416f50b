"""How much one answer holds, in bytes: Lambda gives back 6 MB at most."""

from __future__ import annotations

import json
from datetime import datetime

from trueup.model.base import Value, cut
from trueup.model.view import LogLine
from trueup.platform import Logs
from trueup.texts import in_json

MOST_BYTES = 5_000_000
"""Of an answer's entries as they travel: the body is a string in Lambda's JSON, so quotes count twice."""
LONGEST_LINE = 600_000
"""Bytes of one line: escaped as badly as can be it still fits, being seven times as long then."""


def size_of(entry: Value) -> int:
    """The bytes of an entry as it travels."""
    return len(json.dumps(in_json(entry.document())))


class Room:
    """What is left of an answer for entries."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._is_empty = True

    def takes(self, entry: Value) -> bool:
        """Whether one more fits, and is taken. The first always is, or no page would come further."""
        self._left -= size_of(entry)
        fits = self._left >= 0 or self._is_empty
        self._is_empty = False
        return fits


def lines_that_fit(
    logs: Logs, stream: str, *, limit: int, after: str | None
) -> tuple[list[LogLine], str | None]:
    """A page of a log, with fewer lines where they are long, and each cut that is longer than an answer.

    The marks are those of whoever keeps the log, at the end of a page: so a smaller one is asked for.
    Raises what `lines` of the log raises.
    """
    while True:
        found, more = logs.lines(stream, limit=limit, after=after)
        lines, room = [_line(at, message) for at, message in found], Room()
        if limit == 1 or all(map(room.takes, lines)):
            return lines, more
        limit = max(1, min(limit, len(lines)) // 2)


def _line(at: datetime, message: str) -> LogLine:
    return LogLine(at=at, message=cut(message, LONGEST_LINE))
