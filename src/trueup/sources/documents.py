"""Rows of sources that hand out documents (JSON, CSV, items): canonical lines, spans, fetching by reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from trueup.compare import Key, Layout, Missing, Span, in_blocks, reader
from trueup.compare.layout import Order
from trueup.compare.lines import ABSENT, NULL, escape, unreadable
from trueup.model.reconcile import Side

__all__ = [
    "UNWANTED",
    "Document",
    "Normalise",
    "Placed",
    "Wanted",
    "blocks_of",
    "fetched",
    "line_maker",
]

Document = Mapping[str, Any]

Placed = tuple[str, int, bytes]
"""The name of an object, the number of a row in it, and the row's canonical line."""


Normalise = Callable[[Document], Document]
"""A document as the source has it, to one that has what the columns name."""


UNWANTED = b"\n"
"""Stands for the line of a document that was not asked for: no line holds a newline."""


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


def line_maker(
    layout: Layout,
    side: Side,
    absent: str = "kept",
    normalise: Normalise | None = None,
    wanted: Wanted | None = None,
) -> Callable[[Document], bytes]:
    """A function from a document to its canonical line, or UNWANTED; `absent` is `kept` or `null`.

    A document that `normalise` fails on becomes a line that cannot be read.
    """
    mark = NULL if absent == "null" else ABSENT
    parts = [(column.name_in(side), reader(column, side, mark)) for column in layout.columns]
    line = _whole(parts) if wanted is None or not wanted.width else _sparing(parts, wanted)
    if normalise is None:
        return line
    make: Normalise = normalise

    def normalised(document: Document) -> bytes:
        try:
            return line(make(document))
        except Exception as error:  # whatever the job's code raises, this row alone cannot be compared
            return unreadable(f"normalise failed with {type(error).__name__}: {error}")

    return normalised


Parts = Sequence[tuple[str, Callable[[Any], bytes]]]
"""The fields of a line: the name of each in a document, and what makes its value a field."""


def _whole(parts: Parts) -> Callable[[Document], bytes]:
    def line(document: Document) -> bytes:
        get = document.get
        return b"\t".join([read(get(name, Missing)) for name, read in parts])

    return line


def _sparing(parts: Parts, wanted: Wanted) -> Callable[[Document], bytes]:
    """The same, but for a row that is not wanted only the fields by which that is told are read."""
    first, others, test = parts[: wanted.width], parts[wanted.width :], wanted.test

    def line(document: Document) -> bytes:
        get = document.get
        head = b"\t".join([read(get(name, Missing)) for name, read in first])
        if not test(head):
            return UNWANTED
        return b"\t".join([head, *(read(get(name, Missing)) for name, read in others)])

    return line


def blocks_of(lines: Iterable[Placed], layout: Layout, span: Span, ordered: bool) -> Iterator[bytes]:
    """The lines of a span as blocks; where a line was found stands in for a key that it lacks."""
    return in_blocks(_chosen(lines, layout, span, ordered))


def _chosen(lines: Iterable[Placed], layout: Layout, span: Span, ordered: bool) -> Iterator[bytes]:
    within, order_of = layout.within(span), layout.order_of
    everything = span == Span()
    passed = span.after is None
    for name, number, line in lines:
        if everything and b"\\" not in line:  # no mark: all parts of the key are values of their types
            yield line
            continue
        try:
            order = order_of(line)
        except ValueError:
            # Rows without a key are of the first span; sorted they come first, else where they are.
            if span.low is None and passed:
                yield unreadable(f"{name}:{number}: {layout.why_unkeyed(line)}")
            continue
        if everything or within(order):
            passed = passed or ordered
            yield line


def fetched(lines: Iterable[Placed], layout: Layout, keys: Sequence[Key]) -> dict[Key, list[bytes]]:
    """The lines whose keys, or the first columns of them, are asked for: all lines are read for it.

    Rows without a whole key are left out: they are findings of their own.
    """
    wanted, width = set(keys), len(keys[0]) if keys else 0
    found: dict[Key, list[tuple[Order, bytes]]] = defaultdict(list)
    for _, _, line in lines:
        key = layout.key_of(line)[:width]
        if key in wanted:
            with suppress(ValueError):
                found[key].append((layout.order_of(line), line))
    return {key: [line for _, line in sorted(rows, key=itemgetter(0))] for key, rows in found.items()}
