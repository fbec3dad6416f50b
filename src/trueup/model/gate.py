"""A gate: a point where a run waits for a person, and what that person decided."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from trueup.model.base import Count, Instant, Name, Sha256, Value
from trueup.model.counters import Counters
from trueup.model.result import Output
from trueup.model.states import GateStatus, PartitionStatus


class SubjectKind(StrEnum):
    """What an approval is about."""

    PLAN = "plan"
    CANARY = "canary"
    REPORT = "report"
    UNDO = "undo"


class Subject(Value):
    """What an approval names: an object of the run in S3, by its key there, and its SHA-256."""

    kind: SubjectKind
    key: Annotated[str, Field(min_length=1)]
    sha256: Sha256


class Asked(Value):
    """A gate as it is asked for: its name, its subject, whose word counts, and for how many hours.

    `roles` are the patterns of those who may approve; without any it is everybody but the requester.
    """

    name: Name
    subject: Subject
    roles: tuple[str, ...] = ()
    hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 24.0


class CanaryPartition(Value):
    """What one partition of a canary came to."""

    partition_id: str
    status: PartitionStatus
    records: Counters
    outputs: tuple[Output, ...] = ()


class Canary(Value):
    """What a canary wrote, as a person looks at it before the rest is written.

    `of` is how many partitions the plan has.
    """

    run_id: str
    plan_sha256: Sha256
    of: Count
    partitions: tuple[CanaryPartition, ...]


class Gate(Value):
    """One gate of a run. Approver and requester differ, an approval serves once, and both bounds are here.

    `generation` asked last, and `token` wakes its execution and decides nothing. `expires_at`: until then it
    can be decided, and an approval used; later generations go on under an approval that was used.
    """

    run_id: str
    name: Name
    job: Name
    status: GateStatus = GateStatus.OPEN
    kind: SubjectKind
    key: str
    sha256: Sha256
    roles: tuple[str, ...] = ()
    requester: str
    opened_at: Instant
    expires_at: Instant
    generation: Annotated[int, Field(ge=1)]
    token: str | None = None
    decided_by: str | None = None
    decided_at: Instant | None = None
    comment: str = ""
    spent_by: Count | None = None
    spent_at: Instant | None = None
    superseded_by: str | None = None

    @property
    def subject(self) -> Subject:
        """What an approval has to name."""
        return Subject(kind=self.kind, key=self.key, sha256=self.sha256)

    @property
    def is_waiting(self) -> bool:
        """Whether a person is asked."""
        return self.status is GateStatus.OPEN
