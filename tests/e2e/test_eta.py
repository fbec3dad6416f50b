"""How long it will take: what `status` says of the real flights on the machines, beside what it then took.

The truth is when the run's end was written, on this machine and with whatever else it did. What is told is
off by the seconds between the end that was told and that end; a quarter of all that the run took is allowed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from trueup.clock import SystemClock
from trueup.local.demo import AT_ONCE, END, PARAMS, START, days_before
from trueup.local.stack import Stack, stack
from trueup.local.stores import put_days
from trueup.local.targets import FLIGHTS_BUCKET
from trueup.model.states import RUN_ENDS, RunStatus
from trueup.model.view import RunDetail
from trueup.watching import Watch

from .watching import start

EVERY = 0.5
WITHIN = 0.25


@dataclass(frozen=True)
class Look:
    """What was said at a moment, in seconds after the run was asked for."""

    at: float
    detail: RunDetail

    @property
    def is_half_way(self) -> bool:
        """Whether half of the work or more is done, and the run's end is not being written yet."""
        return self.detail.work.share >= 0.5 and self.detail.run.status is RunStatus.RUNNING


def looks(up: Stack, run_id: str) -> list[Look]:
    """What is said of a run every half a second until it has ended, as `status --watch` asks for it."""
    watch, began = Watch(up.ledger, up.artifacts, SystemClock()), time.monotonic()
    found: list[Look] = []
    while not found or found[-1].detail.run.status not in RUN_ENDS:
        time.sleep(EVERY)
        found.append(Look(time.monotonic() - began, watch.status(run_id)))
    return found


@pytest.mark.timeout(600)
def test_from_half_way_on_the_end_is_told_within_a_quarter_and_before_it_is_measured() -> None:
    job = "flights-rows"
    with stack() as up:
        put_days(up.client("s3"), FLIGHTS_BUCKET, days_before(END))
        window = {"from": START, "to": END, "params": PARAMS[job], "maxConcurrency": AT_ONCE}
        told = looks(up, start(up, job, **window))
    known = next(index for index, one in enumerate(told) if one.detail.eta.seconds is not None)
    assert all(one.detail.eta.basis.startswith("measuring") for one in told[:known])
    half, end = [one for one in told if one.is_half_way], told[-1].at
    assert len(half) > 20
    off = {round(one.at, 1): round(_off(one, end), 3) for one in half}
    assert max(off.values()) <= WITHIN, off
    done = [(one.detail.phase, one.detail.partitions.done) for one in told]
    assert done == sorted(done)


def _off(one: Look, end: float) -> float:
    """By which share of all that the run took the end that was said is off."""
    assert one.detail.eta.seconds is not None, one.detail.eta
    return abs(one.at + one.detail.eta.seconds - end) / end
