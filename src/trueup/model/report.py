"""The report of a run: made once when it ends, kept with it, read by people and programs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.counters import Counters
from trueup.model.job import Guard
from trueup.model.plan import CodeIdentity
from trueup.model.result import PartitionError
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.model.verification import VerifiedBy
from trueup.model.view import Spending


class Cell(Value):
    """One square of the heat map: a partition, or several that follow each other.

    `status` is the one that matters most among them; `day` is the date where the partitions are days.
    """

    first: str
    last: str
    partitions: Count
    status: PartitionStatus
    day: str | None = None


class StateLine(Value):
    """The partitions that ended in one state, and their records."""

    status: PartitionStatus
    partitions: Count
    records: Counters
    replayed: Count


class Reason(Value):
    """So many records for one reason."""

    reason: str
    records: Count


class LaunchLine(Value):
    """One launch on the time line.

    Launched when the state machine asked for a task, registered when that began to work, ended at its last
    sign of life; `how` it ended and what was decided then (`answer`). Without instants that nobody recorded.
    """

    launch: Count
    phase: Phase | None = None
    slice_id: Count | None = None
    launched_at: Instant | None = None
    registered_at: Instant | None = None
    ended_at: Instant | None = None
    throttled: Count = 0
    clean: bool
    how: str
    answer: str | None = None


class ColdStarts(Value):
    """Seconds from asking for a task until it registered, over the launches that told both."""

    launches: Count
    median_seconds: float
    longest_seconds: float


class Trouble(Value):
    """A partition that did not make it, or was given up."""

    partition_id: str
    status: PartitionStatus
    error: PartitionError | None = None
    reason: str | None = None


class Rejected(Value):
    """Rejects by reason, as far as they were read: `read_records` of `records`."""

    records: Count
    read_records: Count
    reasons: list[Reason]


class Report(Value):
    """What became of a run.

    Read = used + skipped + rejected, and produced = written + unchanged + refused, for every partition and
    for `records`, which is over all that ended. `replayed` bounds what was worked again after tasks died.
    `verification` is there where the job asks for one: a run that did not succeed was not verified.
    Lists that would be too long are cut, and say how many they left out.
    """

    schema_version: Literal[1] = 1
    run_id: str
    job: str
    status: RunStatus
    reason: str | None = None
    requester: str
    comment: str = ""
    window: str
    params: dict[str, Any] = Field(default_factory=dict)
    target: str
    guard: Guard
    dry_run: bool
    phase: Phase
    generation: int
    created_at: Instant
    ended_at: Instant
    open_seconds: Count
    plan_sha256: Sha256 | Literal[""]
    code: CodeIdentity | None = None
    partitions: Count
    states: list[StateLine]
    records: Counters
    replayed: Count
    skipped: list[Reason]
    rejected: Rejected
    heat_map: list[Cell]
    launches: Count
    unclean: Count
    throttled: Count
    cold_starts: ColdStarts | None = None
    time_line: list[LaunchLine]
    launches_left_out: Count = 0
    troubles: list[Trouble]
    troubles_left_out: Count = 0
    spending: Spending
    verification: VerifiedBy | None = None
