"""The evidence of a reconciliation: what was found, approved, done and seen later, under their hashes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.gate import Gate, SubjectKind
from trueup.model.plan import CodeIdentity
from trueup.model.states import GateStatus

EvidenceKind = Literal[
    "plan",
    "known differences",
    "report",
    "findings",
    "repair plan",
    "before-images and outcomes",
    "verification",
    "repair",
]


class EvidenceObject(Value):
    """An object of the run, and the SHA-256 that it had when the run ended."""

    kind: EvidenceKind
    location: str
    sha256: Sha256


class GateEvidence(Value):
    """What was asked at a gate, until when, and what was said. `spent_at`: when the run passed it."""

    name: str
    status: GateStatus
    kind: SubjectKind
    subject_sha256: Sha256
    requester: str
    roles: tuple[str, ...] = ()
    opened_at: Instant
    expires_at: Instant
    decided_by: str | None = None
    decided_at: Instant | None = None
    comment: str = ""
    spent_at: Instant | None = None

    @classmethod
    def of(cls, gate: Gate) -> GateEvidence:
        """What is kept of a gate: all but the token."""
        told = gate.model_dump(include=set(cls.model_fields))
        return cls(**told, subject_sha256=gate.sha256)


class MoreEvidence(Value):
    """A further part of a manifest: so many objects, each as a line of JSON, in an object of its own."""

    location: str
    sha256: Sha256
    objects: Count


class Evidence(Value):
    """The manifest of a run's evidence, made once when the run has ended. `tasks` are their ARNs.

    Those of `objects` that are too many for it are in the parts that `more` names by their hashes, in order.
    """

    schema_version: Literal[1] = 1
    run_id: str
    job: str
    status: str
    reason: str
    verdict: str | None = None
    undoes: str | None = None
    requester: str
    plan_sha256: Sha256 | Literal[""]
    read_code: CodeIdentity | None = None
    write_code: CodeIdentity | None = None
    gates: list[GateEvidence]
    tasks: list[str]
    objects: list[EvidenceObject]
    more: list[MoreEvidence] = Field(default_factory=list)


class CheckedEvidence(Value):
    """A page of a manifest with the SHA-256 of the whole, and those of its objects that were changed.

    `changed` says what is there instead. `next` is the mark of the page behind; None: there is none.
    """

    location: str
    sha256: Sha256
    manifest: Evidence
    changed: dict[str, str] = Field(default_factory=dict)
    next: str | None = None


class EvidencePart(Value):
    """Some bytes of the evidence, in Base64, from an offset on; `next` is the offset of those after them.

    `sha256` is that of all the bytes, which whoever puts them together holds them against.
    """

    sha256: Sha256
    data: str
    next: Count | None = None
