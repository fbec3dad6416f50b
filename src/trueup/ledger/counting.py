"""The counters of a run: partitions by phase and end state, with their records.

They are moved in the transactions that move the partitions.

A counter item has one attribute per figure, `<phase>.<state>.<figure>`.
Eight such items share the load; each may hold a negative part of a positive sum, since a retry subtracts from
the shard of its own transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from trueup.ledger import keys
from trueup.ledger.table import Item, Write
from trueup.model.counters import COUNTERS, Counters
from trueup.model.ledger import Counts, PartitionItem, Tally
from trueup.model.states import END_STATES, PartitionStatus, Phase


def count(run_id: str, phase: Phase, moves: Sequence[tuple[PartitionItem, PartitionStatus]]) -> list[Write]:
    """The write of the one counter item that these moves change; none where no figure changes."""
    adds: Counter[str] = Counter()
    for item, after in moves:
        for status, sign in ((item.status, -1), (after, 1)):
            if status in END_STATES:
                for name, amount in _figures(item).items():
                    adds[f"{phase.value}.{status.value}.{name}"] += sign * amount
    moved = {name: amount for name, amount in adds.items() if amount}
    shard = keys.shard(moves[0][0].partition_id)
    return [Write(keys.count(run_id, shard), adds=moved)] if moved else []


def tally(shards: Iterable[Item], phase: Phase | None) -> Counts:
    """The sum over the counter items, of one phase or of all."""
    sums: dict[PartitionStatus, Counter[str]] = {}
    for shard in shards:
        for attribute, amount in shard.items():
            of_phase, status, name = attribute.split(".")
            if phase is None or of_phase == phase.value:
                sums.setdefault(PartitionStatus(status), Counter())[name] += amount
    return Counts(
        by_state={status: _tally(figures) for status, figures in sums.items() if any(figures.values())}
    )


def _figures(item: PartitionItem) -> dict[str, int]:
    records = {name: getattr(item.counters, name) for name in COUNTERS}
    return {"partitions": 1, "replayed": item.replayed, **records}


def _tally(figures: Counter[str]) -> Tally:
    # Not validated: the shards are not read at one instant, so a sum may be negative for a moment.
    records: dict[str, Any] = {name: figures[name] for name in COUNTERS}
    return Tally.model_construct(
        partitions=figures["partitions"],
        records=Counters.model_construct(**records),
        replayed=figures["replayed"],
    )
