"""What the ledger remembers, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Name, Sha256, Value
from trueup.model.counters import Counters
from trueup.model.job import Guard, Limits
from trueup.model.plan import Window
from trueup.model.request import Request
from trueup.model.result import PartitionError, PartitionResult
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.model.verification import VerifiedBy

CANARY_GATE = "canary"
"""The gate between the canary and the rest."""


class Run(Value):
    """One request to do a job. It outlives the executions that serve it.

    What the plan says (key, hash, number of partitions) is empty until there is one. `execution` is the name
    of the execution that serves the run now, and `execution_input` what it is started with, every time.
    `open_seconds` is how long it was open before it was last closed, `opened_at` since when it is open again.
    `canary`: so many partitions are applied before the rest is asked for. `waits_at` names the gate at which
    it waits for a person, and `passed` those that it passed, each with the SHA-256 that was approved.
    `repairs`: a reconciliation that goes on to repair what is approved; `undoes` names the run whose repairs
    are taken back, and `undone_by` the runs that were asked to take back its own, the first of them first.
    `verification` is there where a backfill is verified once everything was applied; `verifies` names the
    backfill that a reconciliation was started by.
    """

    run_id: str
    job: Name
    kind: Literal["backfill", "reconcile"] = "backfill"
    request_id: str
    requester: str
    created_at: Instant
    opened_at: Instant | None = None
    open_seconds: Count = 0
    status: RunStatus = RunStatus.RUNNING
    goal: RunStatus | None = None
    reason: str | None = None
    generation: int = 1
    launches: Count = 0
    dispatches: Count = 0
    epoch: Count = 0
    plan_key: str = ""
    plan_sha256: Sha256 | Literal[""] = ""
    partitions: Count = 0
    dry_run: bool = False
    canary: Count = 0
    waits_at: str | None = None
    passed: dict[str, Sha256] = Field(default_factory=dict)
    repairs: bool = False
    undoes: str | None = None
    undone_by: tuple[str, ...] = ()
    verification: VerifiedBy | None = None
    verifies: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    window: Window
    target: str
    guard: Guard
    limits: Limits = Field(default_factory=Limits)
    request: Request | None = None
    execution: str | None = None
    execution_input: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_planned(self) -> bool:
        """Whether its plan is pinned, so that something can be worked."""
        return bool(self.plan_sha256)

    @property
    def is_unverified(self) -> bool:
        """Whether it has to wait for a verdict before it can have succeeded."""
        return self.verification is not None and self.verification.verdict is None

    @property
    def sample(self) -> int | None:
        """How many partitions are rehearsed, where it is not all of them."""
        return self.request.sample if self.request else None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Its phases, in order.

        Of a backfill: a dry run only rehearses, a sample is rehearsed first. A reconciliation compares, and
        looks again after the lag; it may go on to repair, and look at what it touched.
        """
        if self.undoes:
            return (Phase.REPAIR, Phase.VERIFY)
        if self.kind == "reconcile":
            found = (Phase.COMPARE, Phase.CONFIRM)
            return (*found, Phase.REPAIR, Phase.VERIFY) if self.repairs else found
        if self.dry_run:
            return (Phase.REHEARSE,)
        return (Phase.REHEARSE, Phase.APPLY) if self.sample else (Phase.APPLY,)

    def open_for(self, now: datetime) -> float:
        """The seconds that the run has been open by now, without the time in which it waited for a person."""
        if self.status is not RunStatus.RUNNING or self.waits_at:
            return self.open_seconds
        return self.open_seconds + max(0.0, (now - (self.opened_at or self.created_at)).total_seconds())

    def expected(self, phase: Phase) -> int:
        """How many partitions have to end before a phase is complete."""
        if phase is Phase.REHEARSE and self.sample:
            return min(self.sample, self.partitions)
        return self.partitions

    def to_be_worked(self, phase: Phase) -> int:
        """How many partitions, from the first of the plan, may be worked now: the canary's, or all."""
        return self.canary if self.is_canary(phase) else self.expected(phase)

    def is_canary(self, phase: Phase) -> bool:
        """Whether a phase is still bounded to the canary. One of all partitions leaves nothing to ask."""
        return phase is Phase.APPLY and 0 < self.canary < self.partitions and CANARY_GATE not in self.passed


class PartitionItem(Value):
    """How far one partition got. Absent from the ledger reads as this with status PENDING.

    `work` is the plan's estimate of its work, in milliseconds, once a task took it.
    """

    partition_id: str
    status: PartitionStatus = PartitionStatus.PENDING
    cursor: str | None = None
    seq: Count = 0
    launch: Count = 0
    task: str | None = None
    fence: Count = 0
    counters: Counters = Field(default_factory=Counters)
    skipped: dict[str, int] = Field(default_factory=dict)
    replayed: Count = 0
    takes: Count = 0
    idle: Count = 0
    took_over: bool = False
    forgiven: Count = 0
    faults: Count = 0
    faulted: Count = 0
    work: Count = 0
    reject_parts: tuple[str, ...] = ()
    entry: PartitionResult | None = None
    error: PartitionError | None = None
    reason: str | None = None
    taken_at: Instant | None = None
    updated_at: Instant | None = None

    @property
    def may_have_written(self) -> bool:
        """Whether a repair of it changed anything: a task that died may have done all that it intended."""
        is_told = self.status is PartitionStatus.ACCEPTED
        return bool(self.counters.written or (self.reject_parts and not is_told))


class Checkpoint(Value):
    """What an advance writes: cursor and counters, absolute, in one conditional write."""

    cursor: str | None
    counters: Counters
    skipped: dict[str, int] = Field(default_factory=dict)
    replayed: Count = 0
    reject_parts: tuple[str, ...] = ()


class TaskItem(Value):
    """A task from registering until it is proved stopped.

    `dispatch` is the one that it was launched for, and `launched_at` when the state machine asked for it,
    where one did. `records` it read and partitions it `reported` itself; their work, and what is left of its
    slice, are the plan's estimates in seconds.
    `throttled` is how often a sink or source asked it to slow down.
    """

    phase: Phase
    slice_id: Count
    launch: int
    generation: int
    dispatch: Count | None = None
    task: str
    registered_at: Instant
    beat_at: Instant
    partition: str | None = None
    records_per_second: float = 0.0
    waiting: str | None = None
    launched_at: Instant | None = None
    records: Count = 0
    reported: Count = 0
    work_reported: float = 0.0
    work_left: float = 0.0
    throttled: Count = 0

    @property
    def is_through(self) -> bool:
        """Whether it said to have worked all of its slice."""
        return self.reported > 0 and not self.work_left


class LaunchLife(Value):
    """What is left of a launch when it is over: when it lived, what it met, how it ended.

    `beat_at` is the last sign of life. Without a task where none registered, without an end where nobody
    judged it.
    """

    launch: Count
    phase: Phase | None = None
    slice_id: Count | None = None
    task: str | None = None
    launched_at: Instant | None = None
    registered_at: Instant | None = None
    beat_at: Instant | None = None
    stopped_at: Instant | None = None
    throttled: Count = 0
    how: str | None = None
    answer: str | None = None


class Holder(Value):
    """A run that holds a window of a target."""

    run_id: str
    window: Window
    epoch: int


class Lock(Value):
    """All writers of one target with their windows. Never deleted, so that the epoch never repeats."""

    target: str
    epoch: Count = 0
    version: Count = 0
    holders: dict[str, Holder] = Field(default_factory=dict)


class Tally(Value):
    """Partitions in one end state, with their records, and their work as the plan estimated it (ms)."""

    partitions: int = 0
    records: Counters = Field(default_factory=Counters)
    replayed: int = 0
    work: int = 0

    def plus(self, other: Tally) -> Tally:
        """The sum."""
        return Tally(
            partitions=self.partitions + other.partitions,
            records=self.records.plus(other.records),
            replayed=self.replayed + other.replayed,
            work=self.work + other.work,
        )


class LaunchTimes(Value):
    """What the tasks of a run that were proved stopped took beside their work; times in milliseconds.

    `stopped` is how many they are. Of these, `ended` worked all of their slice: `ending` is from the last
    word of each to the proof. Of `started` it is known when they were launched: `starting` is from there
    until each registered.
    """

    stopped: int = 0
    ended: int = 0
    ending: int = 0
    started: int = 0
    starting: int = 0


class Counts(Value):
    """Partitions by end state and their records, summed over the shards.

    `task_seconds`: from registering until proved stopped, of all tasks of the run that are; whole seconds.
    `launches` says what those took beside their work.
    `reported`: partitions that such tasks said to have reported and nobody judged yet, with their work in
    milliseconds. By their heartbeats, so below 0 where tasks died between two.
    """

    by_state: dict[PartitionStatus, Tally] = Field(default_factory=dict)
    task_seconds: int = 0
    launches: LaunchTimes = Field(default_factory=LaunchTimes)
    reported: int = 0
    reported_work: int = 0

    @property
    def is_begun(self) -> bool:
        """Whether anything ended, or was reported."""
        return bool(self.by_state or self.reported)

    @classmethod
    def together(cls, parts: Iterable[Counts]) -> Counts:
        """The sum of several phases."""
        sums: dict[PartitionStatus, Tally] = {}
        for one in parts:
            for status, tally in one.by_state.items():
                sums[status] = sums.get(status, Tally()).plus(tally)
        return cls(by_state=sums)

    def tally(self, *states: PartitionStatus) -> Tally:
        """The sum over some end states; over all where none is named."""
        total = Tally()
        for one in [self.by_state[state] for state in states or self.by_state if state in self.by_state]:
            total = total.plus(one)
        return total


class AuditEntry(Value):
    """One verb: who, what, why, before and after."""

    at: Instant
    who: str
    verb: str
    subject: str
    why: str = ""
    before: Any = None
    after: Any = None
