"""Input patterns such as `flights/{date}.csv`: which placeholders a job may use, and filling them in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trueup.model.job import DatePartitions, Partitioning

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_COMMON = ("label", "low", "high")
_DATE = {
    "hour": ("date", "year", "month", "day", "hour"),
    "day": ("date", "year", "month", "day"),
    "week": ("date", "year", "week"),
    "month": ("date", "year", "month"),
    "year": ("date", "year"),
}


def placeholders(settings: Partitioning) -> tuple[str, ...]:
    """What an input pattern of these partitions may name, the most specific first."""
    if isinstance(settings, DatePartitions):
        return _DATE[settings.unit] + _COMMON
    return ("label",) if settings.by == "list" else _COMMON


def unknown_placeholders(settings: Partitioning) -> list[str]:
    """The placeholders in the input pattern that nothing fills, and stray braces."""
    pattern = getattr(settings, "input", None) or ""
    allowed = placeholders(settings)
    unknown = [name for name in _PLACEHOLDER.findall(pattern) if name not in allowed]
    rest = _PLACEHOLDER.sub("", pattern)
    return unknown + [brace for brace in "{}" if brace in rest]


def fill(pattern: str | None, fields: Mapping[str, str]) -> str | None:
    """The pattern with its placeholders filled in; None stays None."""
    if pattern is None:
        return None
    return _PLACEHOLDER.sub(lambda match: fields[match[1]], pattern)


def varies(pattern: str | None) -> bool:
    """Whether the pattern names an input for each partition, so that no two may share one."""
    return pattern is not None and _PLACEHOLDER.search(pattern) is not None
