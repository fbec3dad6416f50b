"""Judging the contract of a full slice, beside the JSON reader on the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.figures import Figure, middle, rounded, seconds
from trueup.contract import Facts, Standing, judge_document
from trueup.model.base import canonical
from trueup.model.counters import COUNTERS, Counters
from trueup.model.ledger import PartitionItem
from trueup.model.plan import CodeIdentity
from trueup.model.result import PartitionResult, ResultContract, record_counts
from trueup.model.states import PartitionStatus, Phase, ResultStatus, TaskStatus

PARTITIONS = 1_000
ROUNDS = 11

TASK = "arn:aws:ecs:eu-west-1:000000000000:task/bench/1"
CODE = CodeIdentity(
    task_definition="arn:aws:ecs:eu-west-1:000000000000:task-definition/bench:1",
    image_digest="sha256:" + "0" * 64,
)
COUNTED = Counters(read=720, used=716, skipped=3, rejected=1, produced=45, written=40, unchanged=4, refused=1)


def measure(partitions: int = PARTITIONS, rounds: int = ROUNDS) -> Iterator[Figure]:
    """The medians of so many rounds of each, in turns; `rounds` is odd."""
    entries = [entry(number) for number in range(partitions)]
    data, facts = document(entries), facts_of(entries)
    if judge_document(data, facts).standing is not Standing.GOOD:
        raise RuntimeError(f"the contract is not good: {judge_document(data, facts).refusals[:3]}")
    pairs = [
        (seconds(lambda: judge_document(data, facts)), seconds(lambda: json.loads(data)))
        for _ in range(rounds)
    ]
    judging, reading = (rounded(middle(times) * 1000) for times in zip(*pairs, strict=True))
    yield Figure("contract", judging, "ms", f"json.loads of the same {len(data):,} bytes", reading)


def entry(number: int) -> PartitionResult:
    """A partition with a bit of everything: skipped, rejected, refused."""
    return PartitionResult(
        partition_id=f"id={number}",
        fence=1,
        status=ResultStatus.SUCCEEDED,
        cursor="v1:end",
        records_counted=COUNTED.read,
        skipped={"cancelled": 2, "diverted": 1},
        rejects=rejects(number),
        **record_counts(COUNTED),
    )


def rejects(number: int) -> str:
    """Where a partition's rejects lie."""
    return f"s3://bench/rejects/{number}.jsonl"


def document(entries: list[PartitionResult]) -> bytes:
    """The contract, as a task stores it."""
    totals = {name: getattr(COUNTED, name) * len(entries) for name in COUNTERS}
    contract = ResultContract(
        job_id="bench",
        status=TaskStatus.SUCCEEDED,
        started_at="2026-07-06T01:00:00Z",
        finished_at="2026-07-06T01:04:12Z",
        launch=1,
        task_arn=TASK,
        task_definition=CODE.task_definition,
        image_digest=CODE.image_digest,
        partitions=entries,
        **_names(),
        **record_counts(Counters(**totals)),
    )
    return canonical(contract.document())


def facts_of(entries: list[PartitionResult]) -> Facts:
    """What the ledger and S3 say: the same."""
    return Facts(
        job="bench",
        launch=1,
        task=TASK,
        code=CODE,
        empty_allowed=False,
        reject_limit=5,
        dry_run=False,
        items={one.partition_id: _item(one) for one in entries},
        slice_partitions=frozenset(one.partition_id for one in entries),
        objects={rejects(number): "0" * 64 for number in range(len(entries))},
        **_names(),
    )


def _names() -> dict[str, Any]:
    return {
        "run_id": "bench-20260706T010000Z-abcd",
        "generation": 1,
        "phase": Phase.APPLY,
        "slice_id": 0,
        "plan_sha256": "a" * 64,
    }


def _item(reported: PartitionResult) -> PartitionItem:
    return PartitionItem(
        partition_id=reported.partition_id,
        status=PartitionStatus.REPORTED,
        cursor=reported.cursor,
        launch=1,
        task=TASK,
        fence=reported.fence,
        counters=COUNTED,
        skipped=reported.skipped,
        entry=reported,
    )
