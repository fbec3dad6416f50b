"""How evenly partitions of very different weight are packed, whatever the order; nothing is timed here."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from bench.figures import Figure
from trueup.model.plan import Partition
from trueup.planning import in_order, pack

PARTITIONS = 10_000
CONCURRENCY = 64
TASK_SECONDS = 900.0
MOST_SLICES = 350
MOST_UNEVEN = 1.5

ORDERS = ("heaviest", "oldest", "newest")
SEED = 20130105
# Log-normal around 8 seconds: half of the work lies in a fifth of the partitions.
MU, SIGMA = math.log(8), 0.9


def measure(number: int = PARTITIONS) -> Iterator[Figure]:
    """The worst of all orders: how much more than the mean the heaviest slice holds, and how many slices."""
    partitions = weighted(number)
    packed = [slices(partitions, order) for order in ORDERS]
    yield balance(max(packed, key=unevenness), partitions)
    yield count([len(weights) for weights in packed])


def balance(packed: Sequence[float], partitions: Sequence[Partition]) -> Figure:
    """Heaviest over mean of the slices of one order."""
    uneven = round(unevenness(packed), 3)
    return Figure(
        "packing",
        uneven,
        "heaviest/mean",
        "as many slices of as many partitions each, in the order of keys",
        round(unevenness(_cut(partitions, len(packed))), 3),
        MOST_UNEVEN,
        uneven <= MOST_UNEVEN,
    )


def count(numbers: Sequence[int]) -> Figure:
    """How many slices; the worst is the number that is furthest from the middle of what is allowed."""
    number = max(numbers, key=lambda n: abs(n - (CONCURRENCY + MOST_SLICES) / 2))
    return Figure(
        "packing slices",
        number,
        "slices",
        "tasks at once",
        CONCURRENCY,
        f"{CONCURRENCY} to {MOST_SLICES}",
        CONCURRENCY <= number <= MOST_SLICES,
    )


def weighted(number: int) -> list[Partition]:
    """Partitions in the order of their keys, the same each time, none above a tenth of a task's target."""
    rng = random.Random(SEED)
    return [
        Partition(
            partition_id=f"id={n}", weight=round(min(rng.lognormvariate(MU, SIGMA), TASK_SECONDS / 10), 3)
        )
        for n in range(number)
    ]


def slices(partitions: Sequence[Partition], order: str) -> list[float]:
    """The weights of the slices that the planner makes."""
    packs = pack(
        in_order(partitions, order), order=order, target_seconds=TASK_SECONDS, max_concurrency=CONCURRENCY
    )
    return [one.weight for one in packs]


def unevenness(weights: Sequence[float]) -> float:
    """How much longer the heaviest slice takes than the mean."""
    return max(weights) * len(weights) / sum(weights)


def _cut(partitions: Sequence[Partition], number: int) -> list[float]:
    size = math.ceil(len(partitions) / number)
    starts = range(0, len(partitions), size)
    return [sum(one.weight for one in partitions[start : start + size]) for start in starts]
