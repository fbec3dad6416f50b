"""The counters of a run: partitions by phase and end state, with their records.

They are moved in the transactions that move the partitions.

A counter item has one attribute per figure, `<phase>.<state>.<figure>`, and what the run's launches took:
the seconds of tasks and, of those proved stopped, how many they were and what they took beside their work.
`<phase>.reported.<figure>` is what tasks that are gone said to have reported, less what was judged of that:
so progress does not fall back between the end of a task and the judgement of its partitions. It is what
heartbeats said, and so about right; nothing is decided by it.
Eight such items share the load; each may hold a negative part of a positive sum, since a retry subtracts from
the shard of its own transaction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from trueup.ledger import keys
from trueup.ledger.table import Item, Write
from trueup.model.counters import COUNTERS, Counters
from trueup.model.ledger import Counts, LaunchTimes, PartitionItem, Tally, TaskItem
from trueup.model.states import END_STATES, PartitionStatus, Phase

_TASK_SECONDS = "taskSeconds"
_LAUNCHES = "launches."
_REPORTED = "reported"
_FAILED = "failed"


def count(run_id: str, phase: Phase, moves: Sequence[tuple[PartitionItem, PartitionStatus]]) -> list[Write]:
    """The write of the one counter item that these moves change; none where no figure changes."""
    adds: Counter[str] = Counter()
    for item, after in moves:
        for status, sign in ((item.status, -1), (after, 1)):
            if status in END_STATES:
                for name, amount in _figures(item).items():
                    adds[f"{phase.value}.{status.value}.{name}"] += sign * amount
        if item.status is PartitionStatus.REPORTED:
            adds[f"{phase.value}.{_REPORTED}.partitions"] -= 1
            adds[f"{phase.value}.{_REPORTED}.work"] -= item.work
    moved = {name: amount for name, amount in adds.items() if amount}
    shard = keys.shard(moves[0][0].partition_id)
    return [Write(keys.count(run_id, shard), adds=moved)] if moved else []


def count_task(run_id: str, task: TaskItem, now: datetime) -> Write:
    """The write that adds a task, proved stopped now, to one of the counter items.

    Its time, how long it took to start and, where it worked all of its slice, to be proved stopped after its
    last word (in milliseconds), and what it said to have reported.
    """
    adds = {
        _TASK_SECONDS: max(0, math.ceil((now - task.registered_at).total_seconds())),
        f"{_LAUNCHES}stopped": 1,
    }
    if task.is_through:
        adds[f"{_LAUNCHES}ended"] = 1
        adds[f"{_LAUNCHES}ending"] = _milliseconds(now - task.beat_at)
    if task.launched_at is not None:
        adds[f"{_LAUNCHES}started"] = 1
        adds[f"{_LAUNCHES}starting"] = _milliseconds(task.registered_at - task.launched_at)
    if task.reported:
        adds[f"{task.phase.value}.{_REPORTED}.partitions"] = task.reported
        adds[f"{task.phase.value}.{_REPORTED}.work"] = round(task.work_reported * 1000)
    return Write(keys.count(run_id, task.launch % keys.SHARDS), adds=adds)


def _milliseconds(span: timedelta) -> int:
    return max(0, round(span.total_seconds() * 1000))


def follow(run_id: str, moves: Sequence[tuple[PartitionItem, PartitionStatus]]) -> Write:
    """The write that follows how many partitions failed in a row, in the order in which ends are written.

    It needs no condition: a sum commutes, and what an acceptance sets it to is known without what was there.
    Exact, since it belongs into the transaction that writes these ends.
    """
    failed = 0
    accepted = False
    for _, after in moves:
        accepted, failed = (True, 0) if after is PartitionStatus.ACCEPTED else (accepted, failed + 1)
    change: Any = {"sets" if accepted else "adds": {_FAILED: failed}}
    return Write(keys.row(run_id), **change)


def row_of(item: Item | None) -> int:
    """How many failed in a row, from the item that says so."""
    return int((item or {}).get(_FAILED, 0))


def tally(shards: Sequence[Item], phase: Phase | None) -> Counts:
    """The sum over the counter items, of one phase or of all."""
    sums: dict[PartitionStatus, Counter[str]] = {}
    reported: Counter[str] = Counter()
    for shard in shards:
        for attribute, amount in shard.items():
            if attribute == _TASK_SECONDS or attribute.startswith(_LAUNCHES):
                continue
            of_phase, status, name = attribute.split(".")
            if phase is not None and of_phase != phase.value:
                continue
            if status == _REPORTED:
                reported[name] += amount
            else:
                sums.setdefault(PartitionStatus(status), Counter())[name] += amount
    return Counts(
        by_state={status: _tally(figures) for status, figures in sums.items() if any(figures.values())},
        task_seconds=sum(shard.get(_TASK_SECONDS, 0) for shard in shards),
        launches=_launches(shards),
        reported=reported["partitions"],
        reported_work=reported["work"],
    )


def _launches(shards: Sequence[Item]) -> LaunchTimes:
    names = ("stopped", "ended", "ending", "started", "starting")
    sums = {name: sum(shard.get(_LAUNCHES + name, 0) for shard in shards) for name in names}
    return LaunchTimes(**sums)


def _figures(item: PartitionItem) -> dict[str, int]:
    records = {name: getattr(item.counters, name) for name in COUNTERS}
    return {"partitions": 1, "replayed": item.replayed, "work": item.work, **records}


def _tally(figures: Counter[str]) -> Tally:
    # Not validated: the shards are not read at one instant, so a sum may be negative for a moment.
    records: dict[str, Any] = {name: figures[name] for name in COUNTERS}
    return Tally.model_construct(
        partitions=figures["partitions"],
        records=Counters.model_construct(**records),
        replayed=figures["replayed"],
        work=figures["work"],
    )
