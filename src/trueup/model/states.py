"""States and the arrows between them. Code, tests and docs read these tables; there are no others."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class PartitionStatus(StrEnum):
    """Where a partition stands. Absent from the ledger means PENDING."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    INTERRUPTED = "INTERRUPTED"
    REPORTED = "REPORTED"
    ACCEPTED = "ACCEPTED"
    REFUSED = "REFUSED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"
    STUCK = "STUCK"
    SKIPPED = "SKIPPED"


class RunStatus(StrEnum):
    """Where a run stands. RUNNING is the only state in which it is open."""

    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"
    CANCELLED = "CANCELLED"


class GateStatus(StrEnum):
    """Where a gate stands. OPEN is the only state in which a person is asked."""

    OPEN = "OPEN"
    APPROVED = "APPROVED"
    SPENT = "SPENT"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    SUPERSEDED = "SUPERSEDED"
    WITHDRAWN = "WITHDRAWN"


class TaskStatus(StrEnum):
    """What a task says of itself in its result contract."""

    SUCCEEDED = "SUCCEEDED"
    INTERRUPTED = "INTERRUPTED"
    FAILED = "FAILED"


class ResultStatus(StrEnum):
    """What a task reports of one partition."""

    SUCCEEDED = "SUCCEEDED"
    INTERRUPTED = "INTERRUPTED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"


class Phase(StrEnum):
    """What tasks are for. Checkpoints, slices and artifacts are kept per phase; PLAN has none of them."""

    PLAN = "plan"
    REHEARSE = "rehearse"
    APPLY = "apply"
    COMPARE = "compare"
    CONFIRM = "confirm"
    REPAIR = "repair"
    VERIFY = "verify"


WRITING_PHASES = frozenset({Phase.APPLY, Phase.REPAIR})

_P = PartitionStatus

PARTITION_ARROWS: Mapping[tuple[PartitionStatus, PartitionStatus], str] = {
    (_P.PENDING, _P.RUNNING): "A task takes the partition for the first time.",
    (_P.RUNNING, _P.RUNNING): "A task with a higher launch takes over from one that died or froze.",
    (_P.RUNNING, _P.REPORTED): "The task says that it is done; nobody has checked yet.",
    (_P.RUNNING, _P.INTERRUPTED): "The task leaves early with its cursor saved.",
    (_P.INTERRUPTED, _P.RUNNING): "A later task goes on from the cursor.",
    (_P.REPORTED, _P.ACCEPTED): "The report passed the schema and every invariant.",
    (_P.REPORTED, _P.REFUSED): "The report broke an invariant.",
    (_P.REPORTED, _P.FAILED): "The task reported an error of the job's code or data.",
    (_P.REPORTED, _P.REJECTED): "More records were rejected than the job allows.",
    (_P.RUNNING, _P.STUCK): "Taken twice in a row without any progress.",
    (
        _P.RUNNING,
        _P.FAILED,
    ): "Its slice cannot be worked any more: the input is wrong, or launches end without progress.",
    (
        _P.PENDING,
        _P.FAILED,
    ): "It was never started: launches of its slice kept ending without progress.",
    (
        _P.INTERRUPTED,
        _P.FAILED,
    ): "It cannot go on: launches of its slice kept ending without progress.",
    (_P.REFUSED, _P.PENDING): "An operator retries from the start, counters at zero.",
    (_P.REJECTED, _P.PENDING): "An operator retries from the start, counters at zero.",
    (_P.FAILED, _P.PENDING): "An operator retries from the cursor.",
    (_P.STUCK, _P.PENDING): "An operator retries from the cursor.",
    (_P.REFUSED, _P.SKIPPED): "An operator gives it up, with a reason.",
    (_P.REJECTED, _P.SKIPPED): "An operator gives it up, with a reason.",
    (_P.FAILED, _P.SKIPPED): "An operator gives it up, with a reason.",
    (_P.STUCK, _P.SKIPPED): "An operator gives it up, with a reason.",
    (_P.PENDING, _P.SKIPPED): "An operator leaves it out, with a reason.",
    (_P.INTERRUPTED, _P.SKIPPED): "An operator leaves the rest out, with a reason.",
}

_R = RunStatus

RUN_ARROWS: Mapping[tuple[RunStatus, RunStatus], str] = {
    (_R.RUNNING, _R.STOPPING): "The run is closed to new tasks; its goal says what it becomes.",
    (_R.STOPPING, _R.SUCCEEDED): "No task is left; every partition is accepted or skipped.",
    (_R.STOPPING, _R.PAUSED): "No task is left; it can be resumed.",
    (_R.STOPPING, _R.FAILED): "No task is left; some partitions did not make it.",
    (
        _R.STOPPING,
        _R.ABORTED,
    ): "No task is left; an abort rule, a lost execution or a gate that expired ended it.",
    (
        _R.STOPPING,
        _R.CANCELLED,
    ): "No task is left; a person ended it, by a word or at a gate, or a newer report did.",
    (_R.PAUSED, _R.RUNNING): "A person resumes it under the next generation.",
}

_G = GateStatus

GATE_ARROWS: Mapping[tuple[GateStatus, GateStatus], str] = {
    (_G.OPEN, _G.OPEN): "It is asked again: by a later generation, or for what the plan is now.",
    (_G.OPEN, _G.APPROVED): "An approver who is not the requester named the hash, in time.",
    (_G.OPEN, _G.REJECTED): "An approver, or the requester, said no; the run ends CANCELLED.",
    (_G.OPEN, _G.EXPIRED): "Nobody decided in time; the run ends ABORTED.",
    (_G.OPEN, _G.SUPERSEDED): "A newer report of the same job is there; the run ends CANCELLED.",
    (_G.OPEN, _G.WITHDRAWN): "The run ended for another reason: there is nothing left to decide.",
    (_G.APPROVED, _G.SPENT): "A generation of the run opened what stands behind it, within its time.",
    (_G.APPROVED, _G.EXPIRED): "It was not used in time; the run ends ABORTED.",
    (_G.APPROVED, _G.WITHDRAWN): "The run ended before the approval was used.",
    (_G.APPROVED, _G.OPEN): "What was approved is not what would run now: it is asked anew.",
    (_G.SPENT, _G.OPEN): "The run was moved to another plan behind an open gate: it is asked anew.",
}

DECISIONS = frozenset({_G.APPROVED, _G.REJECTED})

RETRYABLE = frozenset({_P.REFUSED, _P.REJECTED, _P.FAILED, _P.STUCK})
RESTARTED = frozenset({_P.REFUSED, _P.REJECTED})
SKIPPABLE = RETRYABLE | {_P.PENDING, _P.INTERRUPTED}
TAKABLE = frozenset({_P.PENDING, _P.INTERRUPTED, _P.RUNNING})
UNFINISHED = frozenset({_P.PENDING, _P.INTERRUPTED, _P.RUNNING, _P.REPORTED})
END_STATES = frozenset(_P) - UNFINISHED
RUN_ENDS = frozenset({_R.SUCCEEDED, _R.FAILED, _R.ABORTED, _R.CANCELLED})


def may_become(before: PartitionStatus, after: PartitionStatus) -> bool:
    """Whether a partition may go from one state to another."""
    return (before, after) in PARTITION_ARROWS


def run_may_become(before: RunStatus, after: RunStatus) -> bool:
    """Whether a run may go from one state to another."""
    return (before, after) in RUN_ARROWS


def gate_may_become(before: GateStatus, after: GateStatus) -> bool:
    """Whether a gate may go from one state to another."""
    return (before, after) in GATE_ARROWS
