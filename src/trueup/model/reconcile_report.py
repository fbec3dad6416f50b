"""The report of a reconciliation: what a person signs. Its SHA-256 is what an approval names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.compared import Compared
from trueup.model.history import EarlierRun
from trueup.model.known import KnownLine
from trueup.model.plan import CodeIdentity
from trueup.model.reconcile import Side
from trueup.model.states import Phase

Verdict = Literal["CLEAN", "DRIFT", "INCOMPLETE", "ERROR"]


class Coverage(Value):
    """How many rows of a side were read, and how that is proved.

    Of `rows`, `proved` were in scans whose number the source counted by itself, in the same state. `resumed`
    partitions were scanned in several goes, of which only the last can be proved.
    """

    source: str
    rows: Count
    proved: Count
    resumed: Count = 0


class StateLine(Value):
    """So many candidates of a kind came to a state."""

    state: Literal["CONFIRMED", "KNOWN", "RESOLVED", "MOVING"]
    kind: str
    findings: Count


class FieldLine(Value):
    """So many of the findings that were read differ in a column for a reason."""

    name: str
    reason: str
    findings: Count


class ObjectList(Value):
    """The list of the objects that a partition left in a phase, each of which it names by its hash.

    `location` and `sha256` are of the list, `objects` and `lines` say how many it comes to. So a report has
    a line for each partition, whatever was found in it, and its own hash is one of everything below.
    """

    partition_id: str
    phase: Phase
    location: str
    sha256: Sha256
    objects: Count
    lines: Count

    @classmethod
    def of(cls, compared: Compared, location: str, digest: str) -> ObjectList:
        """The line of a list that lies there, under its hash."""
        return cls(
            partition_id=compared.partition_id,
            phase=compared.phase,
            location=location,
            sha256=digest,
            objects=len(compared.objects),
            lines=sum(one.lines for one in compared.objects),
        )


AGE_NAMES = ("new", "under 1 day", "1 to 7 days", "7 to 30 days", "30 to 90 days", "90 days and more")


class AgeLine(Value):
    """So many confirmed findings are that old."""

    age: str
    findings: Count


class Ages(Value):
    """Since when confirmed findings have been there: as told by the reports of earlier runs.

    `oldest`: since when the oldest has been there. `unread` says of which partitions the earlier findings
    could not be read: theirs are called new.
    """

    oldest: Instant | None = None
    lines: list[AgeLine] = Field(default_factory=list)
    earlier: list[EarlierRun] = Field(default_factory=list)
    unread: list[str] = Field(default_factory=list)


class ReconcileReport(Value):
    """What a reconciliation found.

    CLEAN: everything was compared, and nothing differs but what is known. DRIFT: everything was compared, and
    what differs was still so at a second look. INCOMPLETE: something could not be compared. ERROR: a side
    could not be read. `known` are the words by which differences are known, which are apart from all others.
    `counts` are exact, of all keys that were compared. `findings` are the first ones; all lie behind `lists`.
    """

    schema_version: Literal[1] = 1
    run_id: str
    job: str
    verdict: Verdict
    reasons: list[str]
    requester: str
    comment: str = ""
    invariant: str
    key: list[str]
    columns: list[str]
    lag: float
    version: str | None = None
    created_at: Instant
    as_of: Instant | None = None
    finished_at: Instant | None = None
    plan_sha256: Sha256 | Literal[""]
    code: CodeIdentity | None = None
    partitions: Count
    compared: Count
    confirmed: Count
    coverage: dict[Side, Coverage]
    counts: dict[str, Count]
    states: list[StateLine]
    ages: Ages = Field(default_factory=Ages)
    known: list[KnownLine] = Field(default_factory=list)
    findings_read: Count
    fields: list[FieldLine]
    findings: list[dict[str, Any]] = Field(default_factory=list)
    lists: list[ObjectList]
