"""How long `status` takes for a run of 100,000 partitions with 16 tasks at work.

Beside one read of the run, which nobody who looks at it can do without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.figures import Figure, middle, rounded, seconds
from bench.planning import CODE, JOB_FILE, SIZE
from trueup.artifacts import Artifacts
from trueup.artifacts.store import MemoryStore
from trueup.clock import SystemClock
from trueup.ledger import Ledger, Owner
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.expressions import encode, encode_key
from trueup.ledger.keys import partition as partition_key
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Table, Write
from trueup.local.aws import client, ministack
from trueup.local.stores import create_ledger_table
from trueup.model.ledger import Run, TaskItem
from trueup.model.request import Request
from trueup.model.states import PartitionStatus, Phase
from trueup.starting import Code, Starter
from trueup.watching import Watch

PARTITIONS = 100_000
TASKS = 16
LOOKS = 11
MOST_MILLISECONDS = 300
NAME = "trueup-bench-status"
_BATCH = 25

Fill = Callable[[Run, Sequence[str]], None]


def measure(partitions: int = PARTITIONS) -> Iterator[Figure]:
    """In memory and on MiniStack; S3 is in memory in both."""
    yield in_memory(partitions)
    with ministack(["dynamodb"]) as endpoint:
        dynamodb = client("dynamodb", endpoint)
        create_ledger_table(dynamodb, NAME)
        yield _figure("on MiniStack", DynamoTable(dynamodb, NAME), _in_batches(dynamodb), partitions)


def in_memory(partitions: int) -> Figure:
    """On the table that tests use."""
    memory = MemoryTable()
    return _figure("in memory", memory, _one_by_one(memory), partitions)


def _figure(where: str, table: Table, fill: Fill, partitions: int) -> Figure:
    clock = SystemClock()
    ledger, artifacts = Ledger(table, clock), Artifacts(MemoryStore())
    run = _started(ledger, artifacts, clock, partitions)
    ids = [f"id={low}-{low + SIZE - 1}" for low in range(0, partitions * SIZE, SIZE)]
    fill(run, ids[TASKS:])
    for number, partition_id in enumerate(ids[:TASKS]):
        _work(ledger, run, number, partition_id)
    watch = Watch(ledger, artifacts, clock)
    assert len(watch.status(run.run_id).tasks) == TASKS
    took = middle([seconds(lambda: watch.status(run.run_id)) for _ in range(LOOKS)]) * 1000
    bare = middle([seconds(lambda: ledger.runs.get(run.run_id)) for _ in range(LOOKS)]) * 1000
    return Figure(
        f"status {where}",
        rounded(took),
        "ms",
        f"one read of the run {where}",
        rounded(bare),
        bar=f"< {MOST_MILLISECONDS}",
        met=took < MOST_MILLISECONDS,
    )


def _started(ledger: Ledger, artifacts: Artifacts, clock: SystemClock, partitions: int) -> Run:
    """A run over so many partitions, planned."""
    request = Request(
        job=JOB_FILE.name, request_id="bench", requester="bench", start="0", end=str(partitions * SIZE)
    )
    run, _ = Starter(ledger, artifacts, clock, random.Random(0)).start(JOB_FILE, request, Code(CODE, CODE))
    return run


def _work(ledger: Ledger, run: Run, number: int, partition_id: str) -> None:
    """A task that registered and took a partition."""
    now = SystemClock().now()
    launch = ledger.runs.next_launch(run.run_id, run.generation)
    owner = Owner(run.run_id, Phase.APPLY, launch, f"arn:aws:ecs:eu-west-1:000000000000:task/bench/{launch}")
    task = TaskItem(
        phase=Phase.APPLY,
        slice_id=number,
        launch=launch,
        generation=run.generation,
        task=owner.task,
        registered_at=now,
        beat_at=now,
        partition=partition_id,
        work_left=1.0,
    )
    ledger.tasks.register(run.run_id, task)
    ledger.partitions.take(owner, partition_id, 1.0)


def _one_by_one(table: MemoryTable) -> Fill:
    def fill(run: Run, ids: Sequence[str]) -> None:
        for one in ids:
            table.write(Write(partition_key(run.run_id, Phase.APPLY, one), item=_ended(one)))

    return fill


def _in_batches(dynamodb: Any) -> Fill:
    def fill(run: Run, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _BATCH):
            puts = [_put(run, one) for one in ids[start : start + _BATCH]]
            dynamodb.batch_write_item(RequestItems={NAME: puts})

    return fill


def _put(run: Run, partition_id: str) -> dict[str, Any]:
    key = encode_key(partition_key(run.run_id, Phase.APPLY, partition_id))
    return {"PutRequest": {"Item": {**encode(_ended(partition_id)), **key}}}


def _ended(partition_id: str) -> dict[str, Any]:
    accepted = PartitionStatus.ACCEPTED.value
    return {"partitionId": partition_id, "status": accepted, "cursor": "v1:end", "seq": 3}
