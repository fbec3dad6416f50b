"""Checkpoints a second, in memory and on MiniStack, beside the least that the store itself can do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from bench.figures import Figure, seconds
from trueup.clock import SystemClock
from trueup.ledger import Ledger, Owner
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Table
from trueup.local.aws import client, ministack
from trueup.local.stores import create_ledger_table
from trueup.model.counters import Counters
from trueup.model.ledger import Checkpoint
from trueup.model.states import Phase

NAME = "trueup-bench"
WRITES = 5_000
SERVED_WRITES = 1_000
# The pieces in which both sides take turns, so that a noisy moment meets both.
TURNS = 10

OWNER = Owner("bench", Phase.APPLY, 1, "arn:aws:ecs:eu-west-1:000000000000:task/bench/1", epoch=1)


def measure(writes: int = WRITES, served_writes: int = SERVED_WRITES) -> Iterator[Figure]:
    """Both tables."""
    yield in_memory(writes)
    with ministack(["dynamodb"]) as endpoint:
        yield on_dynamodb("MiniStack", client("dynamodb", endpoint), served_writes)


def in_memory(writes: int) -> Figure:
    """Checkpoints on the table that tests use."""
    item: dict[str, object] = {}
    numbers = itertools.count()

    def update() -> None:
        item.update(cursor=f"v1:{next(numbers)}", seq=next(numbers))

    return _figure("ledger in memory", "a bare dict.update", MemoryTable(), update, writes)


def on_dynamodb(where: str, dynamodb: Any, writes: int) -> Figure:
    """Checkpoints on a table of a DynamoDB, or of what stands in for it."""
    create_ledger_table(dynamodb, NAME)
    numbers = itertools.count()

    def update() -> None:
        dynamodb.update_item(
            TableName=NAME,
            Key={"PK": {"S": "BARE"}, "SK": {"S": "BARE"}},
            UpdateExpression="SET #c = :c",
            ExpressionAttributeNames={"#c": "cursor"},
            ExpressionAttributeValues={":c": {"S": f"v1:{next(numbers)}"}},
        )

    table = DynamoTable(dynamodb, NAME)
    return _figure(f"ledger on {where}", f"a bare UpdateItem on {where}", table, update, writes)


def _figure(name: str, reference: str, table: Table, update: Callable[[], None], writes: int) -> Figure:
    advance = _advancing(table)
    a_turn = max(1, writes // TURNS)
    turns = [(_repeated(advance, a_turn), _repeated(update, a_turn)) for _ in range(TURNS)]
    ours, bare = (round(TURNS * a_turn / sum(side)) for side in zip(*turns, strict=True))
    return Figure(name, ours, "checkpoints/s", reference, bare)


def _advancing(table: Table) -> Callable[[], None]:
    """A call that moves the checkpoint of one partition by one batch."""
    partitions = Ledger(table, SystemClock()).partitions
    item = partitions.take(OWNER, "date=2013-01-05").item
    batch = Counters(read=1_000, used=1_000, produced=1_000, written=1_000)

    def advance() -> None:
        nonlocal item
        counters = item.counters.plus(batch)
        item = partitions.advance(OWNER, item, Checkpoint(cursor=f"v1:{counters.read}", counters=counters))

    return advance


def _repeated(call: Callable[[], None], times: int) -> float:
    def repeat() -> None:
        for _ in range(times):
            call()

    return seconds(repeat)
