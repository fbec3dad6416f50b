"""The time left against the truth, in worlds of many kinds: from half-way on, at each look."""

from __future__ import annotations

import os

import pytest

from trueup.watching.arrival import Lags, Spans, lags, seconds_to_the_last

from .eta_cases import World, play

SEEDS = int(os.environ.get("SEEDS", "6"))
LOOKS = 40
"""In a run, of which about half come after half-way."""
WITHIN = 0.25
# Whose tasks begin and end at once and never die: what is told can be as good as what was measured.
STEADY = {
    "minutes in tasks that all start at once": World(partitions=200, at_once=16),
    "two rounds": World(),
    "many rounds of few tasks": World(partitions=1500, at_once=4),
    "one task at a time": World(at_once=1, partitions=120),
    "five times as long as estimated": World(pace=5),
    "a tenth of the estimate, so that starts and ends are most of it": World(pace=0.1),
    "partitions of which some are fifty times as heavy": World(uneven=50),
    "hosts of which some are twice as slow": World(hosts=(0.7, 1.5)),
    "a laptop": World(
        weight=1.0,
        partitions=365,
        pace=0.5,
        slice_seconds=600,
        opening=(2, 4),
        starting=(1, 3),
        ending=(0.5, 4),
        settling=(1, 3),
    ),
}
ROUGH = {
    "a dozen partitions, each with minutes of its own": World(
        partitions=12, at_once=4, uneven=30, slice_seconds=20, pace=20
    ),
    "one in seven launches dies": World(deaths=0.15),
    "one in three launches dies": World(partitions=1000, deaths=0.3),
}


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("world", [*STEADY.values(), *ROUGH.values()], ids=[*STEADY, *ROUGH])
def test_from_half_way_on_the_end_is_told_within_a_quarter_of_how_long_the_run_takes(
    world: World, seed: int
) -> None:
    run = play(world, seed)
    told = [(now, standing.eta()) for now, standing in run.looks(run.end / LOOKS)]
    assert len(told) >= LOOKS / 8
    for now, eta in told:
        if eta.seconds is None:
            assert eta.basis.startswith("measuring")
        else:
            assert run.end == pytest.approx(now + eta.seconds, abs=WITHIN * run.end), (now, eta)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("world", STEADY.values(), ids=STEADY)
def test_where_nothing_dies_the_time_left_is_within_a_quarter_but_for_one_start_and_one_end(
    world: World, seed: int
) -> None:
    run = play(world, seed)
    # By how much a start and an end vary is chance, and no look can know it of the last task.
    chance = sum(high - low for low, high in (world.starting, world.ending, world.settling))
    for now, standing in run.looks(run.end / LOOKS):
        eta, left = standing.eta(), run.end - now
        assert eta.seconds is not None
        assert left == pytest.approx(eta.seconds, abs=WITHIN * left + chance), (now, eta)


def test_slots_are_given_to_slices_in_turn() -> None:
    took = Lags(start=10, end=5)
    # Two work 20 and 40 s more; three slices of 100, 50 and 10 s follow: 25+115=140, then 45+65=110, 110+25.
    assert 140 == seconds_to_the_last([20, 40], [100, 50, 10], 2, took, starting=0)
    assert 45 == seconds_to_the_last([20, 40], [], 2, took, starting=0)
    # The third slot is free, and its task is on its way since 4 s.
    assert 61 == seconds_to_the_last([20, 40], [50], 3, took, starting=4)
    assert 55 == seconds_to_the_last([20, 40], [50], 3, took, starting=60)


def test_more_tasks_than_there_are_slots_by_now_keep_theirs() -> None:
    assert 45 == seconds_to_the_last([20, 40, 30], [], 1, Lags(10, 5), starting=0)


def test_what_launches_took_is_believed_over_what_they_usually_take() -> None:
    nothing = Spans(0, 0.0)
    assert Lags(45, 33) == lags(nothing, nothing, [], opening=3)
    assert Lags(6, 3 + 4) == lags(Spans(2, 12.0), nothing, [], opening=3)
    assert Lags(6, 2) == lags(Spans(2, 12.0), Spans(3, 6.0), [], opening=3)
    assert Lags(6, 10) == lags(Spans(2, 12.0), Spans(3, 6.0), [1.0, 8.0], opening=3)
