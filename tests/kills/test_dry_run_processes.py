"""A dry run by real workers: `write` is not called, and nothing reaches the target."""

from __future__ import annotations

import os
from collections.abc import Callable

import psycopg
import pytest

from trueup.accepting import Answer
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.platform import Ended
from trueup.settling import Settled

from .driving import Driven, Shape, Stack, Stop
from .promises import days_of
from .targets import everything, row_count

DIES_ON_WRITE = Stop("write", 1, "SIGKILL")


@pytest.mark.parametrize("job", ["flights-summary", "flights-rows"])
def test_a_dry_run_reads_everything_and_writes_nothing(
    stack: Stack, target: Callable[[str], str], job: str
) -> None:
    driven = Driven(stack, Shape(job, traits=("witnessed", "picky"), dry_run=True), target(job))
    driven.start()
    task = driven.launch(DIES_ON_WRITE)
    assert 0 == stack.warm.wait(task.arn), stack.warm.log.read_text()
    assert Answer.DONE is driven.accept(task, Ended(exit_code=0, stop_code="EssentialContainerExited"))
    assert Settled.ENDED is driven.settle()
    assert RunStatus.SUCCEEDED is stack.ledger.runs.get(driven.run.run_id).status
    assert_nothing_was_written(driven)
    assert_counted_as_if_all_were_there_already(driven)


@pytest.mark.parametrize("job", ["flights-summary", "flights-rows"])
def test_the_same_task_would_have_died_had_it_written(
    stack: Stack, target: Callable[[str], str], job: str
) -> None:
    driven = Driven(stack, Shape(job, traits=("witnessed", "picky")), target(job))
    driven.start()
    assert os.WIFSIGNALED(stack.warm.wait(driven.launch(DIES_ON_WRITE).arn))


def assert_nothing_was_written(driven: Driven) -> None:
    """No row, no witness, no fence, no lock."""
    assert [] == everything(driven)
    assert 0 == row_count(driven)
    lock = driven.stack.ledger.locks.get(driven.table)
    assert (0, {}) == (lock.epoch, lock.holders)
    with psycopg.connect(driven.stack.dsn) as connection:
        fences = connection.execute("select count(*) from trueup_fence where target = %s", [driven.table])
        assert (0,) == fences.fetchone()


def assert_counted_as_if_all_were_there_already(driven: Driven) -> None:
    """Read, used, skipped and rejected as they are; all that would be written is called unchanged."""
    assert Phase.REHEARSE is driven.phase
    for part, day in days_of(driven).items():
        item = driven.ended[part]
        produced = len(day.keys if driven.shape.job == "flights-rows" else day.routes)
        assert PartitionStatus.ACCEPTED is item.status
        fates = {fate: len(day.of(fate)) for fate in ("used", "skipped", "rejected")}
        written = {"produced": produced, "written": 0, "unchanged": produced, "refused": 0}
        assert {"read": len(day.flights), **fates, **written} == dict(item.counters)
