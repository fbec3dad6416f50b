"""Every error that trueup raises, as one tree.

TrueupError                     what happened, to which thing, and what to do now
├── UsageError                  the person's input is wrong; nothing was created (exit 2)
│   ├── JobFileError            a job file: names the line
│   └── RequestError            a request: names the field
├── NotFound                    there is no such run, partition or report (exit 2)
├── Refused                     the ledger said no; carries the clause and both sides
│   ├── RunClosed               the run is not open for this generation
│   ├── LostOwnership           another task took the partition
│   ├── NotTakable              the partition is finished, or was taken by a later launch
│   ├── LaunchTaken             another task registered for this launch
│   ├── LockHeld                another run holds an overlapping window of the target
│   ├── Stale                   the item changed between reading and writing
│   └── GateRefused             an approval, or what would go on by it, was refused
│       ├── NotAnApprover       the job lists other roles
│       ├── OwnRequest          approver and requester are one
│       ├── OtherSubject        the hash is of something else than what waits
│       ├── OtherRun            it was given for another run
│       ├── AlreadyDecided      somebody decided before, or it does not wait any more
│       ├── ApprovalExpired     it comes too late
│       ├── NotApproved         nobody approved it
│       └── NotOnTrail          the audit trail knows of no such approval
├── StoreUnavailable            DynamoDB or S3 did not answer; nothing is known of the write
├── ArtifactError
│   ├── ArtifactExists          written once already, with other content
│   └── ArtifactMissing
├── SourceError                 a source of a reconciliation could not be read as it was declared
├── JobError                    the author's code broke a rule of the job API
│   ├── Throttled               raised by authors: the sink asks to slow down
│   ├── Transient               raised by authors: worth trying again inside the task
│   └── Superseded              raised by sinks: a higher fence was there
└── LocalStackError             something on the laptop did not start
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TrueupError(Exception):
    """Something went wrong that a person can act on.

    `what` says what happened to which thing; `remedy` says what to do now.
    """

    def __init__(self, what: str, *, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class UsageError(TrueupError):
    """The input is wrong and nothing was created; the command line exits with 2."""


class JobFileError(UsageError):
    """A job file cannot be used; `file` and `line` (from 1) say where."""

    def __init__(
        self, what: str, *, remedy: str = "", file: str = "job.yaml", line: int | None = None
    ) -> None:
        super().__init__(what, remedy=remedy)
        self.file = file
        self.line = line

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {super().__str__()}"


class RequestError(UsageError):
    """A request cannot become a run; `field` names the part that is wrong."""

    def __init__(self, what: str, *, remedy: str = "", field: str = "") -> None:
        super().__init__(what, remedy=remedy)
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {super().__str__()}" if self.field else super().__str__()


class NotFound(TrueupError):
    """There is no thing of that name; the command line exits with 2."""


class Refused(TrueupError):
    """The ledger refused a conditional write.

    `clause` is the name of the condition that did not hold, `wanted` what it asked for,
    `found` the item as it stood (None where there was none).
    """

    def __init__(
        self,
        what: str,
        *,
        clause: str = "",
        wanted: object = None,
        found: Mapping[str, Any] | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(what, remedy=remedy)
        self.clause = clause
        self.wanted = wanted
        self.found = found


class RunClosed(Refused):
    """The run is not open for this generation: leave."""


class LostOwnership(Refused):
    """Another task holds the partition now: stop, and write nothing more."""


class NotTakable(Refused):
    """The partition cannot be taken: finished, or a later launch has it."""


class LaunchTaken(Refused):
    """Another task registered for this launch first: leave."""


class LockHeld(Refused):
    """Another run holds a window of the target that overlaps; `found` is the lock with its holders."""


class Stale(Refused):
    """The item changed between reading and writing: read again and decide again."""


class GateRefused(Refused):
    """An approval, or what would go on by it, was refused."""


class NotAnApprover(GateRefused):
    """The caller has none of the roles that the job lists."""


class OwnRequest(GateRefused):
    """Whoever asked for a run does not approve it."""


class OtherSubject(GateRefused):
    """The hash is of something else than what is asked about."""


class OtherRun(GateRefused):
    """The approval was given for another run."""


class AlreadyDecided(GateRefused):
    """The gate was decided before, or does not wait any more: an approval serves once."""


class ApprovalExpired(GateRefused):
    """The gate's time is over: nothing is decided, and nothing begins, after it."""


class NotApproved(GateRefused):
    """Nobody approved what would begin."""


class NotOnTrail(GateRefused):
    """The ledger tells of a person's word, and the audit trail does not: it was tampered with."""


class StoreUnavailable(TrueupError):
    """DynamoDB or S3 did not answer after retries: whether the write happened is unknown."""


class ArtifactError(TrueupError):
    """An object in the artifact store is not as it must be."""


class ArtifactExists(ArtifactError):
    """The key holds other content already, and artifacts are written once."""


class ArtifactMissing(ArtifactError):
    """There is no object at the key."""


class SourceError(TrueupError):
    """A source of a reconciliation cannot be read as it was declared: whether it agrees is unknown."""


class JobError(TrueupError):
    """The author's code broke a rule of the job API."""


# Longer than this nobody waits inside a task, which is paid for by the second.
LONGEST_RETRY_AFTER = 300.0


class Throttled(JobError):
    """Raised by a job whose sink or source asks to slow down.

    `retry_after` is in seconds, of which 0 to 300 count: it often comes from the other side, as it is.
    Tried again inside the task; exhausted, it interrupts the task, which costs nothing that is meant for
    faults.
    """

    def __init__(self, what: str = "The other side asks to slow down.", *, retry_after: float = 1.0) -> None:
        super().__init__(what)
        # In this order: what is no number compares as false, and so becomes 0.
        self.retry_after = min(LONGEST_RETRY_AFTER, max(0.0, retry_after))


class Transient(JobError):
    """Raised by a job for an error worth trying again; exhausted, it counts as a fault."""

    def __init__(self, what: str = "A passing error.") -> None:
        super().__init__(what)


class Superseded(JobError):
    """Raised by a sink that meets a higher fence: a newer task owns the target, so this one must stop."""

    def __init__(self, what: str, *, ours: int = 0, theirs: int = 0) -> None:
        super().__init__(what, remedy="This task stops; the newer one goes on.")
        self.ours = ours
        self.theirs = theirs


class LocalStackError(TrueupError):
    """A part of the local stack did not start or did not answer."""
