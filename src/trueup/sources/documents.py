"""Rows of sources that hand out documents (JSON, CSV, items): canonical lines, spans, fetching by reading.

Rows go through in batches, of which each column is made canonical at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, Protocol

from trueup.compare import Key, Layout, Missing, ReadAll, Span, column_reader
from trueup.compare.layout import Order
from trueup.compare.lines import ABSENT, NULL, escape, unreadable
from trueup.model.reconcile import Side

__all__ = [
    "Batch",
    "Document",
    "Documents",
    "Make",
    "Normalise",
    "Rows",
    "Table",
    "Unread",
    "Wanted",
    "batch_maker",
    "blocks_of",
    "fetched",
    "in_batches",
    "line_maker",
    "unread",
]

Document = Mapping[str, Any]

Normalise = Callable[[Document], Document]
"""A document as the source has it, to one that has what the columns name."""

_ROWS = 500


@dataclass(frozen=True, slots=True)
class Batch:
    """The canonical lines of some rows of the object `name`, each with a newline, and their numbers in it.

    `read`: how many rows were read for it, with those that were not wanted. `keyed`: no key lacks a part.
    """

    name: str
    numbers: Sequence[int]
    block: bytes
    read: int
    keyed: bool

    @property
    def lines(self) -> list[bytes]:
        """The lines without their newlines."""
        return self.block.split(b"\n")[:-1]


class Unread(str):
    """What stands in for a document that cannot be read: why."""

    __slots__ = ()


class Rows(Protocol):
    """Some rows, seen by columns or as documents."""

    def column(self, name: str) -> Sequence[Any]:
        """The values of that name, `Missing` where a row has none."""

    def documents(self) -> Iterable[Document]:
        """The rows."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Rows that are documents."""

    rows: Sequence[Document]

    def column(self, name: str) -> Sequence[Any]:
        """The values of that name."""
        try:
            return list(map(itemgetter(name), self.rows))
        except KeyError:
            return [row.get(name, Missing) for row in self.rows]

    def documents(self) -> Iterable[Document]:
        """The rows."""
        return self.rows


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that are columns, all of the same length, of which there is at least one."""

    columns: Mapping[str, Sequence[Any]]

    def column(self, name: str) -> Sequence[Any]:
        """The values of that name."""
        if name in self.columns:
            return self.columns[name]
        return [Missing] * len(next(iter(self.columns.values())))

    def documents(self) -> Iterable[Document]:
        """The rows."""
        names = list(self.columns)
        return (dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True))


Make = Callable[[str, Sequence[int], Rows], Iterator[Batch]]
"""Makes rows of an object, with their numbers, batches of lines."""


def unread(name: str, number: int, what: str) -> Batch:
    """The batch of a row that cannot be read, which says why."""
    return Batch(name, (number,), unreadable(what) + b"\n", 1, False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are wanted, told by the first `width` fields of their lines: the others are not built.

    It may let rows pass that are not wanted; whoever reads the lines looks at their keys again.
    """

    width: int
    test: Callable[[bytes], bool]

    @classmethod
    def within(cls, layout: Layout, span: Span) -> Wanted | None:
        """The rows of a span, and those without a key; None for all rows."""
        if span == Span():
            return None
        # Of a row without a key the first span tells, which has to read all of it; to others it is nothing.
        bounds = [bound for bound in (span.low, span.high, span.after) if bound is not None]
        width = len(layout.key) if span.low is None else max(map(len, bounds))
        first = Layout(layout.key[:width])
        order_of, is_within = first.order_of, first.within(span)

        def test(head: bytes) -> bool:
            try:
                return is_within(order_of(head))
            except ValueError:
                return True

        return cls(width, test)

    @classmethod
    def among(cls, keys: Sequence[Key]) -> Wanted:
        """The rows of some keys, or of what begins with them."""
        heads = {b"\t".join(escape(text.encode("utf-8", "surrogateescape")) for text in key) for key in keys}
        # A value with a mark, or with something escaped, has to be read to be known.
        return cls(len(keys[0]) if keys else 0, lambda head: head in heads or b"\\" in head)


def batch_maker(
    layout: Layout,
    side: Side,
    absent: str = "kept",
    normalise: Normalise | None = None,
    wanted: Wanted | None = None,
) -> Make:
    """A function from rows to their lines, without those that are not wanted; `absent` is `kept` or `null`.

    A document that `normalise` fails on becomes a line that cannot be read.
    """
    mark = NULL if absent == "null" else ABSENT
    parts = [(column.name_in(side), column_reader(column, side, mark)) for column in layout.columns]

    def make(name: str, numbers: Sequence[int], rows: Rows) -> Iterator[Batch]:
        if wanted is None or not wanted.width:
            yield _whole(parts, len(layout.key), name, numbers, rows)
        else:
            yield _sparing(parts, wanted, name, numbers, rows)

    return make if normalise is None else _normalised(normalise, make)


def line_maker(
    layout: Layout, side: Side, absent: str = "kept", normalise: Normalise | None = None
) -> Callable[[Document], bytes]:
    """A function from one document to its canonical line; see `batch_maker`."""
    make = batch_maker(layout, side, absent, normalise)
    return lambda document: next(make("", (1,), Documents([document]))).block[:-1]


def _normalised(normalise: Normalise, make: Make) -> Make:
    def normal(document: Document) -> Document | Unread:
        try:
            return normalise(document)
        except Exception as error:  # whatever the job's code raises, this row alone cannot be compared
            return Unread(f"normalise failed with {type(error).__name__}: {error}")

    def made(name: str, numbers: Sequence[int], rows: Rows) -> Iterator[Batch]:
        return in_batches(name, zip(numbers, map(normal, rows.documents()), strict=True), make)

    return made


def in_batches(name: str, rows: Iterable[tuple[int, Document | Unread]], make: Make) -> Iterator[Batch]:
    """Single documents of an object, each with its number, made batches of lines."""
    numbers: list[int] = []
    documents: list[Document] = []
    for number, document in rows:
        if not isinstance(document, Unread):
            numbers.append(number)
            documents.append(document)
            if len(documents) < _ROWS:
                continue
        if documents:
            yield from make(name, numbers, Documents(documents))
            numbers, documents = [], []
        if isinstance(document, Unread):
            yield unread(name, number, document)
    if documents:
        yield from make(name, numbers, Documents(documents))


Parts = Sequence[tuple[str, ReadAll]]
"""The fields of a line: the name of each in a document, and what makes its values fields."""


def _whole(parts: Parts, keys: int, name: str, numbers: Sequence[int], rows: Rows) -> Batch:
    fields = [read(rows.column(attribute)) for attribute, read in parts]
    keyed = not any(
        "\\" in "".join(key) for key in fields[:keys]
    )  # no mark, so all are values of their types
    return Batch(name, numbers, _block(fields), len(numbers), keyed)


def _block(fields: Sequence[Sequence[str]]) -> bytes:
    return "\n".join([*_joined(fields), ""]).encode()


def _joined(fields: Sequence[Sequence[str]]) -> Iterable[str]:
    return map("\t".join, zip(*fields, strict=True)) if len(fields) > 1 else fields[0]


def _sparing(parts: Parts, wanted: Wanted, name: str, numbers: Sequence[int], rows: Rows) -> Batch:
    """The same, but of rows that are not wanted only the fields by which that is told are read."""
    first, others = parts[: wanted.width], parts[wanted.width :]
    fields = [read(rows.column(attribute)) for attribute, read in first]
    keep = [wanted.test(head.encode()) for head in _joined(fields)]
    if not any(keep):
        return Batch(name, (), b"", len(numbers), True)
    kept = [list(compress(column, keep)) for column in fields]
    kept += [read(list(compress(rows.column(attribute), keep))) for attribute, read in others]
    return Batch(name, list(compress(numbers, keep)), _block(kept), len(numbers), False)


def blocks_of(batches: Iterable[Batch], layout: Layout, span: Span, ordered: bool) -> Iterator[bytes]:
    """The lines of a span as blocks; where a line was found stands in for a key that it lacks."""
    chosen = _Chosen(layout, span, ordered)
    for batch in batches:
        block = batch.block if batch.keyed and span == Span() else chosen.block(batch)
        if block:
            yield block


class _Chosen:
    """What of batches is in a span."""

    def __init__(self, layout: Layout, span: Span, ordered: bool) -> None:
        self._layout = layout
        self._first = span.low is None
        self._within = layout.within(span)
        self._ordered = ordered
        self._passed = span.after is None

    def block(self, batch: Batch) -> bytes:
        """The lines of a batch that are in the span."""
        lines = map(self._of, repeat(batch.name), batch.numbers, batch.lines)
        return b"".join([line + b"\n" for line in lines if line is not None])

    def _of(self, name: str, number: int, line: bytes) -> bytes | None:
        try:
            order = self._layout.order_of(line)
        except ValueError:
            # Rows without a key are of the first span; sorted they come first, else where they are.
            if self._first and self._passed:
                return unreadable(f"{name}:{number}: {self._layout.why_unkeyed(line)}")
            return None
        if not self._within(order):
            return None
        self._passed = self._passed or self._ordered
        return line


def fetched(batches: Iterable[Batch], layout: Layout, keys: Sequence[Key]) -> dict[Key, list[bytes]]:
    """The lines whose keys, or the first columns of them, are asked for: all lines are read for it.

    Rows without a whole key are left out: they are findings of their own.
    """
    wanted, width = set(keys), len(keys[0]) if keys else 0
    found: dict[Key, list[tuple[Order, bytes]]] = defaultdict(list)
    for batch in batches:
        for line in batch.lines:
            key = layout.key_of(line)[:width]
            if key in wanted:
                with suppress(ValueError):
                    found[key].append((layout.order_of(line), line))
    return {key: [line for _, line in sorted(rows, key=itemgetter(0))] for key, rows in found.items()}
