"""The run's rate, shared; and what a throttling sink does to the pace."""

from __future__ import annotations

from typing import Any

import pytest

from trueup import Throttled
from trueup.ledger import Ledger
from trueup.ledger.memory import MemoryTable
from trueup.model.job import Limits
from trueup.model.ledger import Run
from trueup.testing import ManualClock
from trueup.worker import Control
from trueup.worker.pace import Pace
from trueup.worker.stopping import Stopping

from .worker_cases import Numbers, job_of, run_of


def limited(rate: float | None) -> Run:
    """A run of which only the limits matter."""
    run = run_of(job_of())
    run.plan()
    found = run.ledger.runs.get(run.run_id)
    return found.model_copy(update={"limits": Limits(records_per_second=rate)})


def pace_of(run: Run, clock: ManualClock, table: MemoryTable | None = None) -> Pace:
    """The pace of one task of a run."""
    ledger = Ledger(table or MemoryTable(), clock)
    return Pace(ledger, run, Stopping(Control(), clock, minutes=1e6), clock)


def test_without_a_rate_nobody_waits() -> None:
    clock = ManualClock()
    pace_of(limited(None), clock).wait(10**6)
    assert 0.0 == clock.monotonic()


@pytest.mark.parametrize("batch", [1, 7, 10, 33, 50, 51, 120, 1000])
def test_two_tasks_share_the_rate_and_never_exceed_it(batch: int) -> None:
    clock, table, run = ManualClock(), MemoryTable(), limited(10)
    tasks = [pace_of(run, clock, table), pace_of(run, clock, table)]
    worked = 0
    for turn in range(40):
        tasks[turn % 2].wait(batch)
        worked += batch
        # The first window of 5 s may be spent at once, so that much is ahead at most.
        assert worked <= 10 * (clock.monotonic() + 5)
    assert worked >= 5 * clock.monotonic(), "the rate is used, not only kept"


def test_a_change_of_the_rate_is_followed() -> None:
    clock, run = ManualClock(), limited(1)
    pace = pace_of(run, clock)
    pace.wait(5)
    pace.follow(run.model_copy(update={"limits": Limits()}))
    pace.wait(10**6)
    assert 0.0 == clock.monotonic()


def test_the_rate_of_a_run_holds_over_all_its_tasks() -> None:
    clock = ManualClock()
    sections = {"limits": {"max_concurrency": 3, "records_per_second": 2}}
    run = run_of(job_of(), keys="abc", sections=sections, concurrency=3, clock=clock)
    run.run()
    # 36 records at 2 a second, of which 10 may be worked at once.
    assert (3, 36) == (run.accepted, run.records.read)
    assert clock.monotonic() >= 13


def test_a_complaint_halves_the_share_and_quiet_batches_give_it_back() -> None:
    pace = pace_of(limited(None), ManualClock())
    shares = []
    for complains in (True, True, False, False, False, False, False, False, False, False):
        if complains:
            pace.slow_down()
        pace.worked(1.0)
        shares.append(round(pace.share, 2))
    assert [0.5, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.0] == shares


def test_the_share_never_falls_below_a_twentieth() -> None:
    pace = pace_of(limited(None), ManualClock())
    for _ in range(20):
        pace.slow_down()
    assert 0.05 == pace.share


def test_a_share_of_a_half_waits_as_long_as_it_works() -> None:
    clock = ManualClock()
    pace = pace_of(limited(None), clock)
    pace.slow_down()
    pace.worked(3.0)
    pace.wait(1)
    assert 3.0 == clock.monotonic()


def test_a_throttling_sink_slows_the_loop_down() -> None:
    clock = ManualClock()
    failures = [Throttled(retry_after=1)]

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if failures:
            raise failures.pop()
        clock.pass_(10)
        return self.sink.put(rows, ctx)

    run = run_of(job_of(per_batch=6, write=write), clock=clock)
    run.run()
    # Two batches of 10 s; the first one complained, so the second one waits as long as the first one worked.
    assert 31 <= clock.monotonic() < 40
    assert 1 == run.accepted
