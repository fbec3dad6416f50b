"""Files of JSON Lines are read in pieces, and each line is told as if it were alone."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.compare import Layout, Missing, Span
from trueup.compare.lines import is_unreadable
from trueup.model.reconcile import Column, ColumnType, Side
from trueup.sources import objects
from trueup.sources.documents import (
    Batch,
    Documents,
    Table,
    Unread,
    Wanted,
    batch_maker,
    blocks_of,
    in_batches,
    line_maker,
)
from trueup.sources.objects import read_json

from .compare_cases import CASES

LAYOUT = Layout(
    (Column(name="id", type=ColumnType.INTEGER),),
    (Column(name="amount", type=ColumnType.DECIMAL), Column(name="v", type=ColumnType.TEXT)),
)
thorough = settings(
    max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DOCUMENTS = st.fixed_dictionaries(
    {"id": st.integers()}, optional={"amount": st.sampled_from(["1.10", 2, None]), "v": st.text(max_size=5)}
)
OTHERS = [
    *(b"", b" ", b"{", b"}", b"[]", b"1", b'{"id":1}{"id":2}', b'{"id":1},{"id":2}'),
    *(b' {"id":1}', b'{"id":1} ', b'{"id":1}\r', b"\xef\xbb\xbf{}", b"[" * 100_000),
    *(b'{"id":NaN}', b'{"id":1,"v":"\xff"}', b'{"id":1,"v":"\t"}', b'{"id":1,"v":"\\ud800"}'),
    *(b'{"id":1,"amount":1.10}', b'{"id":9007199254740993,"amount":0.100000000000000001}'),
    *(b'{"id":1,"amount":1e9999999999999999999}', b'\xa0{"id":1}', b'\x0b{"id":1}', b'\t{"id":1}\r'),
    *(b'{"id":12345678901234567890123}', b'{"id":1,"id":2}', b'{"id":1.0,"amount":1e9999}'),
    # Each is no object, and several together would be one, or as many as there are lines.
    *(b'{"id":1,"a":[{}', b"{}]}", b'{"id":1', b'"v":"a"}', b'{"id":[1', b"2]}", b"{},{}"),
]
LINES = st.lists(DOCUMENTS.map(lambda one: json.dumps(one).encode()) | st.sampled_from(OTHERS), max_size=12)


def alone(number: int, raw: bytes) -> Iterator[tuple[int, bytes | None]]:
    """What must be told of a line: its number and canonical line, None for one that cannot be read."""
    try:
        text = raw.decode()
        document = json.loads(text, parse_float=Decimal, parse_constant=int)
    except (ValueError, ArithmeticError, RecursionError):
        document = None
    if isinstance(document, dict):
        yield number, line_maker(LAYOUT, Side.TRUTH)(document)
    elif raw.strip():
        yield number, None


def told(batch: Batch) -> Iterator[tuple[int, bytes | None]]:
    assert batch.read == len(batch.numbers) == len(batch.lines)
    for number, line in zip(batch.numbers, batch.lines, strict=True):
        unread = line.startswith(b"\\?") and b"\t" not in line
        assert not unread or f"f.jsonl:{number}: ".encode() in line
        yield number, None if unread else line


@thorough
@given(lines=LINES, ends=st.booleans(), piece=st.integers(1, 200))
def test_each_line_is_told_as_if_it_were_alone(lines: list[bytes], ends: bool, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "_BATCH_BYTES", piece)
        data = b"\n".join(lines) + b"\n" * ends
        made = read_json("f.jsonl", io.BytesIO(data), batch_maker(LAYOUT, Side.TRUTH))
        expected = [one for number, raw in enumerate(io.BytesIO(data), 1) for one in alone(number, raw)]
        assert expected == [one for batch in made for one in told(batch)]


def test_plain_lines_go_through_together() -> None:
    data = b"".join(b'{"id":%d}\n' % number for number in range(1_000))
    batches = list(read_json("f.jsonl", io.BytesIO(data), batch_maker(LAYOUT, Side.TRUTH)))
    assert [range(1, 1_001)] == [batch.numbers for batch in batches]
    assert all(batch.keyed for batch in batches)


@thorough
@given(rows=st.lists(DOCUMENTS, min_size=1), low=st.integers(-5, 5), high=st.integers(-5, 5))
def test_of_a_span_the_same_rows_come_however_they_are_held(
    rows: list[dict[str, Any]], low: int, high: int
) -> None:
    span = Span(low=(str(low),), high=(str(high),))
    make = batch_maker(LAYOUT, Side.TRUTH, wanted=Wanted.within(LAYOUT, span))
    line = line_maker(LAYOUT, Side.TRUTH)
    expected = [line(row) for row in rows if low <= row["id"] < high]
    columns = {name: [row.get(name, Missing) for row in rows] for name in ("id", "amount", "v")}
    numbers = range(1, len(rows) + 1)
    for held in (Documents(rows), Table(columns)):
        batches = list(make("a", numbers, held))
        assert len(rows) == sum(batch.read for batch in batches)
        assert expected == b"".join(blocks_of(batches, LAYOUT, span, ordered=False)).splitlines()


def test_a_column_that_a_table_lacks_is_absent_in_all_its_rows() -> None:
    (batch,) = batch_maker(LAYOUT, Side.TRUTH)("a", range(1, 3), Table({"id": [1, 2], "v": ["x", "y"]}))
    assert [rb"1\t\A\tx".replace(rb"\t", b"\t"), rb"2\t\A\ty".replace(rb"\t", b"\t")] == batch.lines


def test_a_row_that_cannot_be_read_stays_in_its_place() -> None:
    rows = [(1, {"id": 1}), (2, Unread("why")), (5, Unread("why too")), (7, {"id": 7})]
    batches = list(in_batches("a", rows, batch_maker(LAYOUT, Side.TRUTH)))
    assert [[1], [2], [5], [7]] == [list(batch.numbers) for batch in batches]
    assert [False, True, True, False] == [is_unreadable(batch.block) for batch in batches]


def test_a_row_on_which_normalise_fails_is_told_in_its_place() -> None:
    def normalise(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"id": 10 // row["id"]}

    make = batch_maker(LAYOUT, Side.TRUTH, "null", normalise)
    batches = list(make("a", range(3, 6), Documents([{"id": 1}, {"id": 0}, {"id": 2}])))
    assert [[3], [4], [5]] == [list(batch.numbers) for batch in batches]
    assert rb"\?normalise failed with ZeroDivisionError" in batches[1].block
    assert b"5\t\\N\t\\N\n" == batches[2].block
