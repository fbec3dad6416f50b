"""Reading: what a batch must be, where reading begins again, and how large the next batch should be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from trueup import Batch, Throttled, Transient
from trueup.model.job import BatchSettings, Limits
from trueup.model.states import PartitionStatus
from trueup.testing import ManualClock
from trueup.worker.pace import BatchSize

from .worker_cases import Numbers, contracts, error, item, job_of, position, run_of, step_until


def reading(*batches: Any) -> type[Numbers]:
    """A job that yields exactly these."""

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Any]:
        yield from batches

    return job_of(read=read, count=lambda self, part: None)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            [1, 2],
            "Job.read yielded list in partition item=a. Yield Batch(records, cursor) or Range(",
        ),
        (Batch([1], None), "a batch with the cursor 'None' in partition item=a. A cursor"),  # type: ignore[arg-type]
        (Batch([1], ""), "a batch with the cursor '' in partition item=a. A cursor"),
        (Batch([1], "12"), "a batch with the cursor '12' in partition item=a. A cursor"),
        (Batch([1], "x1:2"), "a batch with the cursor 'x1:2' in partition item=a. A cursor"),
        (
            Batch([1], "v1:\udce9"),
            "a batch with the cursor 'v1:\\udce9' in partition item=a. A cursor",
        ),
        (Batch([1], "v1:" + "x" * 4096), "of at most 4096 characters"),
        (Batch({"id": 1}, "v1:1"), "a batch whose records are dict in partition item=a. Give a list"),  # type: ignore[arg-type]
        (Batch("abc", "v1:1"), "a batch whose records are str in partition item=a. Give a list"),
        (
            Batch(iter([1]), "v1:1"),
            "a batch whose records are list_iterator in partition item=a. Give",
        ),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_batch_fails_the_partition_and_writes_nothing(batch: Any, message: str) -> None:
    job = reading(batch)
    run = run_of(job)
    run.run()
    assert PartitionStatus.FAILED == item(run).status
    assert message in error(run)
    assert [] == job.sink.witness


def test_two_batches_with_one_cursor_fail_the_partition_after_the_first() -> None:
    run = run_of(reading(Batch([1], "v1:1"), Batch([2], "v1:1")))
    run.run()
    assert (
        "Job.read yielded a second batch with the cursor 'v1:1' in partition item=a. A cursor moves on"
        in (error(run))
    )
    assert 1 == item(run).counters.read


def circle(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
    """Takes every page again after the third, without end."""
    for n in count():
        yield Batch([n], f"v1:{n % 3}")


@pytest.mark.parametrize("checkpoint_seconds", [0, 60])
def test_a_read_that_comes_back_to_an_older_cursor_fails_the_partition(checkpoint_seconds: float) -> None:
    run = run_of(job_of(read=circle), checkpoint_seconds=checkpoint_seconds)
    run.run()
    assert "a second batch with the cursor 'v1:0' in partition item=a." in error(run)
    assert 3 == item(run).counters.read


def test_a_read_that_comes_back_to_the_cursor_it_was_resumed_at_fails_the_partition() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        yield Batch([0], "v1:1")
        yield Batch([1], "v1:2")

    run = run_of(job_of(read=read))
    step_until(run, "advanced")
    run.kill()
    run.run()
    assert "a second batch with the cursor 'v1:1' in partition item=a." in error(run)
    assert 1 == item(run).counters.read


def test_each_partition_has_cursors_of_its_own() -> None:
    run = run_of(job_of(), keys="ab")
    run.run()
    assert 2 == run.accepted


def test_read_must_yield() -> None:
    run = run_of(job_of(read=lambda self, part, after: None))
    run.run()
    assert "read returned NoneType. Yield batches" in error(run)


def test_read_may_return_a_list() -> None:
    run = run_of(job_of(size=1, read=lambda self, part, after: [] if after else [Batch([0], "v1:1")]))
    run.run()
    assert 1 == run.accepted


def test_an_empty_batch_moves_the_cursor() -> None:
    run = run_of(reading(Batch([], "v1:a"), Batch([1], "v1:b"), Batch([], "v1:end")))
    run.run()
    assert (1, "v1:end", 1) == (run.accepted, item(run).cursor, item(run).counters.read)


@pytest.mark.parametrize("failure", [Throttled(), Transient()])
def test_a_read_that_may_be_retried_begins_again_after_the_last_batch(failure: Exception) -> None:
    starts: list[str | None] = []
    failures = [failure]

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        starts.append(after)
        for n in range(position(after), 12):
            if n == 5 and failures:
                raise failures.pop()
            yield Batch([n], f"v1:{n + 1}")

    run = run_of(job_of(read=read), checkpoint_seconds=60)
    run.run()
    assert ([None, "v1:5"], 1, 12) == (starts, run.accepted, run.records.read)
    assert 12 == len(run.job_class.sink.witness)


def test_another_error_in_read_fails_the_partition_and_keeps_what_was_read() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        yield Batch([0], "v1:1")
        raise OSError("the file ends here")

    run = run_of(job_of(read=read))
    run.run()
    assert "OSError | the file ends here | None" == error(run)
    assert (PartitionStatus.FAILED, 1) == (item(run).status, item(run).counters.read)


@pytest.mark.parametrize("hook", ["transform", "write", "combine"])
def test_reading_is_closed_whatever_ends_it(hook: str) -> None:
    closed: list[bool] = []

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        try:
            yield Batch([0], "v1:1")
            yield Batch([1], "v1:2")
        finally:
            closed.append(True)

    def fail(self: Numbers, *arguments: Any) -> Any:
        raise ValueError("no")

    run_of(job_of(read=read, **{hook: fail})).run()
    assert [True] == closed


def size_of(limit: float | None = None, **settings: Any) -> BatchSize:
    """A batch size under the job file's settings and the run's limit."""

    class Pace:
        """Only what the size asks of it."""

    pace = Pace()
    pace.limit = Limits(records_per_second=limit).records_per_second  # type: ignore[attr-defined]
    return BatchSize(BatchSettings(size=1000, **settings), pace)  # type: ignore[arg-type]


def test_a_slow_batch_makes_the_next_one_as_large_as_fits_the_target() -> None:
    size = size_of()
    size.took(1000, 20.0)
    # 1,000 records in 20 s are 50 a second: 250 in the target of 5 s.
    assert 250 == size()


def test_batches_grow_back_by_a_tenth_of_the_job_files_size() -> None:
    size = size_of()
    size.took(1000, 20.0)
    size.took(250, 5.0)
    assert 350 == size()


def test_batches_never_grow_above_the_job_files_size() -> None:
    size = size_of()
    size.took(1000, 0.1)
    assert 1000 == size()


def test_a_batch_has_at_least_one_record() -> None:
    size = size_of()
    size.took(2, 1000.0)
    assert 1 == size()


@pytest.mark.parametrize(("limit", "expected"), [(None, 1000), (1000.0, 1000), (10.0, 50), (0.1, 1)])
def test_a_batch_has_no_more_records_than_the_runs_rate_lets_through(
    limit: float | None, expected: int
) -> None:
    assert expected == size_of(limit)()


def test_a_batch_over_the_maximum_is_warned_of_once() -> None:
    size = size_of()
    warnings = [size.took(1000, 20.0), size.took(1000, 20.5), size.took(1000, 30.0)]
    assert warnings[0] is None
    assert warnings[1] is not None
    assert warnings[1].startswith("a batch of 1000 records took 20 s, longer than batch.maximumSeconds (20)")
    assert warnings[2] is None


def test_the_warning_stands_in_the_contract() -> None:
    clock = ManualClock()

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        clock.pass_(25)
        return self.sink.put(rows, ctx)

    run = run_of(job_of(write=write), clock=clock)
    run.run()
    assert 1 == len(contracts(run)[0].warnings)
    assert contracts(run)[0].warnings[0].startswith("item=a: a batch of 3 records took 25 s")


def test_a_job_hears_of_the_size_that_is_wanted() -> None:
    clock = ManualClock()
    sizes: list[int] = []

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        clock.pass_(10)
        sizes.append(self.batch_size)
        return self.sink.put(rows, ctx)

    run = run_of(job_of(write=write), clock=clock, sections={"batch": {"size": 100}})
    run.run()
    # A batch of 3 in 10 s: one record in 5 s, and a batch of fewer would grow by 10.
    assert [100, 1, 1, 1] == sizes


def test_time_spent_waiting_for_the_sink_does_not_make_batches_smaller() -> None:
    sizes: list[int] = []
    failures = [Throttled(retry_after=100)]

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if failures:
            raise failures.pop()
        sizes.append(self.batch_size)
        return self.sink.put(rows, ctx)

    run = run_of(job_of(write=write), sections={"batch": {"size": 100}})
    run.run()
    assert ([100] * 4, []) == (sizes, contracts(run)[0].warnings)
