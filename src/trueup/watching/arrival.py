"""When the last task of a phase will be accepted: so many at once, each with a start and an end. Pure.

A task costs more than its work. It takes time to start (image pull, imports), and time from its last word
until it is proved stopped and accepted; only then its slot is free for the next slice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueup.planning.estimate import START_SECONDS, STOP_SECONDS

SETTLE_SECONDS = 3.0
"""From the last acceptance until the run's end is written: one function, and the report that it makes."""
_LONGER_STILL = 1.25
"""What waits now, waits a quarter longer at least: nobody can know when it will be heard."""


@dataclass(frozen=True, slots=True)
class Lags:
    """Seconds that a launch takes beside its work: until its task registers, and after its last word."""

    start: float
    end: float


def lags(starts: Spans, ends: Spans, waiting: Iterable[float], opening: float) -> Lags:
    """What launches took so far; `waiting` says since when tasks that are through wait to be accepted.

    Until something was measured: as long as the planner believes to start and, against that, to end. It takes
    functions too that nobody called lately to end a launch, as it did for `opening` the run.
    """
    start = starts.mean(START_SECONDS)
    usual = opening + start * STOP_SECONDS / START_SECONDS
    longest = max(waiting, default=0.0)
    return Lags(start, max(ends.mean(usual), longest * _LONGER_STILL))


@dataclass(frozen=True, slots=True)
class Spans:
    """So many spans of time, and their sum in seconds."""

    number: int
    seconds: float

    def mean(self, otherwise: float) -> float:
        """Their mean; `otherwise` where there is none."""
        return self.seconds / self.number if self.number else otherwise

    def plus(self, others: Sequence[float]) -> Spans:
        """These, and others."""
        return Spans(self.number + len(others), self.seconds + sum(others))


def seconds_to_the_last(
    at_work: Sequence[float], to_come: Iterable[float], at_once: int, lags: Lags, starting: float
) -> float:
    """Seconds until everything is accepted.

    `at_work`: until each running task is through, below 0 for one that is, since so long. `to_come`: the work
    of each slice that no task has, in task seconds. A slice gets the slot that is free first, as the
    Distributed Map does it; in those where nobody works yet, tasks are `starting` since so many seconds.
    """
    free = [max(0.0, seconds + lags.end) for seconds in at_work]
    free += [-min(starting, lags.start)] * (at_once - len(free))
    heapq.heapify(free)
    for seconds in to_come:
        heapq.heapreplace(free, free[0] + lags.start + seconds + lags.end)
    return max(0.0, *free)
