"""`accept` called twice, and `accept` that dies half-way: both end the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trueup.accepting import Acceptance
from trueup.errors import Stale
from trueup.model.states import PartitionStatus
from trueup.platform import Ended, TaskState
from trueup.testing import LocalRun, LocalTask
from trueup.worker import Exit

from .worker_cases import Died, FailingTable, item, job_file, job_of, last, step_until


def died(run: LocalRun, point: str, times: int = 1) -> LocalTask:
    """The task that was launched last, dead at a point."""
    step_until(run, point, times)
    task = last(run)
    run._active.remove(task)
    run.platform.set(task.arn, TaskState.STOPPED)
    return task


def accept(run: LocalRun, task: LocalTask, ended: Ended) -> str:
    """What accept answers."""
    return Acceptance(run.ledger, run.artifacts, run.platform, run.clock).accept(task.launch, ended)


def finished(run: LocalRun) -> tuple[LocalTask, Ended]:
    """A slice that went well."""
    return died(run, "stored"), Ended(exit_code=0)


def half(run: LocalRun) -> tuple[LocalTask, Ended]:
    """One partition reported, one at work, and the task is gone."""
    return died(run, "written", 5), Ended(exit_code=137)


def spot(run: LocalRun) -> tuple[LocalTask, Ended]:
    """Interrupted from outside after a take."""
    return died(run, "taken"), Ended(exit_code=137, stop_code="SpotInterruption")


def bad_input(run: LocalRun) -> tuple[LocalTask, Ended]:
    """The task refused its input."""
    return died(run, "registered"), Ended(exit_code=Exit.BAD_INPUT)


def second_launch(run: LocalRun) -> tuple[LocalTask, Ended]:
    """The second launch that ended before any take."""
    accept(run, died(run, "registered"), Ended(exit_code=1))
    run._launch(last(run).launch.slice)
    return died(run, "registered"), Ended(exit_code=1)


def second_take(run: LocalRun) -> tuple[LocalTask, Ended]:
    """The second take without progress."""
    accept(run, died(run, "taken"), Ended(exit_code=1))
    run._launch(last(run).launch.slice)
    return died(run, "taken"), Ended(exit_code=1)


def third_stuck(run: LocalRun) -> tuple[LocalTask, Ended]:
    """The second take without progress of the third partition in a row, which ends the slice."""
    task = died(run, "taken")
    for _ in range(5):
        accept(run, task, Ended(exit_code=1))
        run._launch(task.launch.slice)
        task = died(run, "taken")
    return task, Ended(exit_code=1)


def throttled_before_any_take(run: LocalRun) -> tuple[LocalTask, Ended]:
    """It left with 75 before it took anything: no fault, but no progress either."""
    return died(run, "registered"), Ended(exit_code=Exit.INTERRUPTED)


CASES = [
    finished,
    half,
    spot,
    bad_input,
    second_launch,
    second_take,
    third_stuck,
    throttled_before_any_take,
]
FEW = 5
MANY = 230  # partitions: their end states take three transactions


def outcome(run: LocalRun) -> Any:
    """What accept can change, without the times."""
    items = [
        one.model_dump(exclude={"updated_at"}) for one in run.ledger.partitions.all(run.run_id, run.phase)
    ]
    counts = run.ledger.verdicts.counts(run.run_id)
    return items, counts, list(run.ledger.tasks.of(run.run_id))


def fresh(table: FailingTable, keys: int = 2) -> LocalRun:
    """A run over some partitions, all in one slice."""
    job = job_file(partitions={"by": "list", "key": "item", "seconds": 0.1})
    return LocalRun(job_of(), job, keys=[f"{number:03d}" for number in range(keys)], table=table)


@pytest.mark.parametrize("case", CASES)
def test_called_again_it_answers_the_same_and_changes_nothing(
    case: Callable[[LocalRun], tuple[LocalTask, Ended]],
) -> None:
    run = fresh(FailingTable(), FEW)
    task, ended = case(run)
    first = accept(run, task, ended)
    before = outcome(run)
    assert [first, first] == [accept(run, task, ended) for _ in range(2)]
    assert before == outcome(run)


@pytest.mark.parametrize("case", CASES)
def test_dying_after_any_write_and_called_again_it_ends_the_same(
    case: Callable[[LocalRun], tuple[LocalTask, Ended]],
) -> None:
    table = FailingTable()
    run = fresh(table, FEW)
    task, ended = case(run)
    table.writes = 0
    answer, expected, writes = accept(run, task, ended), outcome(run), table.writes
    assert 0 < writes
    for number in range(1, writes + 1):
        assert (answer, expected) == died_at(number, case)


def died_at(number: int, case: Callable[[LocalRun], tuple[LocalTask, Ended]], keys: int = FEW) -> Any:
    """What is found where accept died after its write of that number, and was called again."""
    table = FailingTable()
    run = fresh(table, keys)
    task, ended = case(run)
    table.writes, table.dies_at = 0, number
    with pytest.raises(Died):
        accept(run, task, ended)
    table.dies_at = 0
    return accept(run, task, ended), outcome(run)


@pytest.mark.parametrize("case", [bad_input, second_launch, third_stuck])
def test_dying_among_many_partitions_it_still_ends_them_all(
    case: Callable[[LocalRun], tuple[LocalTask, Ended]],
) -> None:
    table = FailingTable()
    run = fresh(table, MANY)
    task, ended = case(run)
    table.writes = 0
    accept(run, task, ended)
    writes = table.writes
    assert 4 <= writes, "the end states of one slice are written in several transactions"
    for number in range(1, writes + 1):
        answer, _ = died_at(number, case, MANY)
        assert "failed" == answer


def test_a_partition_that_moves_meanwhile_is_read_and_decided_again() -> None:
    run = fresh(FailingTable())
    task, ended = finished(run)
    verdicts, decide, calls = run.ledger.verdicts, run.ledger.verdicts.decide, []

    def moving(*arguments: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise Stale("It moved.")
        decide(*arguments, **options)

    verdicts.decide = moving  # type: ignore[method-assign]
    assert ("done", 2) == (accept(run, task, ended), run.accepted)


def test_where_partitions_keep_moving_it_gives_up_loudly() -> None:
    run = fresh(FailingTable())
    task, ended = finished(run)

    def moving(*arguments: Any, **options: Any) -> None:
        raise Stale("It moved.")

    run.ledger.verdicts.decide = moving  # type: ignore[method-assign]
    with pytest.raises(Stale):
        accept(run, task, ended)
    assert PartitionStatus.REPORTED == item(run, "000").status
