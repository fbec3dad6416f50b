"""The result contract: what a task leaves behind (design, section 5)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field

from trueup.model.base import Count, Instant, Name, Sha256, Value
from trueup.model.counters import COUNTERS, Counters
from trueup.model.states import Phase, ResultStatus, TaskStatus

Positive = Annotated[int, Field(ge=1, strict=True)]

# A DynamoDB item takes 400 KB, and a partition's holds its cursor, its reasons to skip and its error twice:
# as the checkpoint and as the entry that is judged. All of these at their longest still fit.
LONGEST_CURSOR = 4_096
LONGEST_KIND = 200
LONGEST_MESSAGE = 4_000
LONGEST_RECORD = 1_000
LONGEST_REASON = 200
MOST_REASONS = 100
MOST_OUTPUTS = 100
LONGEST_LOCATION = 1_200
LONGEST_WARNING = 1_000
MOST_WARNINGS = 100
LARGEST_CONTRACT = 4 * 2**20
"""Bytes of a whole document that are read, so that nobody can fill a handler's memory."""

Cursor = Annotated[str, Field(pattern=r"^v[0-9]+:", max_length=LONGEST_CURSOR)]
Reason = Annotated[str, Field(max_length=LONGEST_REASON)]
Location = Annotated[str, Field(min_length=1, max_length=LONGEST_LOCATION)]


class RecordCounts(Value):
    """The counters under the names that the contract gives them."""

    records_read: Count
    records_used: Count
    records_skipped: Count
    records_rejected: Count
    records_produced: Count
    records_written: Count
    records_unchanged: Count
    records_refused: Count

    def counters(self) -> Counters:
        """The same figures as Counters."""
        return Counters(**{name: getattr(self, f"records_{name}") for name in COUNTERS})


def record_counts(counters: Counters) -> dict[str, int]:
    """Counters as the keyword arguments of a RecordCounts."""
    return {f"records_{name}": getattr(counters, name) for name in COUNTERS}


class Output(Value):
    """An object that the job wrote for a partition: where, its SHA-256 and how many records."""

    location: Location
    sha256: Sha256
    records: Count


class PartitionError(Value):
    """Why a partition failed: what happened, and the record or range that it happened to."""

    kind: Annotated[str, Field(min_length=1, max_length=LONGEST_KIND)]
    message: Annotated[str, Field(max_length=LONGEST_MESSAGE)]
    record: Annotated[str, Field(max_length=LONGEST_RECORD)] | None = None
    batch_after: Annotated[str, Field(max_length=LONGEST_CURSOR)] | None = None


class PartitionResult(RecordCounts):
    """What a task reports of one partition."""

    partition_id: Annotated[str, Field(min_length=1, max_length=512)]
    fence: Annotated[int, Field(ge=1, strict=True)]
    status: ResultStatus
    cursor: Cursor | None
    records_counted: Count | None = None
    skipped: dict[Reason, Count] = Field(default_factory=dict, max_length=MOST_REASONS)
    rejects: Location | None = None
    outputs: list[Output] = Field(default_factory=list, max_length=MOST_OUTPUTS)
    error: PartitionError | None = None


class ResultContract(RecordCounts):
    """What a task leaves behind, stored once. The first block is what ECS jobs already report."""

    schema_version: Literal[1] = 1
    job_id: Name
    status: TaskStatus
    started_at: Instant
    finished_at: Instant
    output_location: Location | None = None
    warnings: list[Annotated[str, Field(max_length=LONGEST_WARNING)]] = Field(
        default_factory=list, max_length=MOST_WARNINGS
    )

    run_id: Annotated[str, Field(min_length=1, max_length=80)]
    generation: Positive
    phase: Phase
    slice_id: Count
    launch: Positive
    plan_sha256: Sha256
    task_arn: Location
    task_definition: Location
    image_digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    partitions: list[PartitionResult]

    @classmethod
    def totals(cls, partitions: list[PartitionResult]) -> Counters:
        """The sums over the partitions."""
        total = Counters()
        for entry in partitions:
            total = total.plus(entry.counters())
        return total

    @property
    def partition_ids(self) -> list[str]:
        """The partitions that this contract speaks of, in its order."""
        return [entry.partition_id for entry in self.partitions]

    def with_partitions(self, partitions: list[PartitionResult]) -> Self:
        """This contract with other partitions and the totals that follow from them."""
        totals = record_counts(self.totals(partitions))
        return self.model_copy(update={"partitions": partitions, **totals})
