"""The heat map of a run's partitions: a square for each, or for several where they are many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from trueup.model.ledger import PartitionItem
from trueup.model.report import Cell
from trueup.model.states import PartitionStatus

MOST_CELLS = 2_000

_P = PartitionStatus
# What one square of several partitions shows: the first of these that is among them.
WORST_FIRST = (
    _P.FAILED, _P.STUCK, _P.REFUSED, _P.REJECTED, _P.RUNNING, _P.REPORTED, _P.INTERRUPTED, _P.PENDING,
    _P.SKIPPED, _P.ACCEPTED,
)  # fmt: skip
_DAY = re.compile(r"date=(\d{4}-\d{2}-\d{2})")


def heat_map(items: Sequence[PartitionItem]) -> list[Cell]:
    """The squares in the order of the partitions' ids, numbers in them as numbers."""
    ordered = sorted(items, key=lambda item: _natural(item.partition_id))
    size = -(-len(ordered) // MOST_CELLS) or 1
    return [_cell(ordered[start : start + size]) for start in range(0, len(ordered), size)]


def _cell(items: Sequence[PartitionItem]) -> Cell:
    states = {item.status for item in items}
    return Cell(
        first=items[0].partition_id,
        last=items[-1].partition_id,
        partitions=len(items),
        status=next(status for status in WORST_FIRST if status in states),
        day=_day(items[0].partition_id) if len(items) == 1 else None,
    )


def _day(partition_id: str) -> str | None:
    found = _DAY.fullmatch(partition_id)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1]).isoformat()
    except ValueError:
        return None  # it only looks like one


def _natural(partition_id: str) -> list[tuple[int, int, str]]:
    parts = [part for part in re.split(r"([0-9]+)", partition_id) if part]
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts]
