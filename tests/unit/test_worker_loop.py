"""The loop: its order, its checkpoints, and what is left when it is killed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trueup import Outcome, Skip, Throttled
from trueup.model.states import PartitionStatus
from trueup.testing import LocalRun, ManualClock

from .worker_cases import (
    FailingTable,
    Numbers,
    Sink,
    contracts,
    error,
    item,
    job_of,
    last,
    position,
    run_of,
    slices,
    step_until,
)


def names(run: LocalRun) -> list[str]:
    """The points of the last task."""
    return [step.name for step in last(run).points]


def test_a_slice_goes_through_its_points_in_this_order() -> None:
    run = run_of(job_of(size=6))
    run.run()
    assert ["registered", "taken", *["written", "advanced"] * 2, "reported", "stored"] == names(run)


def test_partitions_are_worked_in_the_order_of_the_slice() -> None:
    run = run_of(job_of(size=3), keys="cab")
    run.run()
    taken = [step.partition_id for step in last(run).points if step.name == "taken"]
    assert [part.id for part in run.artifacts.partitions(run.plan().partitions)] == taken


def test_every_record_is_accounted_for() -> None:
    run = run_of(job_of(transform=lambda self, n: Skip("odd") if n % 2 else [n, n + 100]))
    run.run()
    figures = run.records
    assert (12, 6, 6, 0) == (figures.read, figures.used, figures.skipped, figures.rejected)
    assert (12, 12, 0, 0) == (figures.produced, figures.written, figures.unchanged, figures.refused)
    assert {"odd": 6} == item(run).skipped


def ticking(seconds: float, clock: ManualClock) -> type[Numbers]:
    """A job of 30 records whose every batch takes that long."""

    def write(self: Numbers, rows: Any, ctx: Any) -> Outcome:
        clock.pass_(seconds)
        return self.sink.put(rows, ctx)

    return job_of(size=30, write=write)


def test_checkpoints_are_coalesced_to_one_every_few_seconds() -> None:
    clock = ManualClock()
    run = run_of(ticking(1.0, clock), clock=clock, checkpoint_seconds=3)
    run.run()
    # Ten batches of a second each: after the third, sixth and ninth, and at the end.
    assert 10 == names(run).count("written")
    assert 4 == names(run).count("advanced")


def test_slow_batches_are_saved_one_by_one() -> None:
    clock = ManualClock()
    run = run_of(ticking(4.0, clock), clock=clock, checkpoint_seconds=3)
    run.run()
    assert 10 == names(run).count("advanced")


def test_an_interrupted_task_saves_what_it_worked() -> None:
    run = run_of(job_of(), checkpoint_seconds=60)
    step_until(run, "written", 2)
    run.interrupt()
    step_until(run, "interrupted")
    assert (PartitionStatus.INTERRUPTED, "v1:6", 6) == (
        item(run).status,
        item(run).cursor,
        item(run).counters.read,
    )


def test_a_failing_partition_saves_the_batches_before_the_failure() -> None:
    def transform(self: Numbers, n: int) -> int:
        if n == 8:
            raise ValueError("eight")
        return n

    run = run_of(job_of(transform=transform), checkpoint_seconds=60)
    run.run()
    assert (PartitionStatus.FAILED, "v1:6", 6) == (
        item(run).status,
        item(run).cursor,
        item(run).counters.read,
    )


def test_the_end_of_a_partition_saves_what_is_left() -> None:
    run = run_of(job_of(), checkpoint_seconds=60)
    run.run()
    assert (PartitionStatus.ACCEPTED, "v1:12", 12) == (
        item(run).status,
        item(run).cursor,
        item(run).counters.read,
    )


def test_a_task_resumes_after_the_last_checkpoint() -> None:
    starts: list[str | None] = []

    class Job(Numbers):
        sink = job_of().sink

        def read(self, part: Any, after: str | None) -> Any:
            starts.append(after)
            return super().read(part, after)

    run = run_of(Job)
    step_until(run, "advanced", 2)
    run.kill()
    run.run()
    assert [None, "v1:6"] == starts


def clean(run: LocalRun) -> tuple[Any, ...]:
    """What must be the same however often a run was killed."""
    figures = run.records
    split = figures.written + figures.unchanged
    return (
        run.accepted,
        figures.read,
        figures.used,
        figures.skipped,
        figures.rejected,
        figures.produced,
        split,
    )


def skipping(**members: Any) -> type[Numbers]:
    return job_of(size=10, transform=lambda self, n: Skip("seven") if n == 7 else n, **members)


POINTS = 1 + 2 * (1 + 2 * 4 + 1) + 1


def check_after_kills(run: LocalRun, job: type[Numbers]) -> None:
    assert (2, 20, 18, 2, 0, 18, 18) == clean(run)
    assert {(f"item={key}", n) for key in "ab" for n in range(10) if n != 7} == set(job.sink.rows)
    assert job.sink.applied_again() <= run.replayed


def test_the_points_that_are_killed_at_are_all_there_are() -> None:
    run = run_of(skipping(), keys="ab")
    run.run()
    assert POINTS == sum(len(task.points) for task in run.tasks)


@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_killed_once_at_any_point_no_record_is_lost_or_counted_twice(point: int) -> None:
    job = skipping()
    run = run_of(job, keys="ab")
    for _ in range(point):
        run.step()
    run.kill()
    run.run()
    check_after_kills(run, job)


@pytest.mark.parametrize("seed", range(40))
def test_killed_twice_with_several_tasks_no_record_is_lost_or_counted_twice(seed: int) -> None:
    rng = random.Random(seed)
    job = skipping()
    run = run_of(job, keys="ab", sections=slices(2), concurrency=rng.choice([1, 2]), seed=seed)
    for _ in range(2):
        for _ in range(rng.randrange(1, POINTS)):
            run.step()
        run.kill()
    run.run()
    check_after_kills(run, job)


@pytest.mark.parametrize("point", range(1, POINTS - 8))
def test_killed_between_coalesced_checkpoints_all_since_the_last_one_counts_as_replayed(point: int) -> None:
    job = skipping()
    run = run_of(job, keys="ab", checkpoint_seconds=60)
    for _ in range(point):
        run.step()
    run.kill()
    run.run()
    check_after_kills(run, job)


def test_an_interruption_before_the_first_checkpoint_does_not_forget_the_death_before_it() -> None:
    class Slow(Numbers):
        sink = Sink()
        throttled = False

        def read(self, part: Any, after: str | None) -> Any:
            if type(self).throttled:
                raise Throttled(retry_after=1)
            yield from super().read(part, after)

    run = run_of(Slow)
    step_until(run, "written")
    run.kill()
    step_until(run, "taken")
    Slow.throttled = True
    run.interrupt()
    step_until(run, "interrupted")
    Slow.throttled = False
    run.run()

    assert 3 == run.job_class.sink.applied_again() <= run.replayed


def test_without_kills_nothing_is_replayed() -> None:
    run = run_of(job_of(), keys="ab")
    run.run()
    assert 0 == run.replayed


def test_an_interruption_replays_nothing() -> None:
    run = run_of(job_of())
    step_until(run, "written", 2)
    run.interrupt()
    run.run()
    assert (0, 0) == (run.replayed, run.job_class.sink.applied_again())


def test_what_is_applied_twice_never_reaches_back_beyond_the_last_checkpoint() -> None:
    job = job_of()
    run = run_of(job)
    step_until(run, "advanced", 2)
    step_until(run, "written")
    saved = position(item(run).cursor)
    run.kill()
    run.run()
    twice = [row for part, row, launch in job.sink.witness if launch == 1 and row >= saved]
    assert [6, 7, 8] == twice
    assert list(range(saved, 12)) == [row for _, row, launch in job.sink.witness if launch == 2]


def test_one_bad_partition_among_forty_stops_none_of_the_others() -> None:
    def transform(self: Numbers, n: int) -> int:
        if n == self.bad:  # type: ignore[attr-defined]
            raise ValueError("no such number")
        return n

    class Job(Numbers):
        sink = job_of().sink
        size = 4

        def read(self, part: Any, after: str | None) -> Any:
            self.bad = 2 if part.id == "item=bad" else -1
            return super().read(part, after)

    Job.transform = transform  # type: ignore[assignment]
    keys = [f"k{number}" for number in range(39)]
    run = LocalRun(Job, run_of(Job).job, keys=[*keys[:20], "bad", *keys[20:]])
    run.run()
    assert (39, 1) == (run.accepted, run.count(PartitionStatus.FAILED))
    assert "ValueError | transform failed with ValueError: no such number | 2" == error(run, "bad")
    assert 1 == len(run.tasks)


def test_a_checkpoint_that_cannot_be_written_ends_the_task() -> None:
    table = FailingTable()
    job = job_of()
    run = run_of(job, keys="ab", table=table)
    step_until(run, "written", 2)
    table.down = lambda write: write.sets.get("cursor") is not None
    assert "registered" == getattr(run.step(), "name", None), "the task left, and another one was launched"
    # No progress recorded, no progress made: nothing was written after the refused checkpoint.
    assert {("item=a", n) for n in range(6)} == set(job.sink.rows)
    assert ("v1:3", PartitionStatus.RUNNING) == (item(run).cursor, item(run).status)
    table.down = lambda write: False
    run.run()
    assert 2 == run.accepted


def test_the_contract_lists_only_what_the_task_itself_worked() -> None:
    run = run_of(job_of(size=3), keys="ab")
    step_until(run, "reported")
    run.kill()
    run.run()
    assert [["item=b"]] == [one.partition_ids for one in contracts(run)]
