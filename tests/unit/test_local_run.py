"""LocalRun: a run in one process, for authors' tests and ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trueup import Backfill, Batch, Outcome, Partition
from trueup.errors import JobError, LockHeld, RequestError
from trueup.ledger.memory import MemoryTable
from trueup.model.states import PartitionStatus, RunStatus
from trueup.testing import LocalRun, ManualClock, check_backfill, check_reading
from trueup.worker import Exit, Step

from .worker_cases import Numbers, item, job_file, job_of, last, position, run_of, slices, step_until

YAML = """\
name: numbers
class: numbers:Job
partitions: {by: list, key: item}
target: {name: numbers, guard: fence}
"""


def test_nothing_happens_before_it_is_asked_for() -> None:
    table = MemoryTable()
    run_of(job_of(), table=table)
    assert {} == table._items


def test_planning_twice_is_planning_once() -> None:
    run = run_of(job_of(), keys="abc")
    assert run.plan() is run.plan()
    assert (3, RunStatus.RUNNING) == (run.planned, run.ledger.runs.get(run.run_id).status)


def test_a_request_that_does_not_fit_the_job_is_refused() -> None:
    with pytest.raises(RequestError):
        LocalRun(job_of(), job_file(), start="2024-01-02", end="2024-01-01").plan()


def test_a_job_file_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(YAML)
    run = LocalRun(job_of(), path, keys=["a"])
    assert (RunStatus.SUCCEEDED, 1) == (run.run().status, run.accepted)


def test_a_step_goes_to_the_next_point() -> None:
    run = run_of(job_of())
    assert [Step("registered"), Step("taken", "item=a"), Step("written", "item=a")] == [
        run.step() for _ in range(3)
    ]


def test_after_the_end_there_are_no_more_steps() -> None:
    run = run_of(job_of())
    run.run()
    assert [None, None] == [run.step(), run.step()]


def test_an_interrupted_run_goes_on_by_itself() -> None:
    run = run_of(job_of())
    step_until(run, "written")
    run.interrupt("SIGINT")
    step_until(run, "interrupted")
    assert "signal: SIGINT = received" == item(run).reason
    run.run()
    assert (1, 2) == (run.accepted, len(run.tasks))


def test_interrupting_before_the_first_step_does_nothing() -> None:
    run = run_of(job_of())
    run.interrupt()
    run.kill()
    run.run()
    assert (1, 1) == (run.accepted, len(run.tasks))


def test_a_kill_saves_nothing_on_the_way_out() -> None:
    run = run_of(job_of(), checkpoint_seconds=60)
    step_until(run, "written", 2)
    run.kill()
    assert (None, PartitionStatus.RUNNING) == (item(run).cursor, item(run).status)


def test_a_kill_by_a_fault_of_its_own_costs_a_take() -> None:
    run = run_of(job_of())
    for _ in range(2):
        step_until(run, "taken")
        run.kill(stop_code="EssentialContainerExited")
    assert PartitionStatus.STUCK == item(run).status


def test_a_frozen_task_is_called_stopped_and_can_be_woken() -> None:
    run = run_of(job_of())
    step_until(run, "taken")
    zombie = run.freeze()[0]
    assert [] == list(run.ledger.tasks.of(run.run_id))
    assert Step("written", "item=a") == zombie.step()


def test_a_task_that_makes_no_progress_leaves_with_70() -> None:
    clock = ManualClock()
    run = run_of(job_of(), clock=clock)
    step_until(run, "taken")
    clock.pass_(601)
    run.step()
    assert (Exit.FAULT, "progress: 601 s without a checkpoint > 600 s") == (
        run.tasks[0].worker.exit,
        run.tasks[0].hung,
    )
    run.run()
    assert 1 == run.accepted


def taken(run: LocalRun) -> list[Any]:
    """The tasks that took something, in the order in which they did."""
    order = []
    while (step := run.step()) is not None:
        if step.name == "taken":
            order.append(step.partition_id)
    return order


def test_several_tasks_work_at_once_and_the_seed_decides_who_is_next() -> None:
    def order(seed: int) -> list[Any]:
        return taken(run_of(job_of(), keys="abcdef", sections=slices(3), concurrency=3, seed=seed))

    orders = {seed: order(seed) for seed in range(8)}
    assert orders[0] == order(0)
    assert 1 < len({tuple(one) for one in orders.values()})


def test_no_more_tasks_than_asked_for_are_active() -> None:
    run = run_of(job_of(), keys="abcdef", sections=slices(6), concurrency=2)
    most = 0
    while run.step() is not None:
        most = max(most, len(run._active))
    assert 2 == most


def test_a_run_that_is_cancelled_ends_with_slices_that_nobody_launched() -> None:
    run = run_of(job_of(), keys="abc", sections=slices(3))
    step_until(run, "written")
    run.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="wrong year")
    assert RunStatus.CANCELLED == run.run().status
    assert 1 == len(run.tasks)


def test_a_second_run_on_the_same_window_is_kept_off_by_the_lock() -> None:
    table = MemoryTable()
    run_of(job_of(), table=table).plan()
    with pytest.raises(LockHeld, match="holds a of numbers, which overlaps a"):
        run_of(job_of(), table=table, seed=1).plan()


def test_secrets_come_from_the_test() -> None:
    seen: list[str] = []
    run_of(job_of(open=lambda self: seen.append(self.secret("dsn"))), secrets={"dsn": "postgres:"}).run()
    assert ["postgres:"] == seen


def test_a_secret_that_the_test_did_not_give_is_named() -> None:
    with pytest.raises(JobError, match=r"Secret 'dsn' is not there. Give it to LocalRun"):
        run_of(job_of()).secret("dsn")


def test_a_job_may_name_its_partitions_itself() -> None:
    opened: list[str] = []

    class Job(Numbers):
        sink = job_of().sink

        def open(self) -> None:
            opened.append("open")

        def close(self) -> None:
            opened.append("close")

        def partitions(self, window: Any) -> Iterator[str | Partition]:
            opened.append("partitions")
            yield from ("north", "south")

    sections = {"partitions": {"by": "job", "key": "region"}}
    run = LocalRun(Job, job_file(**sections), start="2024", end="2025")
    run.plan()
    assert (2, ["open", "partitions", "close"]) == (run.planned, opened)
    run.run()
    assert PartitionStatus.ACCEPTED == run.partition("region=south").status


def test_a_sound_job_passes_the_checks() -> None:
    jobs: list[type[Numbers]] = []

    def make_run() -> LocalRun:
        jobs.append(job_of(size=4))
        return run_of(jobs[-1], keys="ab")

    check_backfill(make_run, lambda: dict(jobs[-1].sink.rows))
    # A run for the points, then one for each point killed and one for each interrupted.
    assert 1 + 2 * 13 == len(jobs)


class Unsound(Backfill):
    """Its `read` begins again from the start, whatever the cursor."""

    def read(self, part: Any, after: str | None) -> Iterator[Batch]:
        yield Batch([1, 2], "v1:2")

    def write(self, rows: Any, ctx: Any) -> Outcome:
        return Outcome(written=len(rows))


def test_a_read_that_begins_again_is_found() -> None:
    with pytest.raises(AssertionError, match="item=a: after cursor 'v1:2' read came back to 'v1:2'"):
        check_reading(Unsound(), Partition(partition_id="item=a"))


def test_a_read_that_does_not_resume_is_found() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        step = 3 if after is None else 4
        for low in range(position(after), 12, step):
            yield Batch(list(range(low + step - 3, low + step)), f"v1:{low + step}")

    with pytest.raises(AssertionError, match="after cursor 'v1:3' read does not give the rest"):
        check_reading(job_of(read=read)(), Partition(partition_id="item=a"))


@pytest.mark.parametrize("first", ["v1:1", "v1:2", "v1:3"])
def test_a_read_that_comes_back_to_a_cursor_is_found(first: str) -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        yield Batch([0], "v1:1")
        yield Batch([1], "v1:2")
        for _ in count():  # without an end, so that whoever lists it hangs
            yield Batch([2], "v1:3")
            yield Batch([], first)

    with pytest.raises(AssertionError, match=f"item=a: after cursor None read came back to '{first}'"):
        check_reading(job_of(read=read)(), Partition(partition_id="item=a"))


def test_a_read_with_an_empty_batch_after_its_end_is_found() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        if after is None:
            yield Batch([1], "v1:end")
        elif after == "v1:end":
            yield Batch([], "v1:very end")

    with pytest.raises(AssertionError, match="item=a: after its end cursor 'v1:end' read still yields"):
        check_reading(job_of(read=read)(), Partition(partition_id="item=a"))


def test_a_transform_that_is_not_pure_is_found() -> None:
    counter = iter(range(1000))
    job = job_of(transform=lambda self, n: next(counter))
    with pytest.raises(AssertionError, match="transform is not pure on 0"):
        check_reading(job(), Partition(partition_id="item=a"))


def test_a_transform_that_changes_its_record_is_found() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        if after is None:
            yield Batch([{"n": 1}], "v1:end")

    def transform(self: Numbers, record: dict[str, int]) -> dict[str, int]:
        record["n"] *= 10
        return dict(record)

    with pytest.raises(AssertionError, match=r"transform changes its record \{'n': 1\} in place"):
        check_reading(job_of(read=read, transform=transform)(), Partition(partition_id="item=a"))


def test_a_write_that_is_not_idempotent_is_found() -> None:
    target: list[int] = []

    def write(self: Numbers, rows: list[int], ctx: Any) -> Outcome:
        target.extend(rows)
        return Outcome(written=len(rows))

    def make_run() -> LocalRun:
        target.clear()
        return run_of(job_of(size=4, write=write))

    with pytest.raises(AssertionError, match=r"kill after point 3 of 8 changed what was done"):
        check_backfill(make_run, lambda: list(target))


def test_a_job_that_is_not_accepted_does_not_pass() -> None:
    with pytest.raises(
        AssertionError, match=r"0 of 1 partitions were accepted: item=a REFUSED: .* 13 counted"
    ):
        check_backfill(lambda: run_of(job_of(count=lambda self, part: 13)))


def test_the_figures_are_those_of_the_ledger() -> None:
    run = run_of(job_of(size=3), keys="ab")
    run.run()
    assert (2, 2, 6, 0) == (run.planned, run.accepted, run.records.read, run.replayed)
    assert last(run).worker.contract is not None


def test_a_kill_closes_nothing_so_a_job_that_only_buffers_is_found_out() -> None:
    class Buffered(Numbers):
        target: ClassVar[set[Any]] = set()

        def open(self) -> None:
            self.buffer: list[Any] = []

        def write(self, rows: Any, ctx: Any) -> Outcome:
            self.buffer += [(ctx.partition.id, row) for row in rows]
            return Outcome(written=len(rows))

        def close(self) -> None:
            self.target.update(self.buffer)

    def make_run() -> LocalRun:
        Buffered.target.clear()
        return run_of(Buffered, keys="ab")

    with pytest.raises(AssertionError, match="kill after point"):
        check_backfill(make_run, target=lambda: set(Buffered.target))
