"""What a reconciliation makes of bad input and of what the job's own code does: never CLEAN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from trueup.errors import SourceError, Transient
from trueup.jobs import Reconcile
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.testing import LocalRun

from .reconcile_cases import Row, Rows, damaged, job, keys, lines, rows, run_of, states

# Bad input: a message that says which, and a verdict that is not CLEAN.


def test_a_key_that_is_there_twice_is_not_compared() -> None:
    both = rows()
    both["truth"].append({"id": 5, "v": "v5"})
    run = run_of(both)
    run.run()
    report = run.comparison
    assert ("INCOMPLETE", 1) == (report.verdict, report.counts["duplicates"])
    assert ["1 keys are there more than once on a side, and were not compared"] == report.reasons
    (finding,) = lines(run, Phase.COMPARE)
    assert ("DUPLICATE", ["5"], "2 rows in truth, 1 in target") == (
        finding["kind"],
        finding["key"],
        finding["detail"],
    )
    item = run.ledger.partitions.get(run.run_id, Phase.COMPARE, "key=..100")
    assert item.entry is not None
    assert (1, item.entry.outputs[0].location) == (item.counters.rejected, item.entry.rejects)


def test_a_value_that_is_not_of_its_type_is_not_compared() -> None:
    both = rows()
    for row in both["target"]:
        row["v"] = str(row["id"])
    of = job(columns={"id": "integer", "v": "integer"})
    run = run_of(both, of)
    run.run()
    report = run.comparison
    assert ("INCOMPLETE", 300) == (report.verdict, report.counts["unreadable"])
    assert "300 keys have a value that is not of its declared type" in report.reasons
    assert {("v", "unreadable in truth: no integer")} == {(one.name, one.reason) for one in report.fields}


def test_an_empty_side_is_not_clean_unless_it_may_be_empty() -> None:
    both: Rows = {"truth": [], "target": []}
    run = run_of(both)
    run.run()
    assert "INCOMPLETE" == run.comparison.verdict
    assert "the truth is empty: declare `empty: allowed` if that may be" in run.comparison.reasons
    allowed = run_of(both, job(empty="allowed"))
    allowed.run()
    assert "CLEAN" == allowed.comparison.verdict


class Broken(list[Row]):
    """Rows that cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def __iter__(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SourceError("Table truth has no column v."), PartitionStatus.FAILED),
        (Transient("Table truth cannot be read: connection refused"), PartitionStatus.STUCK),
    ],
)
def test_a_side_that_cannot_be_read_is_an_error_that_names_it(
    error: Exception, status: PartitionStatus
) -> None:
    run = run_of({"truth": Broken(error), "target": rows()["target"]}, job(partitions={"by": "splits"}))
    ended = run.run()
    assert RunStatus.FAILED is ended.status
    assert status is run.ledger.partitions.get(run.run_id, Phase.COMPARE, "key=..").status
    report = run.comparison
    assert "ERROR" == report.verdict
    assert any(str(error) in reason for reason in report.reasons), report.reasons


def test_findings_that_were_changed_behind_our_back_are_not_confirmed() -> None:
    both, _ = damaged()
    run = run_of(both, job(partitions={"by": "splits"}))
    while run.phase is Phase.COMPARE:
        run.step()
    (key,) = [
        one for one in run.artifacts.store.list(f"runs/{run.run_id}/") if "/compare/findings/key=../f" in one
    ]
    run.artifacts.store.put(key, run.artifacts.store.get(key).replace(b"MISSING", b"EXTRA"))
    assert RunStatus.FAILED is run.run().status
    assert "ERROR" == run.comparison.verdict
    assert "as the phase compare left it" in run.comparison.reasons[0]


@pytest.mark.parametrize("what", ["compared-", "findings-"])
def test_a_report_of_what_was_changed_is_an_error_that_names_it(what: str) -> None:
    both, _ = damaged()
    run = run_of(both, job(partitions={"by": "splits"}))
    step = run.step()
    while run.phase is not Phase.CONFIRM or step is None or step.name != "stored":
        step = run.step()
    (key,) = run.artifacts.store.list(f"runs/{run.run_id}/confirm/findings/key=../{what}")
    run.artifacts.store.put(key, run.artifacts.store.get(key).replace(b"CONFIRMED", b"RESOLVED"))
    run.run()
    assert "ERROR" == run.comparison.verdict
    assert key in run.comparison.reasons[0]


class Short(list[Row]):
    """Says that it has one row more than it gives."""

    def __len__(self) -> int:
        return super().__len__() + 1


def test_a_side_with_fewer_rows_than_it_counts_is_an_error() -> None:
    both = rows()
    run = run_of({**both, "truth": Short(both["truth"])}, job(partitions={"by": "splits"}))
    assert RunStatus.FAILED is run.run().status
    assert "ERROR" == run.comparison.verdict
    assert "300 rows of the truth were read, and it has 301 by its own count" in run.comparison.reasons[0]


def test_counts_that_agree_are_the_proof() -> None:
    run = run_of(rows(), job(partitions={"by": "splits"}))
    run.run()
    assert [(300, 300, 0)] * 2 == [
        (one.rows, one.proved, one.resumed) for one in run.comparison.coverage.values()
    ]


def test_a_partition_that_an_operator_left_out_is_not_clean() -> None:
    run = run_of(rows())
    run.plan()
    run.ledger.verdicts.skip(run.run_id, Phase.COMPARE, ["key=100..200"], who="ann", why="known to be bad")
    run.run()
    assert "INCOMPLETE" == run.comparison.verdict
    assert ["key=100..200 is SKIPPED: known to be bad"] == run.comparison.reasons


def test_candidates_that_an_operator_left_out_are_not_clean() -> None:
    both, wrong = damaged()
    run = run_of(both)
    while run.phase is Phase.COMPARE:
        run.step()
    parts = ["key=..100", "key=100..200", "key=200.."]
    left = [one for one in parts if run.partition(one).status is PartitionStatus.PENDING]
    run.ledger.verdicts.skip(run.run_id, Phase.CONFIRM, left, who="ann", why="no time")
    run.run()
    report = run.comparison
    assert "INCOMPLETE" == report.verdict
    assert any(f"of {len(wrong)} candidates were not looked at again" in one for one in report.reasons)


def test_a_run_that_was_cancelled_is_not_clean() -> None:
    run = run_of(rows())
    run.step()
    run.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="wrong day")
    run.run()
    assert RunStatus.CANCELLED is run.ledger.runs.get(run.run_id).status
    assert "INCOMPLETE" == run.comparison.verdict


# What the job's own code does.


class Doubled(Reconcile):
    """The truth has other names and units."""

    def normalise(self, side: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if side == "target":
            return row
        if row["number"] == 13:
            raise ValueError("unlucky")
        return {"id": row["number"], "v": f"v{row['number']}"}


def test_rows_are_normalised_by_the_jobs_own_code() -> None:
    both = rows(20)
    run = LocalRun(
        Doubled, job(), rows={"truth": [{"number": one} for one in range(20)], "target": both["target"]}
    )
    run.run()
    assert ("INCOMPLETE", 19, 1, 1) == (
        run.comparison.verdict,
        run.comparison.counts["matched"],
        run.comparison.counts["truthUnkeyed"],
        run.comparison.counts["extra"],
    )
    (wrong,) = [one for one in lines(run, Phase.COMPARE) if one["kind"] == "UNREADABLE"]
    assert "normalise failed with ValueError: unlucky" in wrong["detail"]


class Latest(Reconcile):
    """The last amount of each case, and how many there were."""

    def fold(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        if len(rows) > 3:
            raise ValueError("too many")
        return {"v": rows[-1]["amount"], "events": len(rows)}


def test_events_are_folded_by_the_jobs_own_code() -> None:
    of = job(
        **{"class": "latest:Latest"},
        columns={"id": "integer", "v": "decimal", "events": "integer"},
        invariant={
            "kind": "derived",
            "events": [{"name": "seq", "type": "integer"}, {"name": "amount", "type": "decimal"}],
            "order": ["seq"],
        },
    )
    events = [
        {"id": case, "seq": seq, "amount": f"{case}.{seq}0"}
        for seq in (3, 1, 2, 4)
        for case in range(10)
        if seq <= (4 if case == 9 else 1 + case % 3)
    ]
    target = [{"id": case, "v": f"{case}.{1 + case % 3}", "events": 1 + case % 3} for case in range(10)]
    target[4]["v"] = "4.1"
    run = LocalRun(Latest, of, rows={"truth": events, "target": target})
    run.run()
    assert {4: "MISMATCHED", 9: "UNREADABLE"} == keys(lines(run, Phase.COMPARE))
    assert {("CONFIRMED", "MISMATCHED"): 1} == states(run.comparison)


def test_the_report_is_made_once_and_kept() -> None:
    run = run_of(rows())
    ended = run.run()
    assert run.comparison == run.comparison
    assert datetime(2026, 1, 1, tzinfo=UTC) <= run.comparison.created_at
    assert ended.plan_sha256 == run.comparison.plan_sha256
