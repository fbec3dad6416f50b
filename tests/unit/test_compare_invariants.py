"""The five invariants over sources in memory, the second look, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trueup.compare import (
    Counts,
    Finding,
    Key,
    Kind,
    Layout,
    Scan,
    Span,
    State,
    Verdict,
    compare,
    confirm,
    examine,
    judge,
    look_again,
    plan,
    reader,
)
from trueup.compare.sorting import in_blocks
from trueup.errors import SourceError
from trueup.model.reconcile import Column, ColumnType, Reading, Side
from trueup.model.reconcile_job import Reconciliation

from .compare_cases import column, layout

NOON = datetime(2026, 7, 6, 12, tzinfo=UTC)


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
    return Reconciliation.of({**base, "columns": {"id": "integer", "v": "text"}, **more})


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
