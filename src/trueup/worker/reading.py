"""Reading a partition: the author's batches, checked; begun again from the last cursor after a retry."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, Protocol

from trueup.errors import JobError
from trueup.jobs import Batch, Range
from trueup.model.plan import Partition
from trueup.model.result import LONGEST_CURSOR
from trueup.texts import storable
from trueup.worker.batches import WorkedBatch
from trueup.worker.patience import Patience
from trueup.worker.telling import describe

_CURSOR = re.compile(r"v[0-9]+:")
# A task may work millions of batches, so it remembers the latest cursors only: enough for a read that goes
# round in circles or takes a page twice. `check_backfill` compares them all.
_REMEMBERED_CURSORS = 1_000


AnyBatch = Batch | Range | WorkedBatch


class Readable(Protocol):
    """What is read: a job, or a comparison."""

    def read(self, part: Partition, after: str | None) -> Iterator[Any]:
        """The batches after a cursor."""


def read_batches(
    job: Readable, part: Partition, after: str | None, patience: Patience
) -> Generator[AnyBatch, None, None]:
    """The batches after a cursor.

    Raises JobError for a batch that is none, and what the author's `read` raises.

    Closed, it closes the author's generator, and with it what that has open.
    """
    reader = _Reader(job, part, after)
    try:
        while (batch := patience.call("read", reader.next)) is not None:
            yield batch
    finally:
        reader.close()


class _Reader:
    """A generator that raised is over, so what may be retried begins a new one after the last batch."""

    def __init__(self, job: Readable, part: Partition, after: str | None) -> None:
        self._job = job
        self._part = part
        self._after = after
        self._passed: deque[str] = deque([] if after is None else [after], _REMEMBERED_CURSORS)
        self._covered: Range | None = None
        self._batches: Iterator[AnyBatch] | None = None

    def next(self) -> AnyBatch | None:
        """The next batch, or None at the end."""
        if self._batches is None:
            self._batches = _iterator(self._job.read(self._part, self._after))
        try:
            batch = next(self._batches, None)
        except Exception:
            self._batches = None
            raise
        if batch is not None:
            self._check(batch)
            self._after = batch.cursor
            self._passed.append(batch.cursor)
        return batch

    def close(self) -> None:
        """Let the author's generator run its `finally`."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def _check(self, batch: object) -> None:
        if isinstance(batch, WorkedBatch):
            self._check_cursor(batch.cursor)
            return
        if not isinstance(batch, Batch | Range):
            remedy = "Yield Batch(records, cursor) or Range(low, high, cursor)."
            raise self._wrong(type(batch).__name__, remedy)
        if isinstance(batch, Batch) and not _are_records(batch.records):
            raise self._wrong(
                f"a batch whose records are {type(batch.records).__name__}",
                "Give a list: a batch is worked as a whole, and after an error record by record.",
            )
        self._check_cursor(batch.cursor)
        if isinstance(batch, Range):
            self._check_range(batch)

    def _check_cursor(self, cursor: object) -> None:
        if not _is_cursor(cursor):
            raise self._wrong(
                f"a batch with the cursor {str(cursor)[:100]!r}",
                "A cursor is text that begins with its version, 'v1:...', "
                f"of at most {LONGEST_CURSOR} characters.",
            )
        if cursor in self._passed:
            raise self._wrong(
                f"a second batch with the cursor {str(cursor)[:100]!r}",
                "A cursor moves on with each batch and never comes back; "
                "who starts after it would work the second one again.",
            )

    def _check_range(self, part: Range) -> None:
        try:
            covered = _covered_with(self._covered, part)
        except Exception:
            return  # Bounds are the author's: what cannot be compared proves nothing.
        if covered is None:
            before = self._covered or part
            raise self._wrong(
                f"a range from {describe(part.low)} to {describe(part.high)}, "
                f"which does not lie apart from {describe(before.low)} to {describe(before.high)},",
                "A range includes `low` and not `high`; "
                "let each begin where the one before it ended, or later, or let all go downwards.",
            )
        self._covered = covered

    def _wrong(self, what: str, remedy: str) -> JobError:
        job = type(self._job).__name__
        return JobError(f"{job}.read yielded {what} in partition {self._part.id}.", remedy=remedy)


def _covered_with(covered: Range | None, part: Range) -> Range | None:
    """From the first to the last that ranges reach, this one too; None where it overlaps or runs backwards.

    Raises whatever comparing the bounds does.
    """
    if part.high < part.low:
        return None
    if covered is None:
        return part
    if part.low >= covered.high:
        return replace(covered, high=part.high)
    if part.high <= covered.low:
        return replace(covered, low=part.low)
    return None


def _are_records(records: object) -> bool:
    # The records of a mapping would be its keys, those of text its characters.
    return isinstance(records, Sized) and not isinstance(records, Mapping | str | bytes)


def _is_cursor(cursor: object) -> bool:
    if not isinstance(cursor, str) or len(cursor) > LONGEST_CURSOR:
        return False
    return _CURSOR.match(cursor) is not None and storable(cursor) == cursor


def _iterator(batches: object) -> Iterator[AnyBatch]:
    if not hasattr(batches, "__iter__"):
        raise JobError(
            f"read returned {type(batches).__name__}.", remedy="Yield batches, or return a list of them."
        )
    return iter(batches)
