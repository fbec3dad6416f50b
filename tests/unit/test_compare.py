"""The parts of the comparer: lines, values, findings, memory."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import (
    Kind,
    Layout,
    Missing,
    compare,
    external_sort,
    fingerprint,
    json_lines,
    reader,
)
from trueup.compare.lines import ABSENT, NULL, escape, is_unreadable, unescape
from trueup.compare.streams import common_prefix
from trueup.compare.values import differences
from trueup.model.reconcile import Column, ColumnType, Side

from .compare_cases import CASES, column, layout

NOON = datetime(2026, 7, 6, 12, tzinfo=UTC)


# Lines.


@settings(max_examples=CASES, deadline=None)
@given(st.binary(max_size=30))
def test_a_value_survives_its_escape_and_is_no_mark(value: bytes) -> None:
    field = escape(value)
    assert value == unescape(field)
    assert not set(b"\t\n\r") & set(field)
    assert field not in (NULL, ABSENT)
    assert not is_unreadable(b"1\t" + field)


# Where the strides of the comparison end.
STRIDES = st.sampled_from([end + by for end in (512, 1_536) for by in (-1, 0, 1)])


@settings(max_examples=CASES, deadline=None)
@given(
    length=st.integers(0, 3_000),
    differs=STRIDES | st.integers(0, 3_000),
    starts=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_the_common_prefix_ends_at_the_first_byte_that_differs(
    length: int, differs: int, starts: tuple[int, int]
) -> None:
    one = bytes(index % 251 for index in range(length))
    other = one[:differs] + b"\xff" + one[differs + 1 :]
    padded = [b"x" * start + text for start, text in zip(starts, (one, other), strict=True)]
    assert min(length, differs) == common_prefix(padded[0], starts[0], padded[1], starts[1])


# Reading.

DEEP = reduce(lambda inner, _: [inner], range(900), list[Any]())  # Python reads it, and cannot go through it
NO_DOCUMENT = "other text, and too deep or too large to compare as a document"
READ = [
    ("integer", {}, 5, b"5"),
    ("integer", {}, Decimal("5.0"), b"5"),
    ("integer", {}, "007", b"7"),
    ("integer", {}, "5.5", None),
    ("integer", {}, True, None),
    ("integer", {}, "", None),
    ("integer", {"times": "100"}, "0.05", b"5"),
    ("decimal", {}, "1.10", b"1.1"),
    ("decimal", {}, Decimal("1E+3"), b"1000"),
    ("decimal", {}, Decimal("1E+999999"), None),  # it would be a megabyte of zeros
    ("decimal", {}, "-0.0", b"0"),
    ("decimal", {}, ".5", b"0.5"),
    ("decimal", {}, "1_000", None),
    ("decimal", {}, "1e3", b"1000"),
    ("decimal", {}, "1\u0661", None),  # an Arabic digit
    ("decimal", {}, 0.1, None),  # a float has lost its digits
    ("decimal", {"times": "0.01"}, 110, b"1.1"),
    ("decimal", {}, "NaN", b"NaN"),
    ("decimal", {}, " 1", None),
    ("text", {}, 5, None),
    ("text", {}, "\ud800", None),
    ("text", {"nulls": ["NA"]}, "NA", NULL),
    ("text", {"nulls": ["NA"]}, "", b""),
    ("boolean", {}, "TRUE", b"t"),
    ("boolean", {}, 1, None),
    ("timestamp", {}, "2013-01-05T12:00:00Z", b"2013-01-05 12:00:00+00"),
    ("timestamp", {}, "2013-01-05 12:00:00.500000000+01:00", b"2013-01-05 11:00:00.5+00"),
    ("timestamp", {}, "2013-01-05T12:00:00.1234567Z", None),  # finer than what is compared
    ("timestamp", {}, "2013-01-05T12:00:00", None),  # in which zone?
    ("timestamp", {"zone": "Europe/Paris"}, "2013-07-01T12:00:00", b"2013-07-01 10:00:00+00"),
    ("timestamp", {"zone": "Europe/Paris"}, "2013-10-27T02:30:00", None),  # it was that twice
    ("timestamp", {"zone": "Europe/Paris"}, "2013-03-31T02:30:00", None),  # it was never that
    ("timestamp", {}, "2013-13-05T12:00:00Z", None),
    ("timestamp", {"format": "milliseconds"}, 1357387200500, b"2013-01-05 12:00:00.5+00"),
    ("timestamp", {"format": "seconds"}, Decimal("1357387200.0000001"), None),
    ("date", {}, "2013-02-30", None),
    ("date", {}, "20130203", None),
    ("uuid", {}, "{0F8FAD5BD9CB469FA16570867728950E}", b"0f8fad5b-d9cb-469f-a165-70867728950e"),
    ("bytes", {}, "AP8=", rb"\\x00ff"),
    ("bytes", {"encoding": "hex"}, "\\x00ff", rb"\\x00ff"),
    ("bytes", {}, "A", None),
    ("json", {}, {"b": Decimal("1.0"), "a": [None, True]}, b'{"a":[null,true],"b":1}'),
    ("json", {}, DEEP, None),
    ("decimal", {}, None, NULL),
    ("decimal", {}, Missing, ABSENT),
]


@pytest.mark.parametrize(("kind", "reading", "value", "field"), READ)
def test_a_value_is_read_as_its_type_or_not_at_all(
    kind: str, reading: dict[str, Any], value: Any, field: bytes | None
) -> None:
    read = reader(column(kind, truth=reading), Side.TRUTH)(value)
    assert is_unreadable(read) if field is None else field == read


def test_a_number_of_more_digits_than_python_writes_is_unreadable() -> None:
    assert is_unreadable(reader(column("integer"), Side.TRUTH)(10**5_000))


# Comparing.

ALIKE = [
    ("decimal", {"tolerance": "0.01"}, b"1", b"1.01", None),  # inclusive
    ("decimal", {"tolerance": "0.01"}, b"1", b"1.010000000000000001", "apart by more than 0.01"),
    (
        "decimal",
        {"tolerance": "0"},
        b"1",
        b"1.000000000000000000000000000000000000001",
        "apart by more than 0",
    ),
    (  # more digits than Python's decimals keep by default
        "decimal",
        {"tolerance": "999999999999999999999999999999.9999999999"},
        b"1000000000000000000000000000000",
        b"0.0000000001",
        None,
    ),
    ("decimal", {"tolerance": "1"}, b"NaN", b"1", "other value"),
    ("integer", {}, b"9007199254740993", b"9007199254740992", "other value"),
    ("integer", {"tolerance": 5}, NULL, b"0", "NULL in truth, a value in target"),
    ("text", {}, NULL, b"", "NULL in truth, empty in target"),
    ("text", {}, ABSENT, NULL, "absent in truth, NULL in target"),
    ("text", {}, b"", b"x", "empty in truth, a value in target"),
    ("text", {}, "é".encode(), "e\u0301".encode(), "other Unicode form"),
    ("text", {"normal": "NFC"}, "é".encode(), "e\u0301".encode(), None),
    ("text", {"normal": "NFC"}, "ﬁ".encode(), b"fi", "other value"),
    ("text", {"normal": "NFKC"}, "ﬁ".encode(), b"fi", None),
    ("timestamp", {"tolerance": "0.5"}, b"2013-01-05 12:00:00+00", b"2013-01-05 12:00:00.5+00", None),
    (
        "timestamp",
        {"tolerance": "0.5"},
        b"2013-01-05 12:00:00+00",
        b"2013-01-05 12:00:00.500001+00",
        "apart by more than 0.5 s",
    ),
    ("timestamp", {"tolerance": "1"}, b"infinity", b"2013-01-05 12:00:00+00", "other value"),
    ("json", {}, b'{"a": 1.0, "b": [true]}', b'{"b":[true],"a":1}', None),
    ("json", {}, b'{"a": true}', b'{"a": 1}', "other value"),
    ("json", {}, b"[" * 900 + b"]" * 900, b"1", NO_DOCUMENT),
    ("json", {}, b"1e9999999999999999999", b"1", NO_DOCUMENT),
    ("decimal", {}, rb"\?x", rb"\?x", "unreadable in truth and target: no decimal"),
    ("decimal", {}, rb"\?x", b"1", "unreadable in truth: no decimal"),
    ("text", {"compared": False}, b"a", b"b", None),
]


@pytest.mark.parametrize(("kind", "more", "truth", "target", "reason"), ALIKE)
def test_fields_that_differ_in_their_bytes(
    kind: str, more: dict[str, Any], truth: bytes, target: bytes, reason: str | None
) -> None:
    found = differences(layout(kind, **more))(b"1\t" + truth, b"1\t" + target)
    assert [reason] * (reason is not None) == [one.reason for one in found]


def test_the_same_unreadable_value_on_both_sides_is_no_match() -> None:
    side = [b"1\ta\n2\t\\?x\n3\tc\n"]
    (step,) = compare(side, side, layout("text"), proved=True)
    assert [(Kind.UNREADABLE, ("2",))] == [(one.kind, one.key) for one in step.findings]
    assert (2, 1, True) == (step.counts.matched, step.counts.unreadable, step.counts.rows_add_up)


def test_a_text_that_looks_like_a_mark_is_a_text() -> None:
    side = [b"1\t" + escape(rb"\?x") + b"\n"]
    (step,) = compare(side, side, layout("text"))
    assert ((), 1) == (step.findings, step.counts.matched)


def test_rows_without_a_key_are_told_by_side_and_hide_nothing() -> None:
    truth, target = [b"\\N\ta\n1\tb\nx\tc\n1\td\n2\te\n"], [b"1\tb\n2\te\n"]
    (step,) = compare(truth, target, layout("text"))
    assert [
        (Kind.UNREADABLE, None, "key column id is NULL"),
        (Kind.UNREADABLE, None, "key column id is no integer"),
        (Kind.DUPLICATE, ("1",), "1 rows in truth, 0 in target"),
    ] == [(one.kind, one.key, one.detail) for one in step.findings]
    assert step.counts.rows_add_up


def test_findings_hold_no_values_unless_asked() -> None:
    (step,) = compare([b"1\tsecret\n"], [b"1\thidden\n"], layout("text"))
    (masked,), (shown,) = json_lines(step.findings), json_lines(step.findings, shown=True)
    assert b"secret" not in masked
    assert b"hidden" not in masked
    assert {"name": "v", "reason": "other value", "truth": "secret", "target": "hidden"} in json.loads(shown)[
        "fields"
    ]
    assert fingerprint(b"1\tsecret") == json.loads(masked)["truth"]


def test_a_row_that_changed_after_the_instant_is_newer() -> None:
    columns = Layout(
        (Column(name="id", type=ColumnType.INTEGER),),
        (column("text"), Column(name="at", type=ColumnType.TIMESTAMP, compared=False)),
        version="at",
    )
    truth = [b"1\ta\t2026-07-06 12:00:00+00\n2\ta\t2026-07-06 12:00:00+00\n3\tc\t\\N\n"]
    target = [
        b"1\tb\t2026-07-06 11:00:00+00\n2\tb\t2026-07-06 12:00:00.000001+00\n3\tc\t2026-07-06 13:00:00+00\n"
    ]
    (step,) = compare(truth, target, columns, as_of=NOON)
    assert [("1", False), ("2", True)] == [(one.key[0], one.newer) for one in step.findings if one.key]
    assert (1, 2, 1) == (step.counts.matched, step.counts.mismatched, step.counts.newer)


# Sorting.


def test_more_runs_than_are_merged_at_once_keep_the_order_of_rows_of_one_key(tmp_path: Path) -> None:
    of = layout("integer")
    rows = [(number * 7_919 % 100, number) for number in range(700)]
    lines = [b"%d\t%d\n" % row for row in rows] + [b"\\N\t0\n"]
    ordered = b"".join(external_sort(lines, of, tmp_path, run_bytes=1))  # each line is a run of its own
    assert [b"\\N\t0", *(b"%d\t%d" % row for row in sorted(rows))] == ordered.splitlines()
    assert [] == list(tmp_path.iterdir())


# Memory.


def test_memory_depends_neither_on_rows_nor_on_differences() -> None:
    def side(rows: int, value: int) -> Iterator[bytes]:
        numbers = iter(range(rows))
        while some := list(itertools.islice(numbers, 1_000)):
            yield b"".join(b"%d\t%d\n" % (n, value if n % 3 else 0) for n in some)

    def peak(rows: int) -> int:
        tracemalloc.start()
        found = sum(len(step.findings) for step in compare(side(rows, 1), side(rows, 2), layout("integer")))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows * 2 // 3 - 1 <= found
        return peak

    peak(1_000)
    small, large = peak(5_000), peak(40_000)
    assert large < small * 1.2


# Invariants, over sources in memory.
