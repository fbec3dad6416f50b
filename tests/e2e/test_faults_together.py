"""Everything that can go wrong, by chance and at once; and an `accept` that never comes to anything.

More seeds: `SEEDS=200 pytest tests/e2e/test_faults_together.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from trueup.local.ecs import REFUSALS
from trueup.local.faults import Fault, fault

from .numbered import assert_exact
from .rig import Case, Rig, harm, together
from .test_faults_calls import ERRORS_OF_FUNCTIONS, FUNCTIONS
from .test_faults_tasks import LATER

SEEDS = int(os.environ.get("SEEDS", "6"))
pytestmark = pytest.mark.timeout(1200)
MOMENTS = ["before", "meanwhile", "after"]
LATE = 22.0


def troubled(seed: int) -> Case:
    """What goes wrong by a seed. What counts as a fault strikes the first launch alone: one is survived."""
    rng = random.Random(seed)
    job = rng.choice(["rows", "rows-callback"])
    faults = [fault(kind, times=1) for kind in rng.choices(list(REFUSALS), k=rng.randint(0, 3))]
    faults += rng.choice(
        [
            [fault("kill", launches=[1], after=rng.uniform(0, 1))],
            [fault("cannot-pull", launches=[1])],
            [fault("cold-start", launches=[1], seconds=0.5)],
            [],
        ]
    )
    if job == "rows":  # Spot before a task has registered is silence where the task's word is awaited
        faults += [
            fault("interrupt", launches=[launch], after=rng.uniform(0, 1))
            for launch in (2, 3)
            if rng.random() < 0.5
        ]
    faults += [*_of_calls(rng), *_of_words(rng)]
    harms = [harm(launch, *rng.choice(LATER)) for launch in (2, 3, 4) if rng.random() < 0.4]
    return Case(f"seed {seed}", job, faults, harms, days=4)


def _of_calls(rng: random.Random) -> Iterator[Fault]:
    for function in FUNCTIONS:
        if rng.random() < 0.5:
            kind, when = rng.choice(list(ERRORS_OF_FUNCTIONS)), rng.choice(MOMENTS)
            yield fault(kind, function=function, when=when, times=rng.randint(1, 2))
    for call in ("runTask", "updateItem"):
        if rng.random() < 0.3:
            yield fault("answer-lost", call=call, times=1)


def _of_words(rng: random.Random) -> Iterator[Fault]:
    for word in ("Success", "Failure"):
        if rng.random() < 0.4:
            kind = rng.choice(["callback-lost", "callback-twice", "callback-late"])
            more = {"seconds": LATE} if kind == "callback-late" else {}
            yield fault(kind, word=word, times=1, **more)


def test_whatever_comes_together_nothing_is_lost_or_counted_twice(
    rig: Rig, subtests: pytest.Subtests
) -> None:
    for case, run in together(rig, map(troubled, range(SEEDS))):
        with subtests.test(case.name, job=case.job):
            assert_exact(rig, run)
            rig.words(run.run_id)
            assert_exact(rig, run)
            assert all(answer in ("again", "done") for _, answer in rig.launches(run.run_id).values())


def test_what_no_accept_came_to_judge_is_judged_when_the_phase_is_settled(rig: Rig) -> None:
    attempts = 9
    ((_, run),) = together(
        rig, [Case(faults=[fault("function-died", function="accept", when="before", times=attempts)])]
    )
    assert_exact(rig, run)
    assert {} == rig.launches(run.run_id)
    # Each attempt, and the child that fails of the last one.
    assert [ERRORS_OF_FUNCTIONS["function-died"]] * (attempts + 1) == [
        error for error, _ in rig.failures(run.run_id)
    ]
    assert "MapRunFailed" not in {event["type"] for event in rig.history(run.run_id)}
