"""A side that throttles for ever, and one that is dead: neither makes a run launch for ever."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trueup.accepting import LONGEST_PAUSE, STUCK_IN_A_ROW, TAKES_WITHOUT_PROGRESS, Acceptance
from trueup.errors import LONGEST_RETRY_AFTER, Throttled, Transient
from trueup.model.job import MOST_HOURS
from trueup.model.states import PartitionStatus, RunStatus
from trueup.platform import Ended
from trueup.testing import LocalRun, ManualClock

from .worker_cases import Numbers, error, item, job_of, last, run_of, slices

P = PartitionStatus
HOURS = {"abort": [{"of": "hours", "above": 6, "unit": "hours"}]}


def raising(make: Any, hook: str = "write", only: str = "") -> type[Numbers]:
    """A job whose hook raises what `make` makes, for ever; for these keys only where some are given."""

    def fail(self: Numbers, *arguments: Any) -> Any:
        if hook == "write" and only and arguments[1].partition.label not in only:
            return self.sink.put(*arguments)
        raise make()

    return job_of(**{hook: fail})


def pauses(run: LocalRun) -> list[float]:
    """The seconds between the end of each launch and the beginning of the next, from a run to its end."""
    clock, found, ended = run.clock, [], math.nan
    while (step := run.step()) is not None:
        if step.name == "registered" and not math.isnan(ended):
            found.append(clock.monotonic() - ended)
        ended = clock.monotonic()
    return found


def launches(run: LocalRun) -> int:
    """How many tasks were launched."""
    return run.ledger.runs.get(run.run_id).launches


@pytest.mark.parametrize("hook", ["write", "read", "open"])
def test_a_side_that_throttles_for_ever_is_asked_less_and_less_until_the_run_is_over(hook: str) -> None:
    clock = ManualClock()
    run = run_of(raising(Throttled, hook), keys="ab", sections=HOURS, clock=clock)
    run.run()
    ended = run.ledger.runs.get(run.run_id)
    assert RunStatus.ABORTED == ended.status
    assert (ended.reason or "").startswith("abort rule hours: 6.")
    assert 6 * 3600 < clock.monotonic() < 6 * 3600 + LONGEST_PAUSE + 15 * 60
    assert 9 < launches(run) < 60
    # Interrupted is not failed: it cost nothing that is meant for faults.
    assert (0, 0) == (item(run).takes, item(run).faults)
    assert launches(run) == item(run).idle
    assert {item(run).status, item(run, "b").status} <= {P.INTERRUPTED, P.PENDING}


def test_the_pause_doubles_with_each_launch_that_moved_nothing_up_to_ten_minutes() -> None:
    run = run_of(raising(Throttled, "read"), sections=HOURS)
    found = pauses(run)
    doubling = [3, 6, 12, 24, 48, 96, 192, 384]
    assert pytest.approx([*doubling, *[LONGEST_PAUSE] * (len(found) - 8)]) == found
    assert len(found) > 20


def test_progress_ends_the_patience() -> None:
    attempts: list[int] = []

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        attempts.append(1)
        if len(attempts) <= 24 or 26 <= len(attempts) <= 34:  # three launches; one batch; one launch more
            raise Throttled
        return self.sink.put(rows, ctx)

    run = run_of(job_of(write=write))
    waited = []
    while run.step() is not None:
        waited.append((len(run.tasks), item(run).idle))
    assert RunStatus.SUCCEEDED == run.ledger.runs.get(run.run_id).status
    most = [max(idle for number, idle in waited if number == task) for task in range(1, len(run.tasks) + 1)]
    assert [1, 2, 3, 4, 1] == most


def test_a_run_whose_job_says_nothing_returns_all_the_same() -> None:
    clock = ManualClock()
    run = run_of(raising(Throttled), clock=clock)
    for _ in range(200):
        run.step()
    clock.pass_((MOST_HOURS - 1) * 3600)
    assert RunStatus.ABORTED == run.run().status
    assert clock.monotonic() < (MOST_HOURS + 24) * 3600


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (0, 0.0),
        (2.5, 2.5),
        (LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER),
        (LONGEST_RETRY_AFTER + 1, LONGEST_RETRY_AFTER),
        (1e300, LONGEST_RETRY_AFTER),
        (math.inf, LONGEST_RETRY_AFTER),
        (-math.inf, 0.0),
        (-1, 0.0),
        (math.nan, 0.0),
    ],
)
def test_what_a_side_asks_to_wait_is_bounded(asked: float, taken: float) -> None:
    assert taken == Throttled(retry_after=asked).retry_after


@pytest.mark.parametrize("asked", [math.inf, math.nan, -5.0, 1e300])
def test_no_wish_of_the_other_side_makes_a_run_endless(asked: float) -> None:
    clock = ManualClock()
    run = run_of(raising(lambda: Throttled(retry_after=asked)), sections=HOURS, clock=clock)
    assert RunStatus.ABORTED == run.run().status
    assert clock.monotonic() < 6 * 3600 + LONGEST_PAUSE + 15 * 60


ALL = "abcdefghijklmnopqrstuvwxyz"


def test_a_dead_sink_costs_a_few_launches_a_slice_and_not_two_a_partition() -> None:
    run = run_of(raising(lambda: Transient("connection refused")), keys=ALL)
    run.run()
    assert STUCK_IN_A_ROW * TAKES_WITHOUT_PROGRESS == launches(run)
    assert [P.STUCK] * 3 + [P.FAILED] * 23 == [item(run, key).status for key in ALL]
    assert RunStatus.FAILED == run.ledger.runs.get(run.run_id).status
    cause = "stopped early by transient: 5 attempts of write >= 5 (connection refused)"
    assert error(run, "c").startswith("NoProgress | taken 2 times in a row without a checkpoint; the last ")
    told = (
        "SliceStuck | 3 partitions of its slice got stuck in a row, item=a, item=b, item=c; lastly: exit code"
    )
    assert error(run, "d").startswith(told)
    assert all(cause in error(run, key) for key in "acdz")


def test_each_slice_is_bounded_by_itself() -> None:
    run = run_of(raising(Transient), keys=ALL, sections=slices(2), concurrency=2)
    run.run()
    assert 2 * STUCK_IN_A_ROW * TAKES_WITHOUT_PROGRESS == launches(run)
    assert 6 == run.count(P.STUCK)


@pytest.mark.parametrize(("bad", "stuck"), [("a", 1), ("ab", 2), ("yz", 2), ("abdegh", 6)])
def test_one_bad_partition_or_two_in_a_row_never_stop_their_slice_mates(bad: str, stuck: int) -> None:
    run = run_of(raising(Transient, only=bad), keys=ALL)
    run.run()
    assert (stuck, len(ALL) - len(bad)) == (run.count(P.STUCK), run.accepted)


def test_a_partition_that_got_somewhere_before_it_got_stuck_counts_too() -> None:
    calls: list[Any] = []

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if (ctx.partition.id, rows[0]) in calls or rows[0] == 0:
            calls.append((ctx.partition.id, rows[0]))
            return self.sink.put(rows, ctx)
        raise Transient

    run = run_of(job_of(write=write), keys=ALL)
    run.run()
    # The first launch of each saves a batch and keeps it; two more end without a checkpoint.
    assert ([P.STUCK] * 3, P.FAILED, 3) == (
        [item(run, key).status for key in "abc"],
        item(run, "d").status,
        item(run).counters.read,
    )
    assert launches(run) <= STUCK_IN_A_ROW * (TAKES_WITHOUT_PROGRESS + 1)


def test_kills_from_outside_stop_no_slice_however_many() -> None:
    run = run_of(job_of(), keys="abcdef")
    for _ in range(20):
        for _ in range(2):  # registered, taken
            run.step()
        run.kill(stop_code="SpotInterruption")
    assert 0 == run.count(P.STUCK, P.FAILED)
    run.run()
    assert 6 == run.accepted


def test_kills_without_progress_make_the_pause_longer_and_cost_nothing_else() -> None:
    run = run_of(job_of())
    for _ in range(4):
        for _ in range(2):
            run.step()
        run.kill(stop_code="SpotInterruption")
    acceptance = Acceptance(run.ledger, run.artifacts, run.platform, run.clock)
    assert (24, 4, 0) == (acceptance.pause(last(run).launch), item(run).idle, item(run).takes)


def test_a_task_that_left_no_result_is_told_of_by_its_end_alone() -> None:
    run = run_of(job_of())
    for _ in range(2):
        for _ in range(2):
            run.step()
        run.kill(exit_code=137, stop_code="EssentialContainerExited")
    assert error(run).startswith(
        "NoProgress | taken 2 times in a row without a checkpoint; the last time: "
        f"{Ended(exit_code=137, stop_code='EssentialContainerExited')} |"
    )
