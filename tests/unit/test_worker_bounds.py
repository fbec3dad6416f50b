"""What authors' code says without an end fits the ledger's items and the contract, and loses no partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trueup import Batch, Output, Reject, Skip, Throttled
from trueup.ledger.table import MAX_ITEM, item_size
from trueup.model.result import LARGEST_CONTRACT
from trueup.model.states import PartitionStatus
from trueup.testing import LocalRun, ManualClock
from trueup.worker import loop
from trueup.worker.partition import OTHER_REASONS

from .worker_cases import Numbers, contracts, error, item, job_file, job_of, position, run_of, step_until

WIDE = "\N{GRINNING FACE}"  # four bytes in UTF-8, the most there are


def a_reason_each(self: Numbers, n: int) -> Skip:
    return Skip(f"number {n}")


def test_one_reason_a_record_keeps_some_and_counts_the_rest_together() -> None:
    run = run_of(job_of(size=1000, per_batch=70, transform=a_reason_each))
    run.run()
    skipped = item(run).skipped
    assert {**{f"number {n}": 1 for n in range(99)}, OTHER_REASONS: 901} == skipped
    assert (1, 1000, 1000) == (run.accepted, run.records.skipped, sum(skipped.values()))
    assert [
        "item=a: after 99 different reasons to skip, more are counted as 'other reasons': "
        "name kinds in Skip(reason), and no ids or values of records"
    ] == contracts(run)[0].warnings


@pytest.mark.parametrize("point", range(1, 9))
def test_a_kill_changes_nothing_about_which_reasons_are_kept(point: int) -> None:
    run = run_of(job_of(size=200, per_batch=60, transform=a_reason_each))
    for _ in range(point):
        run.step()
    run.kill()
    run.run()
    assert {**{f"number {n}": 1 for n in range(99)}, OTHER_REASONS: 101} == item(run).skipped


def test_a_job_may_call_a_reason_as_the_rest_is_called() -> None:
    run = run_of(job_of(size=300, transform=lambda self, n: Skip(OTHER_REASONS if n < 3 else f"number {n}")))
    run.run()
    # The 3 of that name, the 98 next ones under names of their own, and the 199 that are left.
    assert (99, 3 + 199) == (len(item(run).skipped), item(run).skipped[OTHER_REASONS])


def test_a_long_reason_is_cut_with_a_mark() -> None:
    run = run_of(job_of(transform=lambda self, n: Skip("x" * 10_000)))
    run.run()
    assert {"x" * 199 + "…": 12} == item(run).skipped


def test_the_name_and_the_text_of_an_error_are_cut_with_a_mark() -> None:
    kind = type("E" * 5_000, (Exception,), {})

    def transform(self: Numbers, n: int) -> None:
        raise kind("m" * 500_000)

    run = run_of(job_of(transform=transform))
    run.run()
    found = item(run).error
    assert found is not None
    assert ("E" * 199 + "…", 4_000, "…") == (found.kind, len(found.message), found.message[-1])


def test_why_a_task_waits_or_leaves_is_cut() -> None:
    waits: list[str] = []

    class Listening(ManualClock):
        """Notes what the task says while it waits."""

        def sleep(self, seconds: float) -> None:
            waits.append(str(run.tasks[0].control.waiting))
            super().sleep(seconds)

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        raise Throttled("x" * 500_000)

    run = run_of(job_of(read=read), clock=Listening())
    step_until(run, "interrupted")
    reason = item(run).reason
    assert reason is not None
    assert reason.startswith("throttled: 8 attempts of read >= 8 (xxx")
    assert [511] == sorted({len(wait) for wait in waits})
    assert 500 < len(reason) < 600


def outputs(number: int, location: str) -> Any:
    return lambda self, part, ctx: [
        Output(location=f"{location}{n}", sha256="0" * 64, records=1) for n in range(number)
    ]


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        (
            outputs(101, "s3://b/"),
            "finish names 101 outputs of partition item=a, with",
        ),
        (
            outputs(1, "s3://b/" + WIDE * 300),
            "finish names 1 outputs of partition item=a, with",
        ),
        (outputs(1, "s3://b/" + "x" * 5_000), "at most 1200 characters"),
    ],
)
def test_outputs_that_the_ledger_cannot_keep_fail_the_partition(finish: Any, message: str) -> None:
    run = run_of(job_of(finish=finish))
    run.run()
    assert PartitionStatus.FAILED == item(run).status
    assert message in error(run)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"finish": lambda self, part, ctx: None}, "finish returned None. Return a list of Output values"),
        ({"finish": lambda self, part, ctx: ["s3://b/k"]}, "finish returned ['s3://b/k']. Return a list"),
        ({"count": lambda self, part: "10"}, "count returned '10'. Return how many records there are"),
        ({"count": lambda self, part: -1}, "count returned -1. Return how many records there are"),
        ({"count": lambda self, part: True}, "count returned True. Return how many records there are"),
    ],
)
def test_what_a_hook_may_not_return_fails_the_partition_and_names_the_hook(hooks: Any, message: str) -> None:
    run = run_of(job_of(**hooks))
    run.run()
    assert PartitionStatus.FAILED == item(run).status
    assert message in error(run)


def wide(n: int) -> str:
    """A text of its own for each number, longer than any bound."""
    return f"{n:04d}" + WIDE * 5_000


def worst(**hooks: Any) -> type[Numbers]:
    """A job that says everything at its longest: cursors, reasons, rejects."""

    def read(self: Numbers, part: Any, after: str | None) -> Iterator[Batch]:
        for n in range(position(after[:7]) if after else 0, 300):
            yield Batch([n], f"v1:{n + 1:04d}" + WIDE * 4_089)

    def transform(self: Numbers, n: int) -> Any:
        return Reject(wide(n)) if n % 2 else Skip(wide(n))

    return job_of(**{"size": 300, "read": read, "transform": transform, **hooks})


def raises(self: Numbers, part: Any, *ctx: Any) -> Any:
    raise type(WIDE.join("E" * 500), (Exception,), {})(WIDE * 10_000)


@pytest.mark.parametrize(
    ("hooks", "status"),
    [
        ({"finish": raises}, PartitionStatus.FAILED),
        ({"finish": outputs(100, "s3://b/" + "x" * 1_190)}, PartitionStatus.REFUSED),
    ],
)
def test_all_of_it_at_its_longest_still_fits_an_item(hooks: Any, status: PartitionStatus) -> None:
    run = run_of(worst(**hooks), sections={"errors": {"rejects": 300}})
    run.run()
    found = item(run)
    # There are no such outputs, so the second is REFUSED: that it was judged says that it was written.
    assert (status, 300, 100) == (found.status, found.counters.read, len(found.skipped))
    assert MAX_ITEM / 2 < item_size(found.document()) < MAX_ITEM


def test_a_contract_keeps_some_warnings_and_counts_the_rest() -> None:
    job = job_of(size=200, per_batch=200, transform=a_reason_each)
    small = job_file(partitions={"by": "list", "key": "item", "seconds": 0.1})
    run = LocalRun(job, small, keys=[f"{n:03d}" for n in range(120)])
    run.run()
    warnings = contracts(run)[0].warnings
    assert (120, 100, "and 21 more warnings") == (run.accepted, len(warnings), warnings[-1])


def test_before_a_contract_becomes_too_large_the_rest_is_left_to_another_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "ROOM_FOR_ENTRIES", 1)
    run = run_of(job_of(), keys="abc")
    run.run()
    assert (3, 3) == (run.accepted, len(run.tasks))
    assert [0, 0, 0] == [item(run, key).faults for key in "abc"]
    first, second, third = (contract.warnings for contract in contracts(run))
    assert (first, []) == (second, third)
    assert first[0].startswith("stopped early by contract: ")
    assert first[0].endswith(" bytes >= 1")


def test_a_contract_has_room_for_one_entry_more_than_it_stops_at() -> None:
    assert loop.ROOM_FOR_ENTRIES + MAX_ITEM + 2 * 100 * 1_000 * 4 < LARGEST_CONTRACT
