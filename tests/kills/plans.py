"""What a seed decides: the days, the batches, and where the tasks are killed."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import accumulate

from .driving import Shape, Stop

NEVER = 1e9
WINDOWS = [
    ("2013-11-27", "2013-11-29"),
    ("2013-11-28", "2013-11-30"),
    ("2013-11-28", "2013-12-01"),
    ("2013-03-09", "2013-03-11"),
    ("2013-03-10", "2013-03-12"),
]


@dataclass(frozen=True, slots=True)
class Outside:
    """A kill by somebody else, so many seconds after the start; a task that ended before that is spared."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One seed. The first of `stops` is at `place`, and certain; the others depend on what is left then."""

    place: str
    shape: Shape
    stops: tuple[Stop | Outside, ...]
    told: str

    @property
    def repeats(self) -> bool | None:
        """Whether rows must have been applied again; None where that depends on chance."""
        if self.shape.checkpoint_seconds or any(isinstance(stop, Outside) for stop in self.stops):
            return None
        points = {stop.point for stop in self.stops if isinstance(stop, Stop)}
        if points <= {"registered", "taken", "write", "advanced", "reported", "stored"}:
            return False
        return True if "written" in self.place else None


WRITES = ("write", "sending", "written")
# Every point of the loop, in its order, and how often one passes it for certain.
PLACES: Mapping[str, str] = {
    "registered, nothing taken": "registered",
    "taken, nothing read": "taken",
    "before the first write": "write",
    "written, before the first checkpoint": "written",
    "before a write": "write",
    "rows on their way": "sending",
    "written, before a checkpoint": "written",
    "rejects stored, before their checkpoint": "rejects",
    "after a checkpoint": "advanced",
    "between the last checkpoint and the report": "advanced",
    "after a report": "reported",
    "after the contract was stored": "stored",
    "at any time, from outside": "",
}


def places(job: str, *, picky: bool) -> list[str]:
    """The places that a job has: rows of PostgreSQL are no transaction of DynamoDB, and few jobs reject."""
    absent = set() if job == "flights-summary" else {"sending"}
    absent |= set() if picky else {"rejects"}
    return [place for place, point in PLACES.items() if point not in absent]


def plan_of(job: str, seed: int, days: Mapping[date, bytes], *, picky: bool = False) -> Plan:
    """The plan of a seed: the same every time."""
    rng = random.Random(f"{job} {seed} {picky}")
    known = places(job, picky=picky)
    place = known[seed % len(known)]
    start, end = rng.choice(WINDOWS)
    shape = Shape(
        job,
        start,
        end,
        batch=rng.randint(150, 500),
        traits=("witnessed", "picky") if picky else ("witnessed",),
        checkpoint_seconds=0.0 if "last checkpoint" in place else rng.choice([0, 0, 0, 0, 0.02, NEVER]),
    )
    first: Stop | Outside = _stop_at(place, shape, days, rng) if PLACES[place] else _outside(rng)
    more = [_another(rng) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    told = rng.choice(["SpotInterruption", "EssentialContainerExited"])
    return Plan(place, shape, (first, *more), told)


def _stop_at(place: str, shape: Shape, days: Mapping[date, bytes], rng: random.Random) -> Stop:
    """The kill at a place that a first task cannot but pass."""
    point, batches = PLACES[place], batches_of(shape, days)
    if "last checkpoint" in place:
        return Stop(point, rng.choice(list(accumulate(batches))))
    if "first" in place or point in ("registered", "stored"):
        return Stop(point)
    every_batch = point in WRITES or (point == "advanced" and not shape.checkpoint_seconds)
    return Stop(point, rng.randint(1, sum(batches) if every_batch else len(batches)))


def batches_of(shape: Shape, days: Mapping[date, bytes]) -> list[int]:
    """How many batches each partition has."""
    if shape.job == "flights-summary":
        return [1 for _ in shape.dates]
    return [math.ceil((days[day].count(b"\n") - 1) / shape.batch) for day in shape.dates]


def _another(rng: random.Random) -> Stop | Outside:
    points = ["registered", "taken", "write", "written", "advanced", "reported", "stored"]
    return _outside(rng) if rng.random() < 0.25 else Stop(rng.choice(points), rng.randint(1, 3))


def _outside(rng: random.Random) -> Outside:
    return Outside(rng.uniform(0, 0.6))
