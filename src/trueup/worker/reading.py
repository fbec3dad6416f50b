"""Reading a partition: the author's batches, checked; begun again from the last cursor after a retry."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sized

from trueup.errors import JobError
from trueup.jobs import Backfill, Batch, Range
from trueup.model.plan import Partition
from trueup.worker.patience import Patience
from trueup.worker.telling import storable

_CURSOR = re.compile(r"v[0-9]+:")
_LONGEST_CURSOR = 4096


def read_batches(
    job: Backfill, part: Partition, after: str | None, patience: Patience
) -> Generator[Batch | Range, None, None]:
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

    def __init__(self, job: Backfill, part: Partition, after: str | None) -> None:
        self._job = job
        self._part = part
        self._after = after
        self._batches: Iterator[Batch | Range] | None = None

    def next(self) -> Batch | Range | None:
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
        return batch

    def close(self) -> None:
        """Let the author's generator run its `finally`."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def _check(self, batch: object) -> None:
        if not isinstance(batch, Batch | Range):
            raise JobError(
                f"read yielded {type(batch).__name__}.",
                remedy="Yield Batch(records, cursor) or Range(low, high, cursor).",
            )
        if isinstance(batch, Batch) and not _are_records(batch.records):
            raise JobError(
                f"read yielded a batch whose records are {type(batch.records).__name__}.",
                remedy="Give a list: a batch is worked as a whole, and after an error record by record.",
            )
        self._check_cursor(batch.cursor)

    def _check_cursor(self, cursor: object) -> None:
        if not _is_cursor(cursor):
            raise JobError(
                f"read yielded a batch with the cursor {str(cursor)[:100]!r}.",
                remedy="A cursor is text that begins with its version, 'v1:...', "
                f"of at most {_LONGEST_CURSOR} characters.",
            )
        if cursor == self._after:
            raise JobError(
                f"read yielded a second batch with the cursor {cursor!r}.",
                remedy="A cursor moves with each batch; who starts after it would work the second one again.",
            )


def _are_records(records: object) -> bool:
    # The records of a mapping would be its keys, those of text its characters.
    return isinstance(records, Sized) and not isinstance(records, Mapping | str | bytes)


def _is_cursor(cursor: object) -> bool:
    if not isinstance(cursor, str) or len(cursor) > _LONGEST_CURSOR:
        return False
    return _CURSOR.match(cursor) is not None and storable(cursor) == cursor


def _iterator(batches: object) -> Iterator[Batch | Range]:
    if not hasattr(batches, "__iter__"):
        raise JobError(
            f"read returned {type(batches).__name__}.", remedy="Yield batches, or return a list of them."
        )
    return iter(batches)
