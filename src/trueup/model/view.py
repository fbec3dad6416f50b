"""What people and programs are shown of runs. Made for each question, kept nowhere."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.counters import Counters
from trueup.model.gate import SubjectKind
from trueup.model.job import Guard
from trueup.model.ledger import AuditEntry
from trueup.model.request import Comment
from trueup.model.result import PartitionError
from trueup.model.states import GateStatus, PartitionStatus, Phase, RunStatus
from trueup.model.verification import VerifiedBy


class Fact(Value):
    """One line of what is being approved."""

    name: str
    value: str


class GateView(Value):
    """A gate as people see it: what is asked about, whose word counts, and what was decided."""

    run_id: str
    name: str
    job: str
    status: GateStatus
    kind: SubjectKind
    sha256: str
    location: str
    roles: tuple[str, ...]
    requester: str
    opened_at: Instant
    expires_at: Instant
    decided_by: str | None = None
    decided_at: Instant | None = None
    comment: str = ""
    spent_by: Count | None = None
    superseded_by: str | None = None
    facts: list[Fact] = Field(default_factory=list)


class GateList(Value):
    """Gates: of a run by name, or all that wait by run."""

    gates: list[GateView]


class GateWord(Value):
    """A person's word at a gate; whose it is says the signature, never the body."""

    sha256: Sha256
    comment: Comment = ""


class RunView(Value):
    """One run, as lists show it. `partitions` is None until the run is planned.

    `waits_at` names the gate at which it waits for a person, `undoes` the run whose repairs it takes back,
    `verifies` the backfill that a reconciliation was started by.
    """

    run_id: str
    job: str
    kind: Literal["backfill", "reconcile"] = "backfill"
    status: RunStatus
    goal: RunStatus | None = None
    reason: str | None = None
    requester: str
    created_at: Instant
    window: str
    dry_run: bool
    partitions: Count | None = None
    generation: int
    launches: Count
    target: str
    guard: Guard
    comment: str = ""
    waits_at: str | None = None
    undoes: str | None = None
    verifies: str | None = None


class Progress(Value):
    """How much of something is done; `share` is 0 to 1."""

    done: float
    total: float
    share: float


class TaskView(Value):
    """One task that is not proved stopped.

    `share` is how much of its partition is done, as far as records can tell; `waiting` is what holds it back,
    in the task's own words; `straggler` says why it should be looked at.
    """

    phase: Phase
    slice_id: Count
    launch: Count
    task: str
    registered_at: Instant
    beat_at: Instant
    partition: str | None = None
    share: float | None = None
    reported: Count = 0
    records_per_second: float = 0.0
    waiting: str | None = None
    straggler: str | None = None


class Eta(Value):
    """When the run will have ended: unknown (None) until enough was measured. `basis` says from what.

    Where other phases follow it is when the phase at work will have ended; `basis` says so.
    """

    seconds: int | None = None
    at: Instant | None = None
    basis: str


class Spending(Value):
    """Dollars so far, beside what was estimated when the run was planned."""

    dollars: float
    estimated: float | None = None
    basis: str


class RunDetail(Value):
    """How a run stands now.

    `waits_for` is what the run as a whole waits for, `gate` where for a person; `verdict` what a
    reconciliation came to, or the verification of a backfill that succeeded.
    """

    run: RunView
    phase: Phase
    partitions: Progress
    work: Progress
    by_state: dict[PartitionStatus, Count]
    records: Counters
    replayed: Count
    records_per_second: float
    eta: Eta
    tasks: list[TaskView]
    waits_for: str | None = None
    gate: GateView | None = None
    spending: Spending
    plan_sha256: str = ""
    verdict: str | None = None
    verification: VerifiedBy | None = None


class RunList(Value):
    """Some runs, the newest first. `next` asks for those after them."""

    runs: list[RunView]
    next: str | None = None


class PartitionView(Value):
    """One partition. PENDING ones are those that no task took yet.

    `input` is the location that it is worked from, where it has one, and `weight` the seconds of work that
    the plan estimated.
    """

    partition_id: str
    status: PartitionStatus
    input: str | None = None
    weight: float | None = None
    records: Counters = Field(default_factory=Counters)
    skipped: dict[str, Count] = Field(default_factory=dict)
    replayed: Count = 0
    launch: Count = 0
    task: str | None = None
    cursor: str | None = None
    updated_at: Instant | None = None
    error: PartitionError | None = None
    reason: str | None = None
    rejects: str | None = None


class PartitionList(Value):
    """Some partitions of a phase. `next` asks for those after them; a page may be short before the last."""

    phase: Phase
    partitions: list[PartitionView]
    next: str | None = None


class RejectView(Value):
    """One rejected record or refused row, as the task stored it."""

    partition_id: str
    reject: dict[str, Any]


class RejectList(Value):
    """Some rejects. `next` asks for those after them; a page may be short before the last."""

    rejects: list[RejectView]
    next: str | None = None


class AuditList(Value):
    """Some of a run's trail, oldest first."""

    entries: list[AuditEntry]
    next: str | None = None


class LogLine(Value):
    """One line of a task's log."""

    at: Instant
    message: str


class LogList(Value):
    """Some of the log of the task that worked a partition last, oldest first."""

    partition_id: str
    task: str
    lines: list[LogLine]
    next: str | None = None


class JobView(Value):
    """One job of the catalogue."""

    name: str
    kind: Literal["backfill", "reconcile"] = "backfill"
    description: str
    by: str
    target: str
    guard: Guard
    has_dry_run: bool
    parameters: dict[str, Any]


class JobList(Value):
    """The jobs that can be started."""

    jobs: list[JobView]


class Pending(Value):
    """What was asked for is not there yet; `location` is where to look meanwhile."""

    run_id: str
    status: RunStatus
    location: str


class Html(Value):
    """A page."""

    text: str


class Started(Value):
    """A run that was accepted; `location` is where to look."""

    run_id: str
    status: RunStatus
    execution: str | None = None
    location: str
