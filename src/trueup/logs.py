"""Log lines: one JSON object each, which says of which run, slice, partition and launch it speaks."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

SUBJECTS = ("run", "slice", "partition", "launch")
"""On every line; null where it speaks of none, or of several."""

_about: ContextVar[Mapping[str, Any]] = ContextVar("about", default={})  # noqa: B039  never changed, only replaced


@contextmanager
def about(**known: Any) -> Iterator[None]:
    """Say of whom the lines within speak: some of SUBJECTS. They add to what is known around the block."""
    before = _about.set({**_about.get(), **known})
    try:
        yield
    finally:
        _about.reset(before)


class JsonLines(logging.Formatter):
    """One JSON object a line; `now` says of whom the whole process speaks, asked at each line."""

    def __init__(self, now: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._now = now

    def format(self, record: logging.LogRecord) -> str:
        """A record as JSON."""
        line: dict[str, Any] = {"level": record.levelname.lower(), "message": record.getMessage()}
        line |= dict.fromkeys(SUBJECTS) | dict(self._now()) | dict(_about.get())
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_as_json(now: Callable[[], Mapping[str, Any]] = dict) -> None:
    """Log to standard error, for people and CloudWatch Logs alike."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(now))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Where it found credentials is of no use to whoever reads a task's log.
    logging.getLogger("botocore").setLevel(logging.WARNING)
