"""Rows in memory as the sources of a reconciliation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trueup.compare import Applied, Change, Key, Layout, Scan, Source, Span, row_document
from trueup.model.reconcile import Side
from trueup.sources.documents import Batch, Normalise, batch_maker, blocks_of, fetched, in_batches, line_maker

__all__ = ["MemoryRows", "rows_opener"]

Row = Mapping[str, Any]


class MemoryRows:
    """Rows as documents: numbers are int or Decimal, all else is text. They may change between reads."""

    def __init__(
        self, rows: Sequence[Row], layout: Layout, side: Side, normalise: Normalise | None = None
    ) -> None:
        self._rows = rows
        self._layout = layout
        self._side = side
        self._make = batch_maker(layout, side, "null", normalise)
        self._line = line_maker(layout, side, "null", normalise)

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The rows whose keys are in the span, in no order."""
        counted = len(self._rows) if span == Span() else None
        blocks = blocks_of(self._batches(), self._layout, span, ordered=False)
        return Scan(blocks, ordered=False, counted=counted)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys."""
        return fetched(self._batches(), self._layout, keys)

    def apply(self, change: Change) -> Applied:
        """Make one row as wanted if it is as expected. The rows are a list of dictionaries."""
        rows = self._rows
        assert isinstance(rows, list)
        lines = map(self._line, rows)
        at = next((n for n, line in enumerate(lines) if self._layout.key_of(line) == change.key), None)
        if (None if at is None else self._line(rows[at])) != change.expected:
            return Applied.STALE_TARGET
        if at is not None:
            was = rows.pop(at)
            if change.wanted is not None:
                rows.insert(at, {**was, **self._row(change.wanted)})
        elif change.wanted is not None:
            rows.append(self._row(change.wanted))
        return Applied.APPLIED

    def _row(self, line: bytes) -> dict[str, Any]:
        found = row_document(self._layout, line.split(b"\t"))
        compared = [column for column in self._layout.columns if column.compared]
        return {one.name_in(self._side): found[one.name] for one in compared if one.name in found}

    def _batches(self) -> Iterator[Batch]:
        return in_batches(self._side.value, enumerate(self._rows, 1), self._make)


def rows_opener(rows: Mapping[str, Sequence[Row]]) -> Callable[..., Source]:
    """What opens the sources of a LocalRun: the rows of `truth` and `target`, whatever the job file says."""

    def opened(
        spec: object, layout: Layout, side: Side, secret: object, normalise: Normalise | None = None
    ) -> Source:
        return MemoryRows(rows[side.value], layout, side, normalise)

    return opened
