"""Timestamps as Step Functions reads and writes them: RFC 3339 with an offset, a capital T and Z."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)",
)

NANOS = 1_000_000_000
"""Nanoseconds of a second."""


def parse_timestamp(text: object) -> int | None:
    """Nanoseconds since 1970 of a timestamp, exactly; None where it is none.

    Without T, without Z or with a thirteenth month it is none; nanoseconds are fine
    (recorded on AWS: test_wait_timestamp_path).
    """
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    offset = "+00:00" if found[3] == "Z" else found[3]
    try:
        whole = datetime.fromisoformat(found[1] + offset).timestamp()
    except ValueError:
        return None
    # A double has no room for today's seconds with nine digits after the point.
    return int(whole) * NANOS + int((found[2] or "").ljust(9, "0"))


def iso_millis(seconds: float) -> str:
    """How the context object writes a time: 2026-11-29T19:40:01.123Z."""
    moment = datetime.fromtimestamp(round(seconds, 3), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
