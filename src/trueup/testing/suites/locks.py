"""Locks and rates: what runs and tasks share."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from trueup.errors import LockHeld, Refused, RunClosed
from trueup.ledger import Ledger
from trueup.ledger.rates import WINDOW_SECONDS
from trueup.ledger.table import Table
from trueup.model.ledger import Lock, Run
from trueup.model.plan import Window
from trueup.model.states import RUN_ENDS, RunStatus
from trueup.testing.suites.support import (
    FEBRUARY,
    JANUARY,
    Scene,
    TickingClock,
    a_run,
    in_threads,
    refusal,
    unique,
)

R = RunStatus

SIZES = (80_000, 80_000, 250_000)  # of windows, in bytes; a lock takes 409,600


def _runs(table: Table, *windows: object) -> tuple[Ledger, list[Run]]:
    """A ledger, and open runs on one target with these windows."""
    ledger, target = Ledger(table, TickingClock()), unique("target")
    return ledger, [ledger.runs.create(a_run(target=target, window=window)) for window in windows]


def _end(ledger: Ledger, run: Run, goal: RunStatus = R.CANCELLED) -> Run:
    ledger.runs.stop(run.run_id, goal, who="ann", why="because")
    return ledger.runs.finish(run.run_id, goal, who="settler")


class LockSuite:
    """One lock per target, with all its writers."""

    def test_a_lock_that_nobody_held_is_free(self, table: Table) -> None:
        target = unique("target")
        assert Lock(target=target) == Ledger(table).locks.get(target)

    def test_taking_writes_holder_window_and_epoch_and_the_run_knows_it(self, table: Table) -> None:
        ledger, (run,) = _runs(table, JANUARY)
        assert 1 == ledger.locks.take(run)
        lock = ledger.locks.get(run.target)
        assert [(run.run_id, JANUARY, 1)] == [
            (of.run_id, of.window, of.epoch) for of in lock.holders.values()
        ]
        assert 1 == ledger.runs.get(run.run_id).epoch

    def test_an_overlapping_window_is_refused_with_the_holders_name(self, table: Table) -> None:
        inside = JANUARY.model_copy(update={"low": "2013-01-31"})
        ledger, (first, second) = _runs(table, JANUARY, inside)
        ledger.locks.take(first)
        error = refusal(LockHeld, ledger.locks.take, second)
        assert ("no other holder's window overlaps", inside) == (error.clause, error.wanted)
        assert first.run_id in str(error)
        assert first.run_id in (error.found or {})["holders"]
        assert [first.run_id] == list(ledger.locks.get(first.target).holders)
        assert 0 == ledger.runs.get(second.run_id).epoch

    def test_windows_that_do_not_overlap_are_held_side_by_side(self, table: Table) -> None:
        ledger, (first, second) = _runs(table, JANUARY, FEBRUARY)
        assert [1, 2] == [ledger.locks.take(first), ledger.locks.take(second)]
        assert {first.run_id, second.run_id} == set(ledger.locks.get(first.target).holders)

    def test_a_lock_that_has_no_room_for_one_more_window_says_so(self, table: Table) -> None:
        windows = [
            Window(kind="list", items=(name + "x" * size,)) for name, size in zip("abc", SIZES, strict=True)
        ]
        ledger, (first, second, third) = _runs(table, *windows)
        assert [1, 2] == [ledger.locks.take(first), ledger.locks.take(second)]
        error = refusal(LockHeld, ledger.locks.take, third)
        assert "the lock has room for one more holder" == error.clause
        assert f"2 runs hold windows of {third.target}, and its lock has no room" in str(error)
        assert {first.run_id, second.run_id} == set(ledger.locks.get(third.target).holders)

    def test_a_holder_that_asks_again_gets_its_own_epoch(self, table: Table) -> None:
        ledger, (first, second) = _runs(table, JANUARY, FEBRUARY)
        ledger.locks.take(first)
        ledger.locks.take(second)
        lock = ledger.locks.get(first.target)
        assert [1, 2] == [ledger.locks.take(first), ledger.locks.take(second)]
        assert lock == ledger.locks.get(first.target)

    def test_an_epoch_never_repeats_though_everyone_left(self, table: Table) -> None:
        ledger, runs = _runs(table, JANUARY, JANUARY, JANUARY)
        epochs = []
        for run in runs:
            epochs.append(ledger.locks.take(run))
            ledger.locks.leave(_end(ledger, run))
            assert {} == ledger.locks.get(run.target).holders
        assert [1, 2, 3] == epochs

    def test_a_closed_run_takes_no_lock(self, table: Table) -> None:
        ledger, (run,) = _runs(table, JANUARY)
        ledger.runs.stop(run.run_id, R.PAUSED, who="ann", why="lunch")
        assert "the run is open" == refusal(RunClosed, ledger.locks.take, run).clause
        assert Lock(target=run.target) == ledger.locks.get(run.target)

    def test_a_run_of_another_generation_takes_no_lock(self, table: Table) -> None:
        ledger, (run,) = _runs(table, JANUARY)
        later = run.model_copy(update={"generation": 2})
        assert "the run is of this generation" == refusal(RunClosed, ledger.locks.take, later).clause
        assert Lock(target=run.target) == ledger.locks.get(run.target)

    def test_a_run_leaves_only_when_it_has_ended(self, table: Table) -> None:
        for goal in (R.PAUSED, *sorted(RUN_ENDS)):
            ledger, (run,) = _runs(table, JANUARY)
            ledger.locks.take(run)
            error = refusal(Refused, ledger.locks.leave, run)
            assert ("the run has ended", "RUNNING") == (error.clause, (error.found or {})["status"])
            ledger.runs.stop(run.run_id, goal, who="ann", why="because")
            refusal(Refused, ledger.locks.leave, run)
            ledger.runs.finish(run.run_id, goal, who="settler")
            if goal is R.PAUSED:
                refusal(Refused, ledger.locks.leave, run)
                assert [run.run_id] == list(ledger.locks.get(run.target).holders)
            else:
                ledger.locks.leave(run)
                ledger.locks.leave(run)
                assert {} == ledger.locks.get(run.target).holders

    def test_a_run_that_ended_leaves_and_others_stay(self, table: Table) -> None:
        ledger, (first, second) = _runs(table, JANUARY, FEBRUARY)
        ledger.locks.take(first)
        ledger.locks.take(second)
        ledger.runs.stop(first.run_id, R.CANCELLED, who="ann", why="because")
        ledger.locks.leave(ledger.runs.finish(first.run_id, R.CANCELLED, who="settler"))
        assert [second.run_id] == list(ledger.locks.get(first.target).holders)

    def test_of_eight_that_take_one_window_at_once_exactly_one_wins(self, table: Table) -> None:
        ledger, runs = _runs(table, *[JANUARY] * 8)
        answers = in_threads(8, lambda index: ledger.locks.take(runs[index]))
        assert (1, 7) == (answers.count(1), sum(isinstance(answer, LockHeld) for answer in answers))
        assert [runs[answers.index(1)].run_id] == list(ledger.locks.get(runs[0].target).holders)

    def test_eight_that_take_windows_apart_at_once_get_epochs_apart(self, table: Table) -> None:
        days = [
            JANUARY.model_copy(update={"low": f"2013-01-0{d}", "high": f"2013-01-0{d + 1}"})
            for d in range(1, 9)
        ]
        ledger, runs = _runs(table, *days)
        epochs = in_threads(8, lambda index: ledger.locks.take(runs[index]))
        assert set(range(1, 9)) == set(epochs)
        held = ledger.locks.get(runs[0].target)
        assert dict(zip([run.run_id for run in runs], epochs, strict=True)) == {
            run_id: holder.epoch for run_id, holder in held.holders.items()
        }


class RateSuite:
    """The run's rate, shared among its tasks."""

    def test_tasks_share_the_window_and_the_next_one_is_new(self, table: Table) -> None:
        scene = Scene(table)
        reserve = scene.ledger.rates.reserve
        now = 1000.0
        assert [0.0, 0.0] == [reserve(scene.run_id, 20, 10.0, now) for _ in range(2)]
        assert 3.5 == reserve(scene.run_id, 20, 10.0, now + 1.5)
        assert 0.0 == reserve(scene.run_id, 10, 10.0, now + 2)
        assert 0.0 == reserve(scene.run_id, 20, 10.0, now + WINDOW_SECONDS)

    def test_no_more_than_the_limit_is_reserved_in_a_window_by_many_at_once(self, table: Table) -> None:
        scene = Scene(table)

        def reserve(_: int) -> int:
            answers = [scene.ledger.rates.reserve(scene.run_id, 10, 30.0, 1000.0) for _ in range(3)]
            return answers.count(0.0)

        granted = in_threads(8, reserve)
        assert 15 == sum(of for of in granted if isinstance(of, int))

    def test_a_reservation_larger_than_a_window_has_one_to_itself(self, table: Table) -> None:
        scene = Scene(table)
        reserve = scene.ledger.rates.reserve
        assert [0.0, 5.0] == [
            reserve(scene.run_id, 1000, 10.0, 1000.0),
            reserve(scene.run_id, 1, 10.0, 1000.0),
        ]
        assert 5.0 == reserve(scene.run_id, 1000, 10.0, 1000.0)
        assert 0.0 == reserve(scene.run_id, 1000, 10.0, 1005.0)

    def test_a_clock_that_lags_behind_gets_nothing_from_a_window_gone_by(self, table: Table) -> None:
        scene = Scene(table)
        assert 0.0 == scene.ledger.rates.reserve(scene.run_id, 1, 10.0, 1005.0)
        assert 1.0 == scene.ledger.rates.reserve(scene.run_id, 1, 10.0, 1004.0)

    def test_a_limit_that_was_lowered_holds_at_once(self, table: Table) -> None:
        scene = Scene(table)
        assert 0.0 == scene.ledger.rates.reserve(scene.run_id, 20, 10.0, 1000.0)
        assert 5.0 == scene.ledger.rates.reserve(scene.run_id, 1, 4.0, 1000.0)
