"""How long it will take: what `status` says of the real flights on the machines, beside what it then took.

The truth is when all flights were worked, on this machine and with whatever else it did: what is told is the
time left of the work. What comes after it, judging what was reported, is `status`'s to name and nobody's to
foretell: on AWS it takes seconds, here functions share the cores with everything else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import pytest

from trueup.clock import SystemClock
from trueup.local.demo import AT_ONCE, END, PARAMS, START, days_before
from trueup.local.stack import Stack, stack
from trueup.local.stores import put_days
from trueup.local.targets import FLIGHTS_BUCKET
from trueup.model.states import RUN_ENDS
from trueup.model.view import RunDetail
from trueup.watching import Watch

from .watching import start

EVERY = 0.5
UNTOLD = 5.0
"""Seconds: half of those between two words of a task; nobody can know better when the last one ended."""


@dataclass(frozen=True)
class Look:
    """What was said at a moment, in seconds after the run was asked for."""

    at: float
    detail: RunDetail


def looks(up: Stack, run_id: str) -> list[Look]:
    """What is said of a run every half a second until it has ended, as `status --watch` asks for it."""
    watch, began = Watch(up.ledger, up.artifacts, SystemClock()), time.monotonic()
    found: list[Look] = []
    while not found or found[-1].detail.run.status not in RUN_ENDS:
        time.sleep(EVERY)
        found.append(Look(time.monotonic() - began, watch.status(run_id)))
    return found


@pytest.mark.timeout(600)
def test_from_half_way_on_the_time_left_is_within_a_quarter_and_before_it_is_measured() -> None:
    job = "flights-rows"
    with stack() as up:
        put_days(up.client("s3"), FLIGHTS_BUCKET, days_before(END))
        window = {"from": START, "to": END, "params": PARAMS[job], "maxConcurrency": AT_ONCE}
        told = looks(up, start(up, job, **window))
    known = next(index for index, one in enumerate(told) if one.detail.eta.seconds is not None)
    assert all(one.detail.eta.basis.startswith("measuring") for one in told[:known])
    worked = next(one.at for one in told if one.detail.work.share == 1.0)
    half = [one for one in told if one.detail.work.share >= 0.5 and one.at < worked]
    off = {one.at: _off(one, worked - one.at) for one in half if one.detail.eta.seconds is not None}
    assert len(off) > 20
    # Where the machine is slowed down or let go on the way, some looks are off: not half of them, nor far.
    assert median(off.values()) <= 0.25, off
    assert sum(one <= 0.5 for one in off.values()) >= 0.9 * len(off), off


def _off(one: Look, left: float) -> float:
    """By which share what was said is off, beyond what nobody can know."""
    error = abs((one.detail.eta.seconds or 0) - left)
    return max(0.0, error - UNTOLD) / left if left else 0.0
