"""Workers killed with SIGKILL at every point of their loop: no record is lost, and none is counted twice.

Real processes work real flights over MiniStack and PostgreSQL. Each seed decides where they are killed;
more seeds: `SEEDS=1000 make test`, or `SEEDS=1000 pytest tests/kills/test_killed_at_will.py -k flights-rows`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from trueup.accepting import Answer
from trueup.platform import Ended
from trueup.settling import Settled

from .driving import Driven, Stack
from .plans import NEVER, Outside, Plan, places, plan_of
from .promises import (
    assert_each_reject_is_kept_once,
    assert_ended_well,
    assert_nothing_reaches_back,
    assert_records_are_exact,
    assert_table_is_equal,
)

SEEDS = int(os.environ.get("SEEDS", "100"))
PICKY_SEEDS = max(SEEDS // 8, 13)  # once for each place at least
JOBS = ("flights-summary", "flights-rows")

Target = Callable[[str], str]


def seeds(number: int) -> list[object]:
    """Each seed of each job as a test of its own, the jobs by turns so that both pytest workers get both."""
    return [pytest.param(job, seed, id=f"{job}-{seed}") for seed in range(number) for job in JOBS]


@pytest.mark.parametrize(("job", "seed"), seeds(SEEDS))
def test_killed_anywhere_a_run_ends_as_if_nothing_had_happened(
    stack: Stack, target: Target, job: str, seed: int
) -> None:
    assert_promises(stack, target, plan_of(job, seed, stack.days))


@pytest.mark.parametrize(("job", "seed"), seeds(PICKY_SEEDS))
def test_killed_anywhere_what_is_skipped_and_rejected_is_counted_once(
    stack: Stack, target: Target, job: str, seed: int
) -> None:
    assert_promises(stack, target, plan_of(job, seed, stack.days, picky=True))


@pytest.mark.parametrize("picky", [False, True], ids=["all", "picky"])
@pytest.mark.parametrize("job", JOBS)
def test_the_seeds_kill_at_every_point_of_the_loop(stack: Stack, job: str, picky: bool) -> None:
    """Each seed proves that its first kill came where it was planned, so the plans tell what was covered."""
    number = PICKY_SEEDS if picky else SEEDS
    planned = {plan_of(job, seed, stack.days, picky=picky).place for seed in range(number)}
    assert set(places(job, picky=picky)) == planned


def assert_promises(stack: Stack, target: Target, plan: Plan) -> None:
    """Run a plan, and look at everything that it left."""
    driven = Driven(stack, plan.shape, target(plan.shape.job))
    driven.start()
    work(driven, plan)
    assert_ended_well(driven)
    assert_table_is_equal(driven)
    assert_records_are_exact(driven)
    assert_each_reject_is_kept_once(driven)
    again = assert_nothing_reaches_back(driven)
    assert_replayed(driven, plan, again)


def work(driven: Driven, plan: Plan) -> None:
    """Launch and kill as planned, tell `accept` the truth about each death, until the slice is done."""
    for number, stop in enumerate([*plan.stops, None]):
        outside = isinstance(stop, Outside)
        task = driven.launch(None if outside else stop)
        status = driven.stack.warm.wait(task.arn, kill_after=stop.seconds if outside else None)
        certain = number == 0 and not outside
        assert os.WIFSIGNALED(status) or not certain, f"{plan.place}: the task was not killed there"
        # One death may be the task's own (out of memory, say); a second one without progress would be STUCK.
        answer = driven.accept(task, truth(status, plan.told if number == 0 else "SpotInterruption"))
        if answer is Answer.DONE:
            break
        assert Answer.AGAIN is answer, driven.stack.warm.log.read_text()
    assert Settled.ENDED is driven.settle()


def truth(status: int, told: str) -> Ended:
    """How a task ended: by SIGKILL, or by itself with everything done."""
    if os.WIFSIGNALED(status):
        assert signal.SIGKILL == os.WTERMSIG(status)
        return Ended(exit_code=128 + signal.SIGKILL, stop_code=told)
    assert 0 == os.WEXITSTATUS(status)
    return Ended(exit_code=0, stop_code="EssentialContainerExited")


def assert_replayed(driven: Driven, plan: Plan, again: int) -> None:
    """`replayed` bounds what was worked again from above; killed at rest, a task leaves nothing to repeat."""
    replayed = driven.stack.ledger.verdicts.counts(driven.run.run_id).tally().replayed
    if plan.shape.checkpoint_seconds in (0.0, NEVER):
        # In between, a checkpoint comes by the clock, and the first one may cover less than was lost.
        assert again <= replayed
    if plan.repeats is not None:
        assert plan.repeats == (again > 0)
