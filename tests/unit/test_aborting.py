"""Abort rules: each says nothing below its sample, and ends the run just above its bound."""

from __future__ import annotations

from typing import Any

import pytest

from trueup import Reject
from trueup.aborting import ABORTER, AbortRules
from trueup.model.job import MOST_HOURS
from trueup.model.ledger import Run
from trueup.model.states import UNFINISHED, PartitionStatus, RunStatus
from trueup.planning.estimate import price, spent
from trueup.testing import LocalRun, ManualClock

from .worker_cases import Numbers, item, job_file, job_of, last, run_of, step_until

P = PartitionStatus
HOUR = 3600.0


def failing(letters: str) -> type[Numbers]:
    """A job whose partitions of these keys fail at once."""

    def read(self: Numbers, part: Any, after: str | None) -> Any:
        if part.label in letters:
            raise LookupError(f"there is no {part.label}")
        return Numbers.read(self, part, after)

    return job_of(read=read)


def sections(*rules: dict[str, Any], slices: int = 26, **more: Any) -> dict[str, Any]:
    """A job file with these rules, and a slice for each partition unless said otherwise."""
    return {"abort": list(rules), "limits": {"max_concurrency": slices}, **more}


def run_with(
    *rules: dict[str, Any],
    keys: str = "abcdefgh",
    fails: str = "",
    job: type[Numbers] | None = None,
    **more: Any,
) -> LocalRun:
    """A run of one partition after the other, some of which fail."""
    options = {name: more.pop(name) for name in ("clock", "concurrency", "dry_run") if name in more}
    return run_of(job or failing(fails), keys=keys, sections=sections(*rules, **more), **options)


def worked(run: LocalRun, keys: str = "abcdefgh") -> str:
    """The keys of the partitions that ended, in order."""
    return "".join(key for key in keys if item(run, key).status not in UNFINISHED)


def reason(run: LocalRun) -> str:
    """Why the run is what it is, as far as its rule and the numbers go."""
    return (run.ledger.runs.get(run.run_id).reason or "").partition(". ")[0]


def ended(run: LocalRun) -> Run:
    """The run at its end: no task, no lock, off the list of the sweep."""
    found = run.run()
    assert [] == list(run.ledger.tasks.of(run.run_id))
    assert {} == run.ledger.locks.get("numbers").holders
    assert run.run_id not in set(run.ledger.runs.unsettled())
    return found


PERCENT = {"of": "failedPartitions", "above": 40, "unit": "percent", "minimum": 4}


def test_a_share_of_failed_partitions_ends_the_run_exactly_at_its_sample() -> None:
    run = run_with(PERCENT, fails="ab")
    assert RunStatus.ABORTED == ended(run).status
    # After the third partition it was 67 percent, of too few.
    assert (
        "abcd",
        "abort rule failedPartitions: 50 percent (2 of 4 partitions that ended) > 40 percent",
    ) == (
        worked(run),
        reason(run),
    )


def test_a_share_at_its_bound_is_not_above_it() -> None:
    run = run_with({**PERCENT, "above": 50}, fails="ab")
    assert (RunStatus.FAILED, "2 of 8 partitions did not make it") == (ended(run).status, reason(run))


def test_below_its_sample_a_share_says_nothing_although_all_failed() -> None:
    run = run_with(PERCENT, keys="abc", fails="abc")
    assert (RunStatus.FAILED, "3 of 3 partitions did not make it") == (ended(run).status, reason(run))


@pytest.mark.parametrize(("minimum", "done"), [(1, "abcd"), (4, "abcd"), (6, "abcdef")])
def test_a_number_of_failed_partitions_ends_the_run(minimum: int, done: str) -> None:
    rule = {"of": "failedPartitions", "above": 1, "minimum": minimum}
    run = run_with(rule, fails="bd")
    assert RunStatus.ABORTED == ended(run).status
    assert done == worked(run)
    assert f"abort rule failedPartitions: 2 (of {len(done)} partitions that ended) > 1" == reason(run)


def test_a_partition_that_an_operator_left_out_is_no_failure_and_no_sample() -> None:
    run = run_with({"of": "failedPartitions", "above": 40, "unit": "percent", "minimum": 3}, fails="ab")
    run.plan()
    run.ledger.verdicts.skip(run.run_id, run.phase, ["item=c"], who="ann", why="no data")
    assert RunStatus.ABORTED == ended(run).status
    assert "abcd" == worked(run)
    assert "67 percent (2 of 3" in reason(run).replace("66.67", "67")


def test_failures_in_a_row_end_the_run_and_one_acceptance_ends_the_row() -> None:
    run = run_with({"of": "consecutiveFailures", "above": 2}, fails="abdefg")
    assert RunStatus.ABORTED == ended(run).status
    assert ("abcdef", "abort rule consecutiveFailures: 3 partitions in a row > 2") == (
        worked(run),
        reason(run),
    )


def test_failures_that_are_not_in_a_row_do_not() -> None:
    run = run_with({"of": "consecutiveFailures", "above": 2}, fails="abdegh")
    assert RunStatus.FAILED == ended(run).status


def test_a_row_says_nothing_below_its_sample() -> None:
    run = run_with({"of": "consecutiveFailures", "above": 2, "minimum": 5}, fails="abcdefgh")
    assert RunStatus.ABORTED == ended(run).status
    assert ("abcde", "abort rule consecutiveFailures: 5 partitions in a row > 2") == (
        worked(run),
        reason(run),
    )


def test_what_one_launch_brings_counts_in_the_order_of_its_slice() -> None:
    rule = {"of": "consecutiveFailures", "above": 1}
    good = run_with(rule, keys="abcd", fails="abd", slices=1)
    bad = run_with(rule, keys="abcd", fails="acd", slices=1)
    assert (RunStatus.FAILED, RunStatus.ABORTED) == (ended(good).status, ended(bad).status)


def rejecting(number: int) -> type[Numbers]:
    """A job that rejects so many of the twelve records of each partition."""
    return job_of(transform=lambda self, n: Reject("odd") if n < number else n)


@pytest.mark.parametrize(
    ("above", "unit", "minimum", "done", "told"),
    [
        (20, "percent", 24, "ab", "25 percent (6 of 24 records that were read) > 20 percent"),
        (20, "percent", 25, "abc", "25 percent (9 of 36 records that were read) > 20 percent"),
        (6, "count", 1, "abc", "9 (of 36 records that were read) > 6"),
    ],
)
def test_rejected_records_end_the_run(above: int, unit: str, minimum: int, done: str, told: str) -> None:
    rule = {"of": "rejects", "above": above, "unit": unit, "minimum": minimum}
    run = run_with(rule, job=rejecting(3), errors={"rejects": 5})
    assert RunStatus.ABORTED == ended(run).status
    assert (done, f"abort rule rejects: {told}") == (worked(run), reason(run))


def test_rejects_are_bounded_although_every_partition_was_accepted() -> None:
    run = run_with({"of": "rejects", "above": 8}, keys="abc", job=rejecting(3), errors={"rejects": 5})
    assert (RunStatus.ABORTED, 3) == (ended(run).status, run.accepted)


def slow(clock: ManualClock, seconds: float) -> type[Numbers]:
    """A job whose every batch takes so long; there are four in a partition."""

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        clock.pass_(seconds)
        return self.sink.put(rows, ctx)

    return job_of(write=write)


TASK = {"minutes": 600, "no_progress_seconds": 1e6}


def test_hours_end_the_run_when_they_are_exceeded() -> None:
    clock = ManualClock()
    job = slow(clock, HOUR / 4)
    run = run_with({"of": "hours", "above": 3, "unit": "hours"}, job=job, clock=clock, task=TASK)
    assert RunStatus.ABORTED == ended(run).status
    assert ("abcd", "abort rule hours: 4.00 hours > 3 hours") == (worked(run), reason(run))


def test_at_the_end_there_are_no_hours_to_be_saved() -> None:
    clock = ManualClock()
    job = slow(clock, HOUR / 4)
    run = run_with({"of": "hours", "above": 3, "unit": "hours"}, keys="abcd", job=job, clock=clock, task=TASK)
    assert RunStatus.SUCCEEDED == ended(run).status


def test_a_run_whose_job_says_nothing_is_bounded_too() -> None:
    clock = ManualClock()
    run = run_with(clock=clock, keys="abc", slices=3)
    step_until(run, "stored")
    clock.pass_(MOST_HOURS * HOUR + 1)
    assert RunStatus.ABORTED == ended(run).status
    assert "abort rule hours: 720.00 hours > 720 hours" == reason(run)


def test_the_time_in_which_a_run_is_paused_is_not_among_its_hours() -> None:
    clock = ManualClock()
    run = run_with({"of": "hours", "above": 3, "unit": "hours"}, clock=clock)
    run.plan()
    stored = run.ledger.runs.get(run.run_id)
    resumed = stored.model_copy(update={"open_seconds": int(2 * HOUR), "opened_at": clock.now()})
    clock.pass_(0.9 * HOUR)
    rules = AbortRules(run.ledger, clock)
    assert rules.broken(resumed, run.job) is None
    clock.pass_(0.2 * HOUR)
    assert "3.10 hours > 3 hours" in str(rules.broken(resumed, run.job))


def test_dollars_end_the_run_by_the_time_that_its_tasks_had() -> None:
    clock = ManualClock()
    job = slow(clock, HOUR / 4)
    an_hour = spent(job_file().task, 1, 3600)
    rule = {"of": "dollars", "above": round(2.5 * an_hour, 6), "unit": "usd"}
    run = run_with(rule, job=job, clock=clock, task=TASK)
    assert RunStatus.ABORTED == ended(run).status
    assert ("abc", f"abort rule dollars: {3 * an_hour:.2f} USD > {rule['above']:g} usd") == (
        worked(run),
        reason(run),
    )


def test_dollars_are_those_of_the_price_list() -> None:
    task = job_file(task={"cpu": 2048, "memory": 4096}).task
    fargate = 2 * price("fargateVcpuHour") + 4 * price("fargateGbHour")
    assert pytest.approx(fargate) == spent(task, 0, 3600)
    # A launch counts as a minute beside its task's time, and as 8 transitions.
    assert pytest.approx(fargate / 60 + 8 * price("stateTransition")) == spent(task, 1, 0)


def test_launches_without_end_cost_dollars_although_no_task_ever_registers() -> None:
    run = run_with({"of": "dollars", "above": 0.05, "unit": "usd"}, keys="ab")
    run.plan()
    for _ in range(200):
        run.ledger.runs.next_launch(run.run_id, 1)
    assert (RunStatus.ABORTED, "a") == (ended(run).status, worked(run, "ab"))


def test_tasks_at_work_stop_at_their_next_checkpoint_and_nothing_else_begins() -> None:
    run = run_with({"of": "failedPartitions", "above": 0}, keys="abcd", fails="a", slices=4, concurrency=3)
    step_until(run, "written", 2)  # b and c are at work while a fails
    assert RunStatus.ABORTED == ended(run).status
    assert P.FAILED == item(run, "a").status
    for key in "bc":
        left = item(run, key)
        if left.status is P.INTERRUPTED:
            assert (f"v1:{left.counters.read}", 0) == (left.cursor, left.takes)
            assert "run: STOPPING != RUNNING" == left.reason
    assert {P.INTERRUPTED} <= {item(run, key).status for key in "bc"} <= {P.INTERRUPTED, P.ACCEPTED}
    assert (P.PENDING, 0) == (item(run, "d").status, item(run, "d").launch)
    assert 3 == len(run.tasks)


def test_an_aborted_run_says_on_its_trail_which_rule_and_takes_no_task_any_more() -> None:
    run = run_with({"of": "failedPartitions", "above": 0}, fails="a")
    ended(run)
    told = {entry.verb: entry for entry in run.ledger.audit.of(run.run_id)}
    stop, end = told["stop:aborted"], told["aborted"]
    assert (ABORTER, {"status": "RUNNING"}) == (stop.who, stop.before)
    assert "abort rule failedPartitions: 1 (of 1 partitions that ended) > 0. Read their errors" in stop.why
    assert stop.why.endswith("and start a new run for the partitions that were not accepted.")
    assert {"status": "ABORTED", "goal": None} == end.after
    launched = last(run)
    assert (RunStatus.ABORTED, launched) == (run.run().status, last(run))


def test_a_dry_run_is_bounded_too() -> None:
    run = run_with({"of": "failedPartitions", "above": 0}, fails="a", dry_run=True)
    assert (RunStatus.ABORTED, "a") == (ended(run).status, worked(run))


def test_a_job_without_rules_is_judged_without_a_read() -> None:
    run = run_with(fails="a")
    run.plan()
    stored = run.ledger.runs.get(run.run_id)
    run.ledger.verdicts.counts = None  # type: ignore[method-assign, assignment]
    assert AbortRules(run.ledger, run.clock).broken(stored, run.job) is None
