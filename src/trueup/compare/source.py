"""What a source is to the comparer: rows as canonical lines, and a second look at some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from trueup.compare.layout import Key, Layout, Span
from trueup.compare.sorting import external_sort

__all__ = ["Applied", "Change", "Repairable", "Scan", "Source", "in_order"]


@dataclass(slots=True)
class Scan:
    """Rows of a source, as blocks of whole canonical lines.

    `ordered`: they ascend by their keys. `distinct`: the source itself warrants that and that each key is
    there once, so that nobody needs to look. `as_of`: the instant whose state this is, where it is known.
    A source that knows how many rows there must be raises SourceError after the last block if they were not.
    `counted`: how many rows there are by the source's own count of the same state, apart from the scan; it
    may be known only behind the last block. A block may be empty, where the source is at work beside reading.
    """

    blocks: Iterator[bytes]
    ordered: bool
    distinct: bool = False
    as_of: datetime | None = None
    counted: int | None = None


class Source(Protocol):
    """Rows with keys. All raise SourceError where they cannot be read as declared."""

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The rows whose keys are in the span; those without a key belong to the span without `low`.

        A source that is a picture of an earlier moment refuses where it is older than `as_of`.
        A row that cannot be read is a line with an unreadable field, never left out.
        """

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines, without newlines, of these keys as they are now; what is not there is left out.

        A key may be the first columns only; then it gives all rows that begin with it, in order.
        """


@dataclass(frozen=True, slots=True)
class Change:
    """One row to be repaired: what is there by the report, and what should be. None: no row.

    Both are canonical lines of the source's layout.
    """

    key: Key
    expected: bytes | None
    wanted: bytes | None


class Applied(StrEnum):
    """What a compare-and-set did."""

    APPLIED = "APPLIED"
    STALE_TARGET = "STALE_TARGET"  # the row is not as expected: nothing was changed


class Repairable(Protocol):
    """A source that can be repaired.

    One that keeps a connection from change to change also has `close()`, which is called after some of them;
    the next change makes a new one.
    """

    def apply(self, change: Change) -> Applied:
        """Make the row as wanted if it is as expected, in one conditional write; otherwise change nothing.

        Raises SourceError where the store does not take the row, and Transient, after which the row may have
        been changed: look again.
        """


def in_order(scan: Scan, layout: Layout, folder: Path | None = None) -> Iterator[bytes]:
    """The blocks of a scan, sorted where it is not ordered."""
    return scan.blocks if scan.ordered else external_sort(scan.blocks, layout, folder)
