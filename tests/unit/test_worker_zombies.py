"""Zombies: tasks that were taken for dead, and wake when their work is another's."""

from __future__ import annotations

from typing import Any

import pytest

from trueup import Superseded
from trueup.model.result import Output
from trueup.model.states import PartitionStatus
from trueup.platform import Ended
from trueup.testing import LocalRun, LocalTask
from trueup.worker import Exit

from .worker_cases import Numbers, contracts, item, job_of, run_of, step_until


def wake(zombie: LocalTask) -> list[str]:
    """Let a zombie go on until it leaves; the names of the points that it still passed."""
    names = []
    while (step := zombie.step()) is not None:
        names.append(step.name)
    return names


def frozen_at(point: str, **members: Any) -> tuple[LocalRun, LocalTask]:
    """A run whose first task froze at its second such point, or at its first where there is one."""
    run = run_of(job_of(**members), keys="ab")
    step_until(run, point, 1 if point in ("taken", "registered") else 2)
    return run, run.freeze()[0]


@pytest.mark.parametrize("point", ["taken", "written", "advanced"])
def test_a_zombie_moves_no_checkpoint_of_a_partition_that_was_taken_over(point: str) -> None:
    run, zombie = frozen_at(point)
    step_until(run, "taken")
    before = item(run)
    wake(zombie)
    assert before == item(run)
    assert Exit.INTERRUPTED is zombie.worker.exit or Exit.FAULT is zombie.worker.exit


@pytest.mark.parametrize("point", ["taken", "written", "advanced"])
def test_a_zombie_changes_no_row_where_the_sink_honours_the_fence(point: str) -> None:
    run, zombie = frozen_at(point)
    run.run()
    written = len(run.job_class.sink.witness)
    wake(zombie)
    assert written == len(run.job_class.sink.witness)


def test_the_report_of_a_zombie_is_refused() -> None:
    run = run_of(job_of(size=3))
    step_until(run, "advanced")
    zombie = run.freeze()[0]
    step_until(run, "taken")
    assert [] == wake(zombie)
    assert (PartitionStatus.RUNNING, 2, None) == (item(run).status, item(run).launch, item(run).entry)


def test_a_zombie_does_not_begin_on_outputs_that_another_task_reported() -> None:
    stored: dict[str, int] = {}

    def finish(self: Numbers, part: Any, ctx: Any) -> list[Output]:
        stored[f"s3://out/{part.id}"] = ctx.launch
        return [Output(location=f"s3://out/{part.id}-{ctx.launch}", sha256="0" * 64, records=1)]

    run = run_of(job_of(finish=finish))
    step_until(run, "advanced", 4)  # of its last batch: what is left is to finish and to report
    zombie = run.freeze()[0]
    run.run()
    wake(zombie)
    assert {"s3://out/item=a": 2} == stored
    assert Exit.INTERRUPTED is zombie.worker.exit


def test_a_zombie_that_was_not_taken_over_yet_can_be_taken_over_later() -> None:
    run, zombie = frozen_at("written")
    wake(zombie)
    run.run()
    assert (2, 24) == (run.accepted, run.records.read)


@pytest.mark.parametrize("point", ["registered", "taken", "written", "advanced", "reported"])
def test_a_zombie_changes_nothing_of_a_run_that_has_ended(point: str) -> None:
    run, zombie = frozen_at(point)
    ended = run.run()
    before = (ended, item(run), item(run, "b"), run.records)
    wake(zombie)
    assert before == (run.ledger.runs.get(run.run_id), item(run), item(run, "b"), run.records)


def test_a_stale_result_changes_nothing() -> None:
    run, zombie = frozen_at("reported")
    run.run()
    before = (item(run), item(run, "b"))
    assert "stored" in wake(zombie)
    assert 1 == sum(one.launch == zombie.launch.launch for one in contracts(run))
    run._acceptance().accept(zombie.launch, Ended(exit_code=0))
    assert before == (item(run), item(run, "b"))


def test_a_zombie_registers_no_second_time() -> None:
    run, zombie = frozen_at("registered")
    run.run()
    wake(zombie)
    assert [] == list(run.ledger.tasks.of(run.run_id))


def test_who_meets_a_higher_fence_writes_nothing_more_and_leaves() -> None:
    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        raise Superseded("A newer task was here.", ours=ctx.fence, theirs=ctx.fence + 1)

    run = run_of(job_of(write=write))
    step_until(run, "taken")
    assert [] == list(run.tasks[0].loop)
    assert (PartitionStatus.RUNNING, None) == (item(run).status, item(run).cursor)


def test_a_target_that_another_run_has_for_good_ends_the_partition() -> None:
    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        raise Superseded("Another run was here.", ours=ctx.fence, theirs=ctx.fence + 2**32)

    run = run_of(job_of(write=write))
    run.run()
    assert (PartitionStatus.STUCK, 2) == (item(run).status, len(run.tasks))


def test_a_raised_fence_goes_before_the_first_read() -> None:
    calls: list[str] = []

    def read(self: Numbers, part: Any, after: str | None) -> Any:
        calls.append("read")
        return Numbers.read(self, part, after)

    run = run_of(job_of(read=read, raise_fence=lambda self, part, ctx: calls.append(f"fence {ctx.fence}")))
    run.run()
    assert ["fence 4294967297", "read"] == calls
