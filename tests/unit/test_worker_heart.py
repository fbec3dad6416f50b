"""Heartbeats: they stop with the loop, and carry back what the run wants."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from trueup.errors import StoreUnavailable
from trueup.ledger.memory import MemoryTable
from trueup.model.states import RunStatus
from trueup.testing import LocalRun, ManualClock
from trueup.worker.heart import BeatThread, Heart
from trueup.worker.stopping import Stopping

from .worker_cases import FailingTable, item, job_of, last, run_of, step_until


def heart_of(run: LocalRun) -> Heart:
    """The heart of the task that was launched last."""
    heart = last(run).worker.heart
    assert heart is not None
    return heart


def at_work(clock: ManualClock | None = None, table: MemoryTable | None = None) -> LocalRun:
    """A run whose one task has taken its partition."""
    run = run_of(job_of(), clock=clock, table=table)
    step_until(run, "taken")
    return run


def test_a_beat_says_when_what_and_how_fast() -> None:
    clock = ManualClock()
    run = at_work(clock)
    step_until(run, "written")
    clock.pass_(2)
    assert heart_of(run).beat()
    told = next(run.ledger.tasks.of(run.run_id))
    assert (clock.now(), "item=a", 1.5) == (told.beat_at, told.partition, told.records_per_second)


def test_a_beat_that_is_refused_stops_the_task() -> None:
    run = at_work()
    run.ledger.tasks.proved_stopped(run.run_id, next(run.ledger.tasks.of(run.run_id)))
    assert not heart_of(run).beat()
    lost = last(run).control.lost
    assert lost is not None
    assert "is not registered any more" in lost


def test_while_the_store_is_down_the_heart_goes_on_and_so_does_the_loop() -> None:
    table = FailingTable()
    run = at_work(table=table)
    table.down = lambda write: True
    assert heart_of(run).beat()
    assert "written" == next(last(run).loop).name
    assert last(run).control.lost is None


def test_a_beat_tells_the_loop_that_the_run_is_closed() -> None:
    run = at_work()
    run.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="wrong year")
    heart_of(run).beat()
    assert RunStatus.STOPPING == last(run).control.run_status


def hanging(clock: ManualClock) -> tuple[LocalRun, Heart, list[str]]:
    """A run whose task hangs, and the reasons that its heart gives."""
    run = at_work(clock)
    heart, reasons = heart_of(run), []
    heart._no_progress = reasons.append
    return run, heart, reasons


def test_a_loop_that_hangs_is_ended_after_the_declared_time() -> None:
    clock = ManualClock()
    _, heart, reasons = hanging(clock)
    clock.pass_(600)
    assert heart.beat()
    clock.pass_(1)
    assert not heart.beat()
    assert ["progress: 601 s without a checkpoint > 600 s"] == reasons


def test_a_heart_whose_loop_hangs_writes_no_more_beats() -> None:
    clock = ManualClock()
    run, heart, _ = hanging(clock)
    before = next(run.ledger.tasks.of(run.run_id)).beat_at
    clock.pass_(601)
    heart.beat()
    assert before == next(run.ledger.tasks.of(run.run_id)).beat_at


def test_a_checkpoint_is_progress() -> None:
    clock = ManualClock()
    run, heart, reasons = hanging(clock)
    clock.pass_(599)
    step_until(run, "advanced")
    clock.pass_(599)
    assert heart.beat()
    assert [] == reasons


def test_who_waits_for_the_sink_is_not_without_progress() -> None:
    clock = ManualClock()
    run, heart, reasons = hanging(clock)
    Stopping(last(run).control, clock, minutes=60).wait(3000, "the run's rate")
    assert heart.beat()
    assert [] == reasons


class Counting:
    """Stands in for a heart: counts beats, and tells when it has counted enough."""

    def __init__(self, enough: int, *, fails: bool = False) -> None:
        self.beats = 0
        self.enough = threading.Event()
        self._most = enough
        self._fails = fails

    def beat(self) -> bool:
        self.beats += 1
        if self.beats >= self._most:
            self.enough.set()
        if self._fails:
            raise StoreUnavailable("a bug")
        return True


def beating(heart: Any) -> BeatThread:
    return BeatThread(heart, seconds=0.001)


def test_the_thread_ends_with_the_block() -> None:
    heart = Counting(3)
    with beating(heart) as thread:
        assert heart.enough.wait(10)
    assert not thread._thread.is_alive()


def test_the_thread_ends_with_the_block_also_when_that_raises() -> None:
    thread = beating(Counting(1))
    with pytest.raises(KeyError), thread:
        raise KeyError
    assert not thread._thread.is_alive()


def test_a_beat_with_a_bug_does_not_end_the_watch() -> None:
    heart = Counting(3, fails=True)
    with beating(heart):
        assert heart.enough.wait(10)
    assert 3 <= heart.beats


def test_a_heart_that_says_no_is_not_asked_again() -> None:
    class Refusing(Counting):
        def beat(self) -> bool:
            super().beat()
            return False

    heart = Refusing(1)
    with beating(heart) as thread:
        thread._thread.join(10)
    assert 1 == heart.beats


def test_a_frozen_task_learns_from_its_first_beat_that_it_is_not_wanted() -> None:
    run = at_work()
    zombie = run.freeze()[0]
    zombie.step()
    assert zombie.control.lost is not None
    assert 1 == item(run).launch
