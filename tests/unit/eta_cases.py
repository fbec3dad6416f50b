"""Runs played by a calendar of events, with everything that `status` reads of them at any moment.

Nothing of trueup runs here but the planner, which cuts the slices: what a task does, when it beats, when it
is accepted and when it dies is drawn beforehand, so that the truth is known, and a look costs little.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trueup.model.counters import Counters
from trueup.model.ledger import Counts, LaunchTimes, PartitionItem, Tally, TaskItem
from trueup.model.plan import Partition
from trueup.model.states import PartitionStatus, Phase
from trueup.planning.packing import in_order, pack
from trueup.watching.progress import Standing

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEAT = 10.0
RECORDS = 100.0
"""For a second of estimated work."""


@dataclass(frozen=True)
class World:
    """What a platform and a job are like. Seconds; pairs are the least and the most."""

    partitions: int = 400
    at_once: int = 8
    slice_seconds: float = 300.0
    weight: float = 10.0
    pace: float = 1.0
    uneven: float = 1.0
    """So many times heavier may a partition be than another."""
    hosts: tuple[float, float] = (0.9, 1.1)
    opening: tuple[float, float] = (3.0, 8.0)
    starting: tuple[float, float] = (20.0, 60.0)
    ending: tuple[float, float] = (10.0, 40.0)
    settling: tuple[float, float] = (2.0, 6.0)
    deaths: float = 0.0
    """Of launches: so many die on the way."""
    noticed: float = 20.0


@dataclass(frozen=True)
class Life:
    """One launch: when, what it worked, each partition with its weight and when it was reported."""

    number: int
    launched: float
    registered: float
    stopped: float
    through: list[tuple[str, float, float]]
    left: list[tuple[str, float]]
    died: float | None

    @property
    def last_word(self) -> float:
        """When it said something for the last time."""
        if self.died is None:
            return self.through[-1][2]
        return self.registered + (self.died - self.registered) // BEAT * BEAT

    def beat_at(self, now: float) -> float:
        """When it beat last."""
        if now >= self.last_word:
            return self.last_word
        return self.registered + (now - self.registered) // BEAT * BEAT


@dataclass
class Played:
    """A run that was played to its end."""

    world: World
    plan: list[Partition]
    slices: int
    lives: list[Life] = field(default_factory=list)
    end: float = 0.0

    @property
    def work(self) -> float:
        """All of it."""
        return sum(part.weight for part in self.plan)

    def standing(self, now: float) -> Standing:
        """What is read of it at a moment."""
        gone = [life for life in self.lives if life.stopped <= now]
        here = [life for life in self.lives if life.registered <= now < life.stopped]
        tasks = [_task(life, now) for life in here]
        lived = sum(life.stopped - life.registered for life in gone)
        lived += sum(now - life.registered for life in here)
        held = [item for life in here if (item := _held(life, now)) is not None]
        return Standing(
            counts=_counts(gone),
            before=Counts(),
            task_seconds=lived,
            tasks=tasks,
            held={item.partition_id: item for item in held},
            partitions=len(self.plan),
            total_work=self.work,
            now=_at(now),
            launches=_times(gone),
            at_once=self.world.at_once,
            slices=self.slices,
            opened_at=BEGIN,
        )

    def looks(self, every: float) -> Iterator[tuple[float, Standing]]:
        """From half of the work on until the last task is accepted."""
        last = max(life.stopped for life in self.lives)
        now = 0.0
        while now < last:
            standing = self.standing(now)
            if standing.work_done >= standing.total_work / 2:
                yield now, standing
            now += every


def play(world: World, seed: int) -> Played:
    """Play a run, by chance."""
    rng = random.Random(seed)
    parts = [
        Partition(partition_id=f"p={n:05d}", weight=round(world.weight * world.uneven ** rng.random(), 3))
        for n in range(world.partitions)
    ]
    plan = in_order(parts, "heaviest")
    packs = pack(plan, order="heaviest", target_seconds=world.slice_seconds, max_concurrency=world.at_once)
    played = Played(world, plan, len(packs))
    slots = [rng.uniform(*world.opening)] * world.at_once
    for packed in packs:
        begin = heapq.heappop(slots)
        left = [(part.id, part.weight) for part in packed.partitions]
        while left:
            life = _live(world, rng, len(played.lives) + 1, begin, left)
            played.lives.append(life)
            begin, left = life.stopped, life.left
        heapq.heappush(slots, begin)
    played.end = max(slots) + rng.uniform(*world.settling)
    return played


def _live(
    world: World, rng: random.Random, number: int, begin: float, parts: list[tuple[str, float]]
) -> Life:
    registered = begin + rng.uniform(*world.starting)
    speed = world.pace * rng.uniform(*world.hosts)
    now, through = registered, []
    for name, weight in parts:
        now += weight * speed
        through.append((name, weight, now))
    if rng.random() >= world.deaths:
        return Life(number, begin, registered, now + rng.uniform(*world.ending), through, [], None)
    died = rng.uniform(registered, now)
    kept = [one for one in through if one[2] <= died]
    stopped = died + world.noticed + rng.uniform(*world.ending)
    return Life(number, begin, registered, stopped, kept, parts[len(kept) :], died)


def _task(life: Life, now: float) -> TaskItem:
    beat = life.beat_at(now)
    said = [one for one in life.through if one[2] <= beat]
    rest = [one for one in life.through if one[2] > beat]
    names = [name for name, _, _ in rest] + [name for name, _ in life.left]
    reported = sum(weight for _, weight, _ in said)
    return TaskItem(
        phase=Phase.APPLY,
        slice_id=life.number,
        launch=life.number,
        generation=1,
        task=f"task-{life.number}",
        registered_at=_at(life.registered),
        launched_at=_at(life.launched),
        beat_at=_at(beat),
        partition=names[0] if names else None,
        records=round(reported * RECORDS),
        reported=len(said),
        work_reported=reported,
        work_left=round(sum(one[1] for one in rest) + sum(one[1] for one in life.left), 3),
    )


def _held(life: Life, now: float) -> PartitionItem | None:
    """The partition of the last beat, as it is now."""
    beat = life.beat_at(now)
    rest = [one for one in life.through if one[2] > beat]
    if not rest:
        return None
    name, weight, ends = rest[0]
    begun = max([life.registered, *(one[2] for one in life.through if one[2] <= beat)])
    share = min(1.0, (now - begun) / max(1e-9, ends - begun))
    read = round(weight * RECORDS * share)
    return PartitionItem(
        partition_id=name,
        status=PartitionStatus.REPORTED if share == 1.0 else PartitionStatus.RUNNING,
        launch=life.number,
        work=round(weight * 1000),
        counters=Counters(read=read, used=read),
        taken_at=_at(begun),
    )


def _counts(gone: list[Life]) -> Counts:
    weights = [weight for life in gone for _, weight, _ in life.through]
    if not weights:
        return Counts()
    read = round(sum(weights) * RECORDS)
    tally = Tally(
        partitions=len(weights), records=Counters(read=read, used=read), work=round(sum(weights) * 1000)
    )
    return Counts(by_state={PartitionStatus.ACCEPTED: tally})


def _times(gone: list[Life]) -> LaunchTimes:
    ended = [life for life in gone if life.died is None]
    return LaunchTimes(
        stopped=len(gone),
        ended=len(ended),
        ending=round(sum(life.stopped - life.last_word for life in ended) * 1000),
        started=len(gone),
        starting=round(sum(life.registered - life.launched for life in gone) * 1000),
    )


def _at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)
