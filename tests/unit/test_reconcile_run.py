"""A whole reconciliation in one process: what it finds, and that kills change nothing of it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from trueup.model.ledger import Run
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.testing import LocalRun

from .reconcile_cases import Rows, damaged, job, keys, lines, rows, run_of, states


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


def test_a_report_shows_fewer_findings_where_their_values_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.reporting.comparison.SHOWN_BYTES", 4_000)
    both, wrong = damaged()
    for row in both["target"]:
        row["v"] += 1_000 * "." if row["id"] in wrong else ""
    run = run_of(both, job(values="shown"))
    run.run()
    found = run.comparison
    told = lines(run, Phase.CONFIRM)
    assert (len(wrong), len(wrong)) == (found.findings_read, len(told))
    shown = [{name: value for name, value in one.items() if name != "partitionId"} for one in found.findings]
    assert 0 < len(shown) < len(wrong)
    assert told[: len(shown)] == shown
