"""A whole reconciliation in one process: what it finds, through kills, and what it makes of bad input."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trueup.artifacts.store import place
from trueup.errors import SourceError, Transient
from trueup.jobs import Reconcile
from trueup.model.ledger import Run
from trueup.model.reconcile_job import Reconciliation
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.testing import LocalRun

Row = dict[str, Any]
Rows = dict[str, list[Row]]
BASE: dict[str, Any] = {
    "name": "numbers",
    "kind": "reconcile",
    "truth": {"kind": "postgres", "table": "truth"},
    "target": {"kind": "dynamodb", "table": "target"},
    "key": ["id"],
    "columns": {"id": "integer", "v": "text"},
    "lag": 60,
    "partitions": {"by": "splits", "splits": [100, 200]},
}


def job(**changes: Any) -> Reconciliation:
    return Reconciliation.of({**BASE, **changes})


def rows(count: int = 300) -> Rows:
    """Two sides that are the same."""
    return {
        side: [{"id": number, "v": f"v{number}"} for number in range(count)] for side in ("truth", "target")
    }


def damaged() -> tuple[Rows, dict[int, str]]:
    """Two sides, and what is wrong with which key."""
    both = rows()
    wrong: dict[int, str] = {}
    rng = random.Random(5)
    for key in rng.sample(range(300), 40):
        wrong[key] = rng.choice(["MISSING", "MISMATCHED"])
    target = [row for row in both["target"] if wrong.get(row["id"]) != "MISSING"]
    both["target"] = [{**row, "v": "other"} if row["id"] in wrong else row for row in target]
    for key in (-5, 150_000, 300):
        both["target"].append({"id": key, "v": "extra"})
        wrong[key] = "EXTRA"
    return both, wrong


def run_of(both: Mapping[str, Sequence[Row]], of: Reconciliation | None = None, **more: Any) -> LocalRun:
    return LocalRun(Reconcile, of or job(), rows=both, **more)


def lines(run: LocalRun, phase: Phase) -> list[dict[str, Any]]:
    """Every finding of a phase, as the report's objects have them."""
    return [
        json.loads(line)
        for one in run.comparison.objects
        if one.phase is phase
        for line in run.artifacts.store.get(place(one.location)[1]).splitlines()
    ]


def keys(found: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The kind of each key; each is told once."""
    assert len(found) == len({tuple(one["key"]) for one in found})
    return {int(one["key"][0]): one["kind"] for one in found}


def states(report: ReconcileReport) -> dict[tuple[str, str], int]:
    return {(one.state, one.kind): one.findings for one in report.states}


def test_sides_that_agree_are_clean_and_nothing_is_looked_at_again() -> None:
    run = run_of(rows())
    assert RunStatus.SUCCEEDED is run.run().status
    report = run.comparison
    assert ("CLEAN", [], 300, 0) == (
        report.verdict,
        report.reasons,
        report.counts["matched"],
        report.confirmed,
    )
    assert {PartitionStatus.SKIPPED} == {
        run.partition(one).status for one in ("key=..100", "key=100..200", "key=200..")
    }
    assert [Phase.COMPARE] * 3 == [task.launch.phase for task in run.tasks]


def test_every_difference_is_told_once_and_confirmed_after_the_lag() -> None:
    both, wrong = damaged()
    run = run_of(both)
    started = run.clock.now()
    ended = run.run()
    assert run.clock.now() - started >= timedelta(seconds=60)
    assert wrong == keys(lines(run, Phase.COMPARE)) == keys(lines(run, Phase.CONFIRM))
    report = run.comparison
    assert Counter(wrong.values()) == {kind: number for (_, kind), number in states(report).items()}
    assert {"CONFIRMED"} == {state for state, _ in states(report)}
    assert "DRIFT" == report.verdict
    assert "DRIFT: 43 differences are confirmed" == ended.reason
    assert [("v", "other value")] == [(one.name, one.reason) for one in report.fields]


def test_values_are_masked_unless_the_job_shows_them() -> None:
    both, _ = damaged()
    for values, seen in (("masked", False), ("shown", True)):
        run = run_of(both, job(values=values))
        run.run()
        told = json.dumps(run.comparison.document()) + json.dumps(lines(run, Phase.CONFIRM))
        assert seen == ('"other"' in told)


def test_the_contract_of_each_partition_adds_up() -> None:
    both, wrong = damaged()
    run = run_of(both)
    run.run()
    compared = run.ledger.verdicts.counts(run.run_id, Phase.COMPARE).tally().records
    confirmed = run.ledger.verdicts.counts(run.run_id, Phase.CONFIRM).tally().records
    assert (303, 303, 43, 43, 0) == (
        compared.read,
        compared.used,
        compared.produced,
        compared.unchanged,
        compared.written,
    )
    assert (len(wrong), len(wrong), len(wrong)) == (confirmed.read, confirmed.used, confirmed.produced)
    item = run.ledger.partitions.get(run.run_id, Phase.CONFIRM, "key=..100")
    assert item.entry is not None
    assert item.entry.records_read == item.entry.records_counted


def test_what_was_in_flight_is_resolved() -> None:
    both, wrong = damaged()
    run = run_of(both)
    while run.phase is Phase.COMPARE:
        run.step()
    both["target"][:] = [dict(row) for row in both["truth"]]
    run.run()
    assert {("RESOLVED", kind): number for kind, number in Counter(wrong.values()).items()} == states(
        run.comparison
    )
    assert "CLEAN" == run.comparison.verdict


def changing(both: Rows, run: LocalRun, key: int) -> None:
    """Step a run to its end; the row changes at each point."""
    number = 0
    while run.step() is not None:
        number += 1
        both["target"][:] = [
            row if row["id"] != key else {"id": key, "v": f"n{number}"} for row in both["target"]
        ]


def test_what_keeps_changing_is_looked_at_again_and_is_not_clean() -> None:
    both = rows()
    both["target"][7] = {"id": 7, "v": "first"}
    both["target"][8] = {"id": 8, "v": "stays wrong"}
    run = run_of(both, job(looks=3))
    changing(both, run, 7)
    assert {("MOVING", "MISMATCHED"): 1, ("CONFIRMED", "MISMATCHED"): 1} == states(run.comparison)
    assert "INCOMPLETE" == run.comparison.verdict
    assert "1 keys still differ, each time in another way" in run.comparison.reasons
    looks = [one["look"] for one in lines(run, Phase.CONFIRM) if one["key"] == ["7"]]
    assert [1, 2, 3] == looks
    item = run.ledger.partitions.get(run.run_id, Phase.CONFIRM, "key=..100")
    assert {"keeps changing": 1} == item.skipped
    # Each look is a launch of its own: no task waits.
    assert 3 == sum(task.launch.phase is Phase.CONFIRM for task in run.tasks)


def test_rows_that_changed_after_the_instant_are_put_off_not_called_drift() -> None:
    of = job(columns={"id": "integer", "v": "text", "at": "timestamp"}, version="at")
    both = rows()
    run = run_of(both, of)
    late = (run.clock.now() - timedelta(seconds=10)).isoformat().replace("+00:00", "Z")
    for changed in both.values():
        for row in changed:
            row["at"] = late if row["id"] == 3 else "2020-01-01T00:00:00Z"
    both["target"][3]["v"] = "not there yet"
    run.run()
    item = run.ledger.partitions.get(run.run_id, Phase.COMPARE, "key=..100")
    assert {"changed after the instant that is compared": 1} == item.skipped
    assert (100, 99, 1) == (item.counters.read, item.counters.used, item.counters.skipped)
    assert {("CONFIRMED", "MISMATCHED"): 1} == states(run.comparison)


def drive(run: LocalRun, kill: Callable[[int], bool]) -> Run:
    """Step a run to its end, and kill every task at some points."""
    number = 0
    while run.step() is not None:
        number += 1
        if kill(number):
            run.kill()
    return run.ledger.runs.get(run.run_id)


def test_killed_at_any_point_a_run_tells_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparer steps every 5 findings here, and each step is a checkpoint."""
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 5)
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 4)
    both, wrong = damaged()
    whole = run_of(both)
    points = 0
    while whole.step() is not None:
        points += 1
    assert points > 40
    for point in range(1, points + 1):
        run = run_of(both)
        ended = drive(run, lambda number, at=point: number == at)  # type: ignore[misc]
        assert RunStatus.SUCCEEDED is ended.status, f"{point}: {ended.reason}"
        assert wrong == keys(lines(run, Phase.COMPARE)) == keys(lines(run, Phase.CONFIRM)), point
        for name in ("verdict", "counts", "states"):
            assert getattr(whole.comparison, name) == getattr(run.comparison, name), point


@pytest.mark.parametrize("seed", range(20))
def test_killed_often_and_worked_by_several_tasks_a_run_tells_each_line_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 3)
    monkeypatch.setattr("trueup.worker.confirming.AT_ONCE", 2)
    both, wrong = damaged()
    both["truth"][:0] = [{"id": None, "v": "no key"}, {"id": "x", "v": "no key either"}]
    rng = random.Random(seed)
    run = run_of(both, seed=seed, concurrency=3, checkpoint_seconds=rng.choice([0, 0, 1000]))
    ended = drive(run, lambda number: rng.random() < 0.08)
    assert RunStatus.SUCCEEDED is ended.status, ended.reason
    told = lines(run, Phase.COMPARE)
    assert 2 == sum(one["key"] is None for one in told)
    assert wrong == keys([one for one in told if one["key"]]) == keys(lines(run, Phase.CONFIRM))
    assert ("INCOMPLETE", 2) == (run.comparison.verdict, run.comparison.counts["truthUnkeyed"])


def test_a_zombie_that_wakes_up_adds_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 5)
    both, wrong = damaged()
    run = run_of(both)
    for _ in range(5):
        run.step()
    zombies = run.freeze()
    for _ in range(4):
        run.step()
    for zombie in zombies:
        while zombie.step() is not None:
            pass
    run.run()
    assert wrong == keys(lines(run, Phase.COMPARE)) == keys(lines(run, Phase.CONFIRM))


def test_many_objects_of_a_partition_are_named_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.compare.merge.FINDINGS_A_STEP", 1)
    monkeypatch.setattr("trueup.worker.findings.MOST_PARTS", 4)
    both, wrong = damaged()
    run = run_of(both, job(partitions={"by": "splits"}))
    run.run()
    item = run.ledger.partitions.get(run.run_id, Phase.COMPARE, "key=..")
    assert len(item.reject_parts) <= 4
    assert item.reject_parts[0].startswith("index-")
    assert wrong == keys(lines(run, Phase.COMPARE)) == keys(lines(run, Phase.CONFIRM))


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
    assert "as the comparison left it" in run.comparison.reasons[0]


@pytest.mark.parametrize("what", ["compared-", "findings-"])
def test_a_report_of_what_was_changed_is_an_error_that_names_it(what: str) -> None:
    both, _ = damaged()
    run = run_of(both, job(partitions={"by": "splits"}))
    while run.count(PartitionStatus.ACCEPTED) < 2:
        run.step()
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
