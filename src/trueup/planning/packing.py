"""Partitions are packed into slices: what one task works through, in order.

Launches cost tens of seconds each, so a slice aims at the minutes that one task should run. There are at
least as many slices as tasks may run at once (or partitions to give them), and up to five rounds of tasks the
number is a multiple of that, because a last round of a few slices would leave the others waiting.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from trueup.model.plan import Partition

MOST_IN_A_SLICE = 1000
"""A contract lists each partition of its slice, and acceptance writes them in one go."""

_ROUNDS_TO_FILL = 5


@dataclass(slots=True)
class Pack:
    """Partitions of one slice in the order of work, and the sum of their weights in seconds."""

    weight: float = 0.0
    partitions: list[Partition] = field(default_factory=list)

    def add(self, partition: Partition) -> None:
        """Put one more at the end."""
        self.partitions.append(partition)
        self.weight += partition.weight


def in_order(partitions: Sequence[Partition], order: str) -> list[Partition]:
    """The order of a plan: heaviest first, or oldest or newest. `partitions` come in key order."""
    if order == "oldest":
        return list(partitions)
    if order == "newest":
        return list(reversed(partitions))
    return sorted(partitions, key=lambda partition: -partition.weight)


def pack(
    partitions: Sequence[Partition], *, order: str, target_seconds: float, max_concurrency: int
) -> list[Pack]:
    """Partitions in plan order become packs, each partition in one and whole.

    Heaviest first balances all packs at once (the longest goes to the lightest pack). By key, each round of
    tasks gets the next part of the keys and is balanced within itself, so that old comes before new.
    """
    total = sum(partition.weight for partition in partitions)
    count = slice_count(len(partitions), total, target_seconds, max_concurrency)
    if order == "heaviest":
        packs = _deal(partitions, count)
        return sorted(packs, key=lambda pack: -pack.weight)
    packs = []
    for part, size in _rounds(partitions, total, count, max_concurrency):
        packs += _deal(part, size)
    return packs


def slice_count(partitions: int, total: float, target_seconds: float, max_concurrency: int) -> int:
    """How many slices so many partitions of so much total weight should have."""
    by_weight = math.ceil(total / target_seconds)
    if by_weight <= _ROUNDS_TO_FILL * max_concurrency:
        by_weight = math.ceil(by_weight / max_concurrency) * max_concurrency
    wanted = max(by_weight, max_concurrency, math.ceil(partitions / MOST_IN_A_SLICE))
    return min(wanted, partitions)


def _deal(partitions: Sequence[Partition], count: int) -> list[Pack]:
    packs = [Pack() for _ in range(min(count, len(partitions)))]
    heap = [(0.0, 0, index) for index in range(len(packs))]
    for partition in partitions:
        weight, members, index = heapq.heappop(heap)
        packs[index].add(partition)
        if members + 1 < MOST_IN_A_SLICE:
            heapq.heappush(heap, (weight + partition.weight, members + 1, index))
    return packs


def _rounds(
    partitions: Sequence[Partition], total: float, count: int, max_concurrency: int
) -> list[tuple[Sequence[Partition], int]]:
    rounds: list[tuple[Sequence[Partition], int]] = []
    start, done, dealt = 0, 0.0, 0
    while start < len(partitions):
        size = max(min(max_concurrency, count - dealt), 1)
        dealt += size
        end = start
        while (
            end < len(partitions)
            and end - start < size * MOST_IN_A_SLICE
            and not (end - start >= size and done >= total * dealt / count)
        ):
            done += partitions[end].weight
            end += 1
        rounds.append((partitions[start:end], size))
        start = end
    return rounds
