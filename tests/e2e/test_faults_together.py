"""Everything that can go wrong, by chance and at once; and an `accept` that never comes to anything.

More seeds: `SEEDS=200 pytest tests/e2e/test_faults_together.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from trueup.local.ecs import REFUSALS, Fate

from .numbered import assert_exact
from .rig import Case, Rig, harm, together
from .test_faults_calls import FUNCTIONS
from .test_faults_tasks import LATER
from .trouble import DIED, TIMED_OUT, Mishap, Trouble, When, Word

SEEDS = int(os.environ.get("SEEDS", "6"))
pytestmark = pytest.mark.timeout(1200)
MOMENTS: list[When] = ["before", "meanwhile", "after"]


def troubled(seed: int) -> Case:
    """What goes wrong by a seed. What counts as a fault strikes the first launch alone: one is survived."""
    rng = random.Random(seed)
    job = rng.choice(["rows", "rows-callback"])
    fates = {
        1: rng.choice([Fate(kill=rng.uniform(0, 1)), Fate(cannot_pull=True), Fate(cold_start=0.5), Fate()])
    }
    if job == "rows":  # Spot before a task has registered is silence where the task's word is awaited
        fates |= {launch: Fate(interrupt=rng.uniform(0, 1)) for launch in (2, 3) if rng.random() < 0.5}
    trouble = Trouble(
        refusals=rng.choices(list(REFUSALS), k=rng.randint(0, 3)),
        fates=fates,
        calls=[*_mishaps(rng)],
        words=[
            Word(kind, rng.choice(["lost", "twice", "late"]))
            for kind in ("Success", "Failure")
            if rng.random() < 0.4
        ],
    )
    harms = [harm(launch, *rng.choice(LATER)) for launch in (2, 3, 4) if rng.random() < 0.4]
    return Case(f"seed {seed}", job, trouble, harms, days=4)


def _mishaps(rng: random.Random) -> Iterator[Mishap]:
    for function in FUNCTIONS:
        if rng.random() < 0.5:
            yield Mishap(function, rng.choice(MOMENTS), rng.choice([DIED, TIMED_OUT]), rng.randint(1, 2))
    for call in ("runTask", "updateItem"):
        if rng.random() < 0.3:
            yield Mishap(call, "after")


def test_whatever_comes_together_nothing_is_lost_or_counted_twice(
    rig: Rig, subtests: pytest.Subtests
) -> None:
    for case, run in together(rig, map(troubled, range(SEEDS))):
        with subtests.test(case.name, job=case.job):
            assert_exact(rig, run)
            rig.words.deliver(run.run_id)
            assert_exact(rig, run)
            assert all(answer in ("again", "done") for _, answer in rig.launches(run.run_id).values())


def test_what_no_accept_came_to_judge_is_judged_when_the_phase_is_settled(rig: Rig) -> None:
    attempts = 9
    ((_, run),) = together(rig, [Case(trouble=Trouble(calls=[Mishap("accept", "before", times=attempts)]))])
    assert_exact(rig, run)
    assert {} == rig.launches(run.run_id)
    # Each attempt, and the child that fails of the last one.
    assert [DIED["errorType"]] * (attempts + 1) == [error for error, _ in rig.failures(run.run_id)]
    assert "MapRunFailed" not in {event["type"] for event in rig.history(run.run_id)}
