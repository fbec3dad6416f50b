"""Ranges, which the target works by itself; and dry runs, which write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from trueup import Outcome, Range, RangeOutcome
from trueup.model.states import PartitionStatus, Phase
from trueup.testing import LocalRun

from .worker_cases import Numbers, error, item, job_of, position, run_of, step_until

LENIENT = {"errors": {"rejects": 100}}


def ranges(self: Numbers, part: Any, after: str | None) -> Iterator[Range]:
    for low in range(position(after), self.size, self.per_batch):
        high = min(self.size, low + self.per_batch)
        yield Range(low, high, f"v1:{high}")


def write_range(self: Numbers, part: Range, ctx: Any) -> RangeOutcome:
    return RangeOutcome(read=part.high - part.low, written=part.high - part.low)


def ranged(**members: Any) -> type[Numbers]:
    """A job that works its numbers in ranges."""
    return job_of(**{"read": ranges, "write": write_range, **members})


def test_used_and_produced_follow_from_what_the_target_says() -> None:
    def write(self: Numbers, part: Range, ctx: Any) -> RangeOutcome:
        return RangeOutcome(read=6, written=1, unchanged=2, refused=1, rejected=1, skipped={"old": 2})

    run = run_of(ranged(size=6, per_batch=6, write=write), sections=LENIENT)
    run.run()
    found = run.records
    assert (6, 3, 2, 1) == (found.read, found.used, found.skipped, found.rejected)
    assert (4, 1, 2, 1) == (found.produced, found.written, found.unchanged, found.refused)
    assert {"old": 2} == item(run).skipped


def test_what_a_range_leaves_out_has_a_line_among_the_rejects() -> None:
    def write(self: Numbers, part: Range, ctx: Any) -> RangeOutcome:
        return RangeOutcome(read=12, written=10, rejected=2)

    run = run_of(ranged(per_batch=12, write=write), sections=LENIENT)
    run.run()
    entry = item(run).entry
    assert entry is not None
    assert entry.rejects is not None
    line = run.artifacts.store.get(entry.rejects.removeprefix("s3://memory/"))
    assert b'"range": [0, 12], "rejected": 2, "refused": 0' in line


def test_ranges_without_a_count_fail_before_anything_is_written() -> None:
    written: list[Range] = []
    run = run_of(ranged(count=lambda self, part: None, write=lambda self, part, ctx: written.append(part)))
    run.run()
    assert (PartitionStatus.FAILED, []) == (item(run).status, written)
    assert "count returned None for a partition that is worked in ranges." in error(run)


def test_a_range_that_was_left_out_is_found_by_the_count() -> None:
    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Range]:
        yield Range(0, 5, "v1:5")

    run = run_of(ranged(read=read))
    run.run()
    assert PartitionStatus.REFUSED == item(run).status
    assert "5 read, and 12 counted independently" in error(run)


def yielding(*pairs: tuple[Any, Any]) -> type[Numbers]:
    """A job that yields exactly these ranges, of which the target reads three records each."""

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Range]:
        for number, (low, high) in enumerate(pairs, start=1):
            if number > position(after):
                yield Range(low, high, f"v1:{number}")

    def write(self: Numbers, part: Range, ctx: Any) -> RangeOutcome:
        return RangeOutcome(read=3, written=3)

    return ranged(read=read, write=write, count=lambda self, part: 3 * len(pairs))


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 6), (3, 9)],
        [(0, 6), (0, 6)],
        [(0, 3), (6, 9), (1, 2)],
        [(0, 3), (6, 9), (8, 12)],
        [(6, 9), (0, 3), (2, 12)],
        [("a", "c"), ("b", "d")],
        [((1, "a"), (1, "m")), ((1, "b"), (2, "a"))],
        [(datetime(2024, 1, 1), datetime(2024, 1, 3)), (datetime(2024, 1, 2), datetime(2024, 1, 4))],  # noqa: DTZ001
        [(6, 3)],
    ],
)
def test_ranges_that_overlap_fail_the_partition_although_the_count_agrees(pairs: list[Any]) -> None:
    run = run_of(yielding(*pairs))
    run.run()
    assert PartitionStatus.FAILED == item(run).status
    low, high = pairs[-1]
    found = error(run)
    assert f"Job.read yielded a range from {low!r} to {high!r}, which does not lie apart from " in found
    assert 3 * (len(pairs) - 1) == item(run).counters.read


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 3), (3, 6), (10, 12)],
        [(9, 12), (6, 9), (0, 3)],
        [(0, 0), (0, 3)],
        [("a", "b"), ("b", "c")],
        [(None, 3), (3, None)],
        [({"page": 1}, {"page": 2}), ({"page": 1}, {"page": 2})],  # cannot be compared, so nothing is known
        [(None, None), (None, None)],
    ],
)
def test_ranges_that_lie_apart_or_cannot_be_compared_are_worked(pairs: list[Any]) -> None:
    run = run_of(yielding(*pairs))
    run.run()
    assert (1, 3 * len(pairs)) == (run.accepted, item(run).counters.read)


def test_a_failing_range_is_named_and_not_bisected() -> None:
    calls: list[Range] = []

    def write(self: Numbers, part: Range, ctx: Any) -> RangeOutcome:
        calls.append(part)
        raise ValueError("deadlock")

    run = run_of(ranged(write=write))
    run.run()
    named = "Range(low=0, high=3, cursor='v1:3')"
    assert f"ValueError | write failed with ValueError: deadlock | {named}" == error(run)
    assert 1 == len(calls)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Outcome(written=3), "write of a Range returned Outcome, not a RangeOutcome."),
        (
            RangeOutcome(read=3, written=-1),
            "write returned -1 where a number of rows belongs. Return RangeOutcome(",
        ),
        (RangeOutcome(read=3, skipped={None: 2}), "skipped records for a reason that is no text."),  # type: ignore[dict-item]
        (RangeOutcome(read=3, rejected=2, skipped={"x": 2}), "skipped and rejected 4 of 3 records."),
    ],
)
def test_a_wrong_outcome_of_a_range_fails_the_partition(outcome: Any, message: str) -> None:
    run = run_of(ranged(write=lambda self, part, ctx: outcome))
    run.run()
    assert error(run).startswith("WrongOutcome | ")
    assert message in error(run)


def test_ranges_are_charged_to_the_rate_with_what_they_read() -> None:
    run = run_of(
        ranged(size=40, per_batch=20), sections={"limits": {"max_concurrency": 1, "records_per_second": 1}}
    )
    run.run()
    # The first range is worked at once; what it read, 20 records, is waited for before the second one.
    assert 15 <= run.clock.monotonic() <= 20


def refuses_to_be_called(*arguments: Any) -> Any:
    raise AssertionError("a dry run must not call this")


def rehearsal(job: type[Numbers], **more: Any) -> LocalRun:
    """A dry run of a job whose writing hooks must not be called."""
    for hook in ("write", "raise_fence", "finish"):
        setattr(job, hook, refuses_to_be_called)
    return run_of(job, dry_run=True, **more)


def test_a_dry_run_counts_every_row_as_unchanged_and_writes_nothing() -> None:
    job = job_of(transform=lambda self, n: [n, n])
    run = rehearsal(job)
    run.run()
    found = run.records
    assert (1, 12, 24, 0, 24) == (run.accepted, found.read, found.produced, found.written, found.unchanged)
    assert [] == job.sink.witness


def test_a_dry_run_is_a_rehearsal_and_takes_no_lock() -> None:
    run = rehearsal(job_of())
    run.plan()
    assert (Phase.REHEARSE, {}) == (run.phase, run.ledger.locks.get("numbers").holders)
    run.run()
    assert (0, PartitionStatus.ACCEPTED) == (run.ledger.locks.get("numbers").epoch, item(run).status)


def test_a_run_that_writes_holds_the_lock_until_it_has_ended() -> None:
    run = run_of(job_of())
    run.plan()
    assert [run.run_id] == list(run.ledger.locks.get("numbers").holders)
    run.run()
    assert {} == run.ledger.locks.get("numbers").holders


def test_a_dry_run_of_ranges_shows_the_count_alone() -> None:
    run = rehearsal(job_of(read=ranges))
    run.run()
    found = run.records
    assert (1, 12, 12, 0) == (run.accepted, found.read, found.used, found.produced)


@pytest.mark.parametrize("point", range(1, 12))
def test_a_dry_run_of_ranges_is_the_same_after_a_kill(point: int) -> None:
    run = rehearsal(job_of(read=ranges))
    for _ in range(point):
        run.step()
    run.kill()
    run.run()
    assert (1, 12, 12, 0) == (run.accepted, run.records.read, run.records.used, run.records.produced)


def test_a_rehearsal_is_found_under_its_own_phase() -> None:
    run = rehearsal(job_of())
    step_until(run, "taken")
    assert PartitionStatus.PENDING == run.ledger.partitions.get(run.run_id, Phase.APPLY, "item=a").status
