"""The parts of the comparer: lines, values, folds, the second look, the verdict, memory."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import (
    Counts,
    Finding,
    Key,
    Kind,
    Layout,
    Missing,
    Scan,
    Span,
    State,
    Verdict,
    compare,
    confirm,
    examine,
    external_sort,
    fingerprint,
    json_lines,
    judge,
    look_again,
    plan,
    reader,
)
from trueup.compare.lines import ABSENT, NULL, escape, is_unreadable, unescape
from trueup.compare.sorting import in_blocks
from trueup.compare.streams import common_prefix
from trueup.compare.values import differences
from trueup.errors import SourceError
from trueup.model.reconcile import Column, ColumnType, Reading, Reconciliation, Side

from .compare_cases import CASES

NOON = datetime(2026, 7, 6, 12, tzinfo=UTC)


def column(kind: str, **more: Any) -> Column:
    return Column.model_validate({"name": "v", "type": kind, **more})


def layout(kind: str, **more: Any) -> Layout:
    return Layout((Column(name="id", type=ColumnType.INTEGER),), (column(kind, **more),))


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
    ("decimal", {}, None, NULL),
    ("decimal", {}, Missing, ABSENT),
]


@pytest.mark.parametrize(("kind", "reading", "value", "field"), READ)
def test_a_value_is_read_as_its_type_or_not_at_all(
    kind: str, reading: dict[str, Any], value: Any, field: bytes | None
) -> None:
    read = reader(column(kind, truth=reading), Side.TRUTH)(value)
    assert is_unreadable(read) if field is None else field == read


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


class Memory:
    """Lines as a source, in the order in which they are given."""

    def __init__(self, of: Layout, lines: Iterable[bytes], ordered: bool = True) -> None:
        self.layout = of
        self.lines = list(lines)
        self._ordered = ordered

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        within = self.layout.within(span)
        lines = (line for line in self.lines if within(self.layout.order_of(line)))
        return Scan(in_blocks(lines, 20), self._ordered)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        width = len(keys[0]) if keys else 0
        return {key: [line for line in self.lines if self.layout.key_of(line)[:width] == key] for key in keys}


def job(**more: Any) -> Reconciliation:
    source = {"kind": "postgres", "table": "t"}
    base = {"name": "n", "kind": "reconcile", "truth": source, "target": source, "key": ["id"]}
    return Reconciliation.model_validate({**base, "columns": {"id": "integer", "v": "text"}, **more})


def look(of: Reconciliation, truth: Memory, target: Memory | None) -> tuple[Any, list[Finding]]:
    findings: list[Finding] = []
    return examine(of, truth, target, findings.append), findings


def test_existence_both_ways_or_one_way_without_looking_at_values() -> None:
    for ways, kinds in (
        ("both", [Kind.MISSING, Kind.EXTRA]),
        ("truth-in-target", [Kind.MISSING]),
        ("target-in-truth", [Kind.EXTRA]),
    ):
        of = job(invariant={"kind": "exists", "ways": ways})
        layouts = plan(of)
        truth = Memory(layouts.truth, [b"1", b"2", b"4"])
        summary, findings = look(of, truth, Memory(layouts.truth, [b"2", b"3", b"4"]))
        assert (ways, kinds) == (ways, [one.kind for one in findings])
        assert Verdict.DRIFT is summary.judgement.verdict
    of = job(invariant={"kind": "exists", "ways": "truth-in-target"})
    both = [Memory(plan(of).truth, lines) for lines in ([b"1"], [b"1", b"2"])]
    assert Verdict.CLEAN is look(of, *both)[0].judgement.verdict


DERIVED = {
    "columns": {"id": "integer", "status": "text", "total": "decimal", "events": "integer"},
    "invariant": {
        "kind": "derived",
        "events": [
            {"name": "seq", "type": "integer"},
            {"name": "status", "type": "text"},
            {"name": "amount", "type": "decimal"},
        ],
        "order": ["seq"],
        "figures": {
            "status": {"op": "last", "of": "status"},
            "total": {"op": "sum", "of": "amount"},
            "events": {"op": "count"},
        },
    },
}


@pytest.mark.parametrize("ordered", [True, False])
def test_a_status_table_against_a_fold_of_its_event_ledger(ordered: bool) -> None:
    of = job(**DERIVED)
    layouts = plan(of)
    assert layouts.target is not None
    events = [
        rb"1	1	open	0.10",
        rb"1	2	done	0.20",
        rb"1	10	\A	\N",  # the event says nothing of the status
        rb"2	1	open	1",
        rb"3	1	open	\?x",
        rb"4	1	open	1",
        rb"4	1	done	1",  # two events with one number
    ]
    status = [b"1\tdone\t0.3\t3", b"2\tdone\t1\t1", b"3\topen\t1\t1", b"4\tdone\t2\t2"]
    given_events = events if ordered else events[::-1]
    summary, findings = look(of, Memory(layouts.truth, given_events, ordered), Memory(layouts.target, status))

    assert [
        (Kind.MISMATCHED, ("2",), ["status"]),
        (Kind.UNREADABLE, ("3",), ["total"]),
        (Kind.UNREADABLE, ("4",), ["status", "total", "events"]),
    ] == [(one.kind, one.key, [d.name for d in one.differences]) for one in findings]
    assert (4, 4, 1) == (summary.counts.truth_rows, summary.counts.target_rows, summary.counts.matched)
    assert Verdict.INCOMPLETE is summary.judgement.verdict

    truth, target = (
        Memory(layouts.truth, events, ordered),
        Memory(layouts.target, [status[0], b"2\topen\t1\t1"]),
    )
    assert [(("2",), State.RESOLVED)] == [
        (one.key, one.state) for one in look_again(of, truth, target, findings[:1])
    ]


def test_events_out_of_the_declared_order_are_an_error() -> None:
    of = job(**DERIVED)
    layouts = plan(of)
    assert layouts.target is not None
    events = Memory(layouts.truth, [b"2\t1\ta\t1", b"1\t1\ta\t1"])
    summary, _ = look(of, events, Memory(layouts.target, [b"1\ta\t1\t1"]))
    assert Verdict.ERROR is summary.judgement.verdict
    assert "1, 1 comes late" in summary.judgement.reasons[0]


def test_the_same_figures_for_each_group() -> None:
    of = job(
        key=["day"],
        columns={"day": "date", "amount": "decimal"},
        invariant={
            "kind": "aggregates",
            "figures": {
                "n": {"op": "count"},
                "sum": {"op": "sum", "of": "amount"},
                "least": {"op": "min", "of": "amount"},
                "most": {"op": "max", "of": "amount"},
            },
        },
    )
    rows = [b"2013-01-01\t9", b"2013-01-01\t10", b"2013-01-02\t0.1", b"2013-01-02\t0.2", b"2013-01-03\t5"]
    moved = [b"2013-01-01\t10", b"2013-01-01\t9", b"2013-01-02\t0.1", b"2013-01-02\t0.1", b"2013-01-02\t0.1"]
    truth, target = (Memory(plan(of).truth, lines) for lines in (rows, moved))
    summary, findings = look(of, truth, target)
    # The sums and the least are the same.
    assert [
        (Kind.MISMATCHED, ("2013-01-02",), ["n", "most"]),
        (Kind.MISSING, ("2013-01-03",), []),
    ] == [(one.kind, one.key, [d.name for d in one.differences]) for one in findings]
    assert (3, 2, 1) == (summary.counts.truth_rows, summary.counts.target_rows, summary.counts.matched)


def test_what_is_conserved_adds_up_to_zero_for_each_key() -> None:
    of = job(
        key=["txn"],
        columns={"txn": "text", "amount": "decimal"},
        target=None,
        invariant={"kind": "conservation", "sums": ["amount"]},
    )
    entries = [b"a\t1.10", b"a\t-1.1", b"b\t5", b"b\t-4.999999999999999999", b"c\t\\N"]
    truth = Memory(plan(of).truth, entries)
    summary, findings = look(of, truth, None)
    assert [("b", ["amount"]), ("c", ["amount"])] == [
        (one.key[0], [d.name for d in one.differences]) for one in findings if one.key
    ]
    assert Verdict.DRIFT is summary.judgement.verdict
    truth.lines[3] = b"b\t-5"
    assert [("b", State.RESOLVED), ("c", State.CONFIRMED)] == [
        (one.key[0], one.state) for one in look_again(of, truth, None, findings) if one.key
    ]


# The second look.


def by_key(side: Sequence[bytes], of: Layout) -> dict[Key, list[bytes]]:
    rows: dict[Key, list[bytes]] = {}
    for line in side:
        rows.setdefault(of.key_of(line), []).append(line)
    return rows


def test_each_candidate_is_settled_once() -> None:
    of = layout("text")
    first = {
        "truth": [b"1\ta", b"2\ta", b"3\ta", b"4\ta", b"5\ta", b"6\ta", b"6\tb", b"7\ta", b"7\ta"],
        "target": [b"1\tb", b"2\tb", b"3\tb", b"4\tb", b"6\ta", b"\\N\ta"],
    }
    (step,) = compare(*map(in_blocks, first.values()), of)
    truth = [b"1\ta", b"2\tb", b"3\tc", b"4\ta", b"5\ta", b"6\ta", b"6\tb", b"7\ta", b"7\ta", b"7\ta"]
    target = [b"1\tb", b"2\tb", b"3\tb", b"4\tz", b"5\tz", b"6\ta"]
    now = [by_key(side, of) for side in (truth, target)]
    settled = list(confirm(step.findings, *now, of))
    assert [
        (("1",), Kind.MISMATCHED, State.CONFIRMED),
        (("2",), Kind.MISMATCHED, State.RESOLVED),
        (("3",), Kind.MISMATCHED, State.MOVING),  # the truth is another
        (("4",), Kind.MISMATCHED, State.MOVING),  # the target is another
        (("5",), Kind.MISMATCHED, State.MOVING),  # it was missing
        (("6",), Kind.DUPLICATE, State.CONFIRMED),
        (None, Kind.UNREADABLE, None),
        (("7",), Kind.DUPLICATE, State.MOVING),  # there is one more
    ] == [(one.key, one.kind, one.state) for one in settled]
    # What still moves is looked at again as it is now.
    moving = [one for one in settled if one.state is State.MOVING]
    assert [State.CONFIRMED] * 4 == [one.state for one in confirm(moving, *now, of)]


def test_a_row_that_changes_meanwhile_is_moving() -> None:
    of = Layout(
        (Column(name="id", type=ColumnType.INTEGER),), (Column(name="at", type=ColumnType.TIMESTAMP),), "at"
    )
    truth, target = b"1\t2026-07-06 12:00:01+00", b"1\t2026-07-06 11:00:00+00"
    (step,) = compare([truth + b"\n"], [target + b"\n"], of)
    for as_of, state in ((NOON, State.MOVING), (NOON + timedelta(seconds=1), State.CONFIRMED)):
        (settled,) = confirm(step.findings, {("1",): [truth]}, {("1",): [target]}, of, as_of)
        assert (as_of, state) == (as_of, settled.state)


# The verdict.

ROWS = {"truth_rows": 9, "target_rows": 9, "matched": 9}
JUDGED: list[tuple[dict[str, Any], dict[str, int], dict[str, Any], Verdict]] = [
    ({}, ROWS, {}, Verdict.CLEAN),
    ({}, {**ROWS, "matched": 8, "mismatched": 1}, {}, Verdict.DRIFT),
    ({}, {**ROWS, "truth_rows": 10, "missing": 1}, {}, Verdict.DRIFT),
    ({"lag": 5}, {**ROWS, "matched": 8, "mismatched": 1}, {}, Verdict.INCOMPLETE),
    ({}, {**ROWS, "matched": 8, "mismatched": 1, "newer": 1}, {}, Verdict.INCOMPLETE),
    ({"lag": 5}, ROWS, {}, Verdict.CLEAN),
    ({"lag": 5}, {**ROWS, "matched": 8, "mismatched": 1}, {"settled": {State.RESOLVED: 1}}, Verdict.CLEAN),
    ({"lag": 5}, {**ROWS, "matched": 8, "mismatched": 1}, {"settled": {State.CONFIRMED: 1}}, Verdict.DRIFT),
    ({"lag": 5}, {**ROWS, "matched": 8, "mismatched": 1}, {"settled": {State.MOVING: 1}}, Verdict.INCOMPLETE),
    ({}, {}, {}, Verdict.INCOMPLETE),
    ({"empty": "allowed"}, {}, {}, Verdict.CLEAN),
    ({}, {**ROWS, "unsorted": 1}, {}, Verdict.INCOMPLETE),
    ({}, {**ROWS, "truth_rows": 10, "truth_unkeyed": 1}, {}, Verdict.INCOMPLETE),
    ({}, {**ROWS, "matched": 8, "unreadable": 1}, {}, Verdict.INCOMPLETE),
    ({}, {**ROWS, "truth_rows": 11, "duplicates": 1, "truth_duplicate_rows": 2}, {}, Verdict.INCOMPLETE),
    ({}, {**ROWS, "truth_rows": 10}, {}, Verdict.INCOMPLETE),  # a row is in no class
    ({}, ROWS, {"counted": {Side.TRUTH: 9, Side.TARGET: 9}}, Verdict.CLEAN),
    ({}, ROWS, {"counted": {Side.TRUTH: 10}}, Verdict.INCOMPLETE),
    ({}, ROWS, {"errors": ("the database is gone",)}, Verdict.ERROR),
]


@pytest.mark.parametrize(("more", "counts", "known", "verdict"), JUDGED)
def test_the_verdict(
    more: dict[str, Any], counts: dict[str, int], known: dict[str, Any], verdict: Verdict
) -> None:
    judgement = judge(job(**more), Counts(**counts), **known)
    assert verdict is judgement.verdict
    assert (verdict is Verdict.CLEAN) == (judgement.reasons == ())


def test_an_error_keeps_what_was_found_before() -> None:
    class Broken(Memory):
        def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
            def blocks() -> Iterator[bytes]:
                yield b"1\tx\n"
                raise SourceError("The file is truncated.")

            return Scan(blocks(), True)

    of = job()
    summary, _ = look(of, Memory(plan(of).truth, [b"1\ta", b"2\tb"]), Broken(plan(of).truth, []))
    assert (Verdict.ERROR, "The file is truncated.") == (
        summary.judgement.verdict,
        summary.judgement.reasons[0],
    )


def test_reading_declares_a_side() -> None:
    both = column("timestamp", truth={"format": "seconds"}, target=Reading(zone="UTC").document())
    assert b"1970-01-01 00:00:01+00" == reader(both, Side.TRUTH)(1)
    assert b"1970-01-01 00:00:01+00" == reader(both, Side.TARGET)("1970-01-01T00:00:01")
