"""What every backfill must satisfy, tried on a job of yours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from trueup.jobs import Backfill, Batch, Range, Settings
from trueup.model.counters import Counters
from trueup.model.plan import Partition
from trueup.testing.local_run import LocalRun


def check_backfill(make_run: Callable[[], LocalRun], target: Callable[[], Any] = lambda: None) -> None:
    """Check a job over a small window; raises AssertionError that says which promise does not hold.

    `make_run` gives a new LocalRun over an empty target each time, `target` what the target then holds
    (anything that can be compared). Checked: `read` resumes after each of its cursors, yields nothing after
    the last and no cursor twice; `transform` gives the same twice; and killed or interrupted at any point,
    the run ends with the same target and records.
    """
    run = make_run()
    for part in run.artifacts.partitions(run.plan().partitions):
        check_reading(_job_of(run), part)
    run.run()
    expected = (run.planned, run.accepted, _settled(run.records), target())
    assert run.accepted == run.planned, (
        f"{run.accepted} of {run.planned} partitions were accepted: {_errors(run)}"
    )
    points = sum(len(task.points) for task in run.tasks)
    for stop in (LocalRun.kill, LocalRun.interrupt):
        for point in range(1, points):
            again = _stopped_after(make_run(), point, stop)
            found = (again.planned, again.accepted, _settled(again.records), target())
            assert expected == found, f"{stop.__name__} after point {point} of {points} changed what was done"


def check_reading(job: Backfill, part: Partition) -> None:
    """Check that `read` gives the rest after any of its cursors, and nothing after its end cursor.

    No cursor may come twice in a partition.
    """
    job.open()
    try:
        batches = list(_read(job, part, None))
        for number, batch in enumerate(batches):
            rest = [_records(one) for one in _read(job, part, batch.cursor)]
            wanted = [_records(one) for one in batches[number + 1 :]]
            assert _flat(wanted) == _flat(rest), (
                f"{part.id}: after cursor {batch.cursor!r} read does not give the rest"
            )
        if batches:
            after_end = list(_read(job, part, batches[-1].cursor))
            assert not after_end, f"{part.id}: after its end cursor {batches[-1].cursor!r} read still yields"
        for batch in batches:
            for record in _records(batch):
                _check_transform(job, record)
    finally:
        job.close()


def _check_transform(job: Backfill, record: Any) -> None:
    """The same record gives the same twice, and stays what it was: after an error it is worked again."""
    before = deepcopy(record)
    once, twice = job.transform(deepcopy(before)), job.transform(deepcopy(before))
    assert once == twice, f"transform is not pure on {before!r}"
    job.transform(record)
    assert record == before, f"transform changes its record {before!r} in place, to {record!r}"


def _read(job: Backfill, part: Partition, after: str | None) -> Iterator[Batch | Range]:
    """What `read` yields; it ends with an error where a cursor repeats, for such a read may have no end."""
    passed = {after}
    for batch in job.read(part, after):
        cursor = batch.cursor
        assert cursor not in passed, f"{part.id}: after cursor {after!r} read came back to {cursor!r}"
        passed.add(cursor)
        yield batch


def _job_of(run: LocalRun) -> Backfill:
    assert issubclass(run.job_class, Backfill), "a reconciliation has no batches to check"
    return run.job_class(Settings(run.plan().params, run.secret, lambda: run.job.batch.size))


def _records(batch: Batch | Range) -> list[Any]:
    return list(batch.records) if isinstance(batch, Batch) else [(batch.low, batch.high)]


def _flat(batches: list[list[Any]]) -> list[Any]:
    return [record for batch in batches for record in batch]


def _stopped_after(run: LocalRun, point: int, stop: Callable[[LocalRun], None]) -> LocalRun:
    for _ in range(point):
        run.step()
    stop(run)
    run.run()
    return run


def _settled(records: Counters) -> tuple[int, ...]:
    # What was applied before a kill is found unchanged afterwards, so only the sum of both is certain.
    return (
        records.read,
        records.used,
        records.skipped,
        records.rejected,
        records.produced,
        records.written + records.unchanged,
        records.refused,
    )


def _errors(run: LocalRun) -> str:
    items = run.ledger.partitions.all(run.run_id, run.phase)
    return "; ".join(
        f"{item.partition_id} {item.status}: {item.error.message}" for item in items if item.error
    )
