"""Pairs of sides with known damage, and what an independent look at them says must be found."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from trueup.compare import Finding, Kind, Layout
from trueup.compare.lines import NULL, escape
from trueup.model.reconcile import Column, ColumnType

CASES = int(os.environ.get("CASES", "300"))
"""How many pairs each property is tried on; `CASES=10000 make test` tries more."""

Row = tuple[Any, ...]
"""The values of a row, those of its key first; None is NULL."""

# Texts whose order differs between collations, UTF-8 and UTF-16, or that look alike.
TEXTS = [
    *(
        "",
        "a",
        "B",
        "b",
        "Ä",
        "z",
        "a b",
        "ab",
        "a-b",
        "\\N",
        "NULL",
        "\\",
        "\\?",
        "\t",
        "a\nb",
        "\r",
        "0",
        "10",
        "9",
    ),
    *("\u00e9", "e\u0301", "\uff61", "\U0001f600", "ﬁ", "fi", "\x00", "\x0b", "ß", "ss"),
]
NUMBERS = [0, 1, -1, 2, 9, 10, 99, 100, 2**53, 2**53 + 1, -(2**63), 10**30]

INTEGER_KEY = Layout((Column(name="id", type=ColumnType.INTEGER),), (Column(name="v", type=ColumnType.TEXT),))
TEXT_KEY = Layout((Column(name="id", type=ColumnType.TEXT),), (Column(name="v", type=ColumnType.TEXT),))
TWO_KEYS = Layout(
    (Column(name="id", type=ColumnType.TEXT), Column(name="no", type=ColumnType.INTEGER)),
    (Column(name="v", type=ColumnType.TEXT),),
)
KEY_ONLY = Layout((Column(name="id", type=ColumnType.TEXT),))

values = st.none() | st.sampled_from(TEXTS)
rows = {
    INTEGER_KEY: st.tuples(st.sampled_from(NUMBERS) | st.integers(0, 50), values),
    TEXT_KEY: st.tuples(st.sampled_from(TEXTS) | st.text(max_size=3), values),
    TWO_KEYS: st.tuples(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), values),
    KEY_ONLY: st.tuples(st.sampled_from(TEXTS) | st.text(max_size=3)),
}


def line(row: Row) -> bytes:
    """The canonical line of a row, written here once more: NULL, and text with its escapes."""
    return b"\t".join(
        NULL if value is None else escape(str(value).encode("utf-8", "replace")) for value in row
    )


def order(row: Row, layout: Layout) -> tuple[Any, ...]:
    """The key of a row as it is ordered: numbers by value, texts by their bytes in UTF-8."""
    key = row[: len(layout.key)]
    return tuple(value if isinstance(value, int) else value.encode("utf-8", "replace") for value in key)


def in_key_order(side: Iterable[Row], layout: Layout) -> list[Row]:
    return sorted(side, key=lambda row: order(row, layout))


@st.composite
def pairs(draw: st.DrawFn, layout: Layout, unique: bool = False) -> tuple[list[Row], list[Row]]:
    """Two sides: mostly the same rows, with some left out, changed, added and, unless `unique`, repeated."""
    by = (lambda row: order(row, layout)) if unique else None
    row = rows[layout]
    common = draw(st.lists(row, max_size=40, unique_by=by))
    sides = []
    for _ in range(2):
        kept = [one for one in common if draw(st.integers(0, 9))]
        changed = [draw(row) if not draw(st.integers(0, 9)) else one for one in kept]
        side = changed + draw(st.lists(row, max_size=3))
        if unique:
            side = list({order(one, layout): one for one in side}.values())
        sides.append(side)
    return sides[0], sides[1]


def blocks(side: Sequence[Row], cuts: Iterator[int]) -> Iterator[bytes]:
    """A side as blocks of whole lines, of as many rows as `cuts` says."""
    at = 0
    while at < len(side):
        size = next(cuts)
        yield b"".join(line(row) + b"\n" for row in side[at : at + size])
        at += size


def expected(truth: Sequence[Row], target: Sequence[Row], layout: Layout) -> dict[tuple[Any, ...], Kind]:
    """What is wrong with which key, found without order, blocks or merging."""
    sides = []
    for side in (truth, target):
        found = defaultdict(list)
        for row in side:
            found[order(row, layout)].append(row)
        sides.append(found)
    ours, theirs = sides
    wrong = {}
    for key in ours.keys() | theirs.keys():
        if len(ours[key]) > 1 or len(theirs[key]) > 1:
            wrong[key] = Kind.DUPLICATE
        elif not theirs[key]:
            wrong[key] = Kind.MISSING
        elif not ours[key]:
            wrong[key] = Kind.EXTRA
        elif ours[key] != theirs[key]:
            wrong[key] = Kind.MISMATCHED
    return wrong


def found(findings: Iterable[Finding], layout: Layout) -> dict[tuple[Any, ...], Kind]:
    """What was found, by key; each key once."""
    by_key = {}
    for finding in findings:
        assert finding.key is not None
        key = layout.order_of_key(finding.key)
        key = key if isinstance(key, tuple) else (key,)
        assert key not in by_key
        by_key[key] = finding.kind
    return by_key


def column(kind: str, **more: Any) -> Column:
    """A column `v` of a type."""
    return Column.model_validate({"name": "v", "type": kind, **more})


def layout(kind: str, **more: Any) -> Layout:
    """An integer key, and a column `v` of a type."""
    return Layout((Column(name="id", type=ColumnType.INTEGER),), (column(kind, **more),))
