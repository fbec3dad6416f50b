"""Rows of sources that hand out documents (JSON, CSV, items): canonical lines, spans, fetching by reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trueup.compare import Key, Layout, Missing, Span, in_blocks, reader
from trueup.compare.lines import ABSENT, NULL, unreadable
from trueup.model.reconcile import Side

__all__ = ["Document", "Normalise", "Placed", "blocks_of", "fetched", "line_maker"]

Document = Mapping[str, Any]

Placed = tuple[str, int, bytes]
"""The name of an object, the number of a row in it, and the row's canonical line."""


Normalise = Callable[[Document], Document]
"""A document as the source has it, to one that has what the columns name."""


def line_maker(
    layout: Layout, side: Side, absent: str = "kept", normalise: Normalise | None = None
) -> Callable[[Document], bytes]:
    """A function from a document to its canonical line; `absent` is `kept` or `null`.

    A document that `normalise` fails on becomes a line that cannot be read.
    """
    mark = NULL if absent == "null" else ABSENT
    parts = [(column.name_in(side), reader(column, side, mark)) for column in layout.columns]

    def line(document: Document) -> bytes:
        get = document.get
        return b"\t".join([read(get(name, Missing)) for name, read in parts])

    if normalise is None:
        return line
    make: Normalise = normalise

    def normalised(document: Document) -> bytes:
        try:
            return line(make(document))
        except Exception as error:  # whatever the job's code raises, this row alone cannot be compared
            return unreadable(f"normalise failed with {type(error).__name__}: {error}")

    return normalised


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
    """The lines whose keys, or the first columns of them, are asked for: all lines are read for it."""
    wanted, width = set(keys), len(keys[0]) if keys else 0
    found: dict[Key, list[bytes]] = defaultdict(list)
    for _, _, line in lines:
        key = layout.key_of(line)[:width]
        if key in wanted:
            found[key].append(line)
    for rows in found.values():
        rows.sort(key=layout.order_of)
    return found
