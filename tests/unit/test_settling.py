"""`settle`: a run ends only when every partition ended and every task is proved stopped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from trueup.accepting import Acceptance
from trueup.errors import RunClosed, Stale
from trueup.ledger import keys
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Item, Write
from trueup.model.ledger import Run, TaskItem
from trueup.model.states import RUN_ENDS, PartitionStatus, RunStatus
from trueup.platform import TaskState
from trueup.settling import Settled, Settlement
from trueup.testing import LocalRun, LocalTask, ManualClock

from .worker_cases import Died, FailingTable, item, job_of, last, run_of, step_until


def settle(run: LocalRun) -> Settled:
    """What settle finds."""
    acceptance = Acceptance(run.ledger, run.artifacts, run.platform, run.clock)
    return Settlement(run.ledger, run.artifacts, acceptance).settle(run.run_id, run.phase)


def left_at(run: LocalRun, point: str) -> LocalTask:
    """The run's task, dead at a point; nobody judged it."""
    step_until(run, point)
    task = last(run)
    run._active.remove(task)
    run.platform.set(task.arn, TaskState.STOPPED)
    return task


def status(run: LocalRun) -> RunStatus:
    """The run's state in the ledger."""
    return run.ledger.runs.get(run.run_id).status


def holds_lock(run: LocalRun) -> bool:
    """Whether the run still holds its window of the target."""
    return run.run_id in run.ledger.locks.get("numbers").holders


def test_what_is_still_reported_is_accepted_and_the_run_succeeds() -> None:
    run = run_of(job_of())
    left_at(run, "reported")
    assert Settled.ENDED == settle(run)
    assert (RunStatus.SUCCEEDED, 1, False) == (status(run), run.accepted, holds_lock(run))


def test_a_run_with_partitions_left_goes_on_and_keeps_its_lock() -> None:
    run = run_of(job_of(), keys="ab")
    left_at(run, "reported")
    assert Settled.UNFINISHED == settle(run)
    assert (RunStatus.RUNNING, 1, True) == (status(run), run.accepted, holds_lock(run))


def test_a_run_with_a_partition_that_did_not_make_it_has_failed() -> None:
    run = run_of(job_of(transform=lambda self, n: 1 / 0))
    left_at(run, "reported")
    assert Settled.ENDED == settle(run)
    ended = run.ledger.runs.get(run.run_id)
    assert (RunStatus.FAILED, "1 of 1 partitions did not make it") == (ended.status, ended.reason)
    assert not holds_lock(run)


def test_a_partition_that_was_left_out_with_a_reason_does_not_fail_the_run() -> None:
    run = run_of(job_of(), keys="ab")
    left_at(run, "reported")
    run.ledger.verdicts.skip(run.run_id, run.phase, ["item=b"], who="ann", why="no data")
    settle(run)
    assert RunStatus.SUCCEEDED == status(run)


@pytest.mark.parametrize("closed", [False, True])
def test_while_a_task_is_not_proved_stopped_the_run_neither_ends_nor_leaves_its_lock(closed: bool) -> None:
    clock = ManualClock()
    run = run_of(job_of(), clock=clock)
    task = left_at(run, "reported")
    run.platform.set(task.arn, TaskState.MISSING)
    if closed:
        run.ledger.runs.stop(run.run_id, RunStatus.ABORTED, who="ann", why="enough")
    assert Settled.STOPPING == settle(run)
    assert (RunStatus.STOPPING if closed else RunStatus.RUNNING, True) == (status(run), holds_lock(run))
    clock.pass_(3600)
    assert Settled.ENDED == settle(run)
    assert (RunStatus.ABORTED if closed else RunStatus.SUCCEEDED, False) == (status(run), holds_lock(run))


def test_what_a_task_reports_while_it_is_stopped_is_accepted_too() -> None:
    run = run_of(job_of())
    step_until(run, "advanced", 4)
    task = last(run)

    def stop(arn: str, reason: str) -> None:
        while next(task.loop, None) is not None:
            pass
        run.platform.set(arn, TaskState.STOPPED)

    run.platform.stop = stop  # type: ignore[method-assign]
    assert Settled.ENDED == settle(run)
    assert (RunStatus.SUCCEEDED, 1) == (status(run), run.accepted)


@pytest.mark.parametrize(
    ("goal", "settled", "locked"),
    [
        (RunStatus.PAUSED, Settled.PAUSED, True),
        (RunStatus.FAILED, Settled.ENDED, False),
        (RunStatus.ABORTED, Settled.ENDED, False),
        (RunStatus.CANCELLED, Settled.ENDED, False),
    ],
)
def test_a_closed_run_reaches_its_goal_and_only_a_paused_one_keeps_its_lock(
    goal: RunStatus, settled: Settled, locked: bool
) -> None:
    run = run_of(job_of(), keys="ab")
    left_at(run, "written")
    run.ledger.runs.stop(run.run_id, goal, who="ann", why="because")
    assert (settled, goal, locked) == (settle(run), status(run), holds_lock(run))


@pytest.mark.parametrize("goal", [None, RunStatus.PAUSED, RunStatus.CANCELLED])
def test_settled_twice_nothing_changes(goal: RunStatus | None) -> None:
    run = run_of(job_of())
    left_at(run, "reported")
    if goal is not None:
        run.ledger.runs.stop(run.run_id, goal, who="ann", why="because")
    first = settle(run)
    before = (run.ledger.runs.get(run.run_id), item(run), run.ledger.locks.get("numbers"), trail(run))
    assert first == settle(run)
    assert before == (run.ledger.runs.get(run.run_id), item(run), run.ledger.locks.get("numbers"), trail(run))


def trail(run: LocalRun) -> list[str]:
    """The verbs on the audit trail, of one instant all of them, and so in no order."""
    return sorted(entry.verb for entry in run.ledger.audit.of(run.run_id))


@pytest.mark.parametrize("fails", [False, True])
def test_dying_after_any_write_and_called_again_it_ends_the_same(fails: bool) -> None:
    def ready() -> tuple[LocalRun, FailingTable]:
        table = FailingTable()
        members = {"transform": lambda self, n: 1 / 0} if fails else {}
        run = run_of(job_of(**members), table=table)
        left_at(run, "reported")
        table.writes = 0
        return run, table

    run, table = ready()
    settle(run)
    expected, writes = (status(run), holds_lock(run), trail(run), run.records), table.writes
    assert 4 <= writes
    for number in range(1, writes + 1):
        run, table = ready()
        table.dies_at = number
        with pytest.raises(Died):
            settle(run)
        table.dies_at = 0
        assert Settled.ENDED == settle(run)
        assert expected == (status(run), holds_lock(run), trail(run), run.records)


def test_a_dry_run_ends_without_a_lock() -> None:
    run = run_of(job_of(), dry_run=True)
    left_at(run, "reported")
    assert (Settled.ENDED, RunStatus.SUCCEEDED) == (settle(run), status(run))


class Watched(MemoryTable):
    """A table that lets somebody act right after TASK items were read for the time of that number."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.acts_at = 0
        self.act: Callable[[], None] = lambda: None

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        found = list(super().query(pk, prefix, after))
        if prefix.startswith("TASK#"):
            self.reads += 1
            if self.reads == self.acts_at:
                self.act()
        return iter(found)


def registers_late(run: LocalRun) -> None:
    """A task that was launched twice by mistake begins only now; a closed run refuses it."""
    now = run.clock.now()
    late = TaskItem(
        phase=run.phase,
        slice_id=0,
        launch=99,
        generation=1,
        task="late",
        registered_at=now,
        beat_at=now,
    )
    run.platform.set("late", TaskState.ALIVE)
    with suppress(RunClosed):
        run.ledger.tasks.register(run.run_id, late)


def test_whenever_a_task_registers_late_no_run_has_ended_while_it_is_alive() -> None:
    registered = 0
    for number in itertools.count(1):
        table = Watched()
        run = run_of(job_of(), table=table)
        left_at(run, "reported")
        table.reads, table.acts_at, table.act = 0, number, lambda run=run: registers_late(run)
        for _ in range(3):
            with suppress(Stale):
                settle(run)
            left = [task.task for task in run.ledger.tasks.of(run.run_id)]
            registered += bool(left)
            assert not (left and status(run) in RUN_ENDS), f"after read {number}, {left} is left"
            assert holds_lock(run) == (status(run) not in RUN_ENDS)
        assert (RunStatus.SUCCEEDED, []) == (status(run), left)
        if table.reads < number:
            break
    assert number > 2
    assert registered, "nobody registered in time to be seen"


def before_it_stops(run: LocalRun, act: Callable[[], None]) -> None:
    """Let somebody act once, right before the run is stopped for what was counted."""
    stop = run.ledger.runs.stop

    def late(*args: Any, **named: Any) -> Run:
        run.ledger.runs.stop = stop  # type: ignore[method-assign]
        act()
        return stop(*args, **named)

    run.ledger.runs.stop = late  # type: ignore[method-assign]


def paused(run: LocalRun) -> None:
    """A person pauses the run; it is not there yet."""
    run.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")


def resumed(run: LocalRun, table: MemoryTable, retried: list[str]) -> None:
    """A person pauses the run, resumes it as generation 2, and has partitions worked again."""
    paused(run)
    run.ledger.runs.finish(run.run_id, RunStatus.PAUSED, who="ann")
    table.write(Write(keys.run(run.run_id), sets={"status": "RUNNING", "generation": 2}))
    if retried:
        run.ledger.verdicts.retry(run.run_id, run.phase, retried, who="ann", why="mended")


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_counted_before_a_run_was_resumed_does_not_end_it(fails: bool) -> None:
    table = MemoryTable()
    run = run_of(job_of(**({"transform": lambda self, n: 1 / 0} if fails else {})), table=table)
    left_at(run, "reported")
    before_it_stops(run, lambda: resumed(run, table, ["item=a"] if fails else []))
    assert Settled.UNFINISHED == settle(run)
    now = run.ledger.runs.get(run.run_id)
    assert (RunStatus.RUNNING, 2, None, True) == (now.status, now.generation, now.goal, holds_lock(run))
    assert (PartitionStatus.PENDING if fails else PartitionStatus.ACCEPTED) == item(run).status


def test_a_run_that_a_person_closes_while_it_is_counted_gets_the_persons_end() -> None:
    run = run_of(job_of(transform=lambda self, n: 1 / 0))
    left_at(run, "reported")
    before_it_stops(run, lambda: paused(run))
    assert Settled.PAUSED == settle(run)
    assert (RunStatus.PAUSED, True) == (status(run), holds_lock(run))
