"""What a job author subclasses, returns and raises (design, section 7)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel

from trueup.errors import JobError, Superseded, Throttled, Transient
from trueup.model.plan import Partition, Window
from trueup.model.result import Output
from trueup.model.states import Phase

__all__ = [
    "Backfill",
    "Batch",
    "Context",
    "Outcome",
    "Output",
    "Partition",
    "Range",
    "RangeOutcome",
    "Reconcile",
    "Reject",
    "Settings",
    "Skip",
    "Superseded",
    "Throttled",
    "Transient",
    "Window",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are worked together, and the cursor after the last of them.

    The cursor begins with its version, `v1:...`, and is opaque to everyone else.
    """

    records: Sequence[Any]
    cursor: str


@dataclass(frozen=True, slots=True)
class Range:
    """A batch that the target works by itself (set-based SQL): no records pass through the task.

    `low` is included, `high` is not. Where they can be compared, the ranges of a partition may not overlap
    and go one way, up or down.
    """

    low: Any
    high: Any
    cursor: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Returned by `transform`: this record is left out, for a reason that the report counts."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Returned by `transform`: this record is bad.

    It goes to the rejects object and counts against `errors`.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the rows of one `write`: each is written, unchanged or refused (with its reason)."""

    written: int = 0
    unchanged: int = 0
    refused: Sequence[tuple[Any, str]] = ()

    def plus(self, other: Outcome) -> Outcome:
        """The sum of two outcomes."""
        refused = (*self.refused, *other.refused)
        return Outcome(self.written + other.written, self.unchanged + other.unchanged, refused)


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What became of a range, in records. Used and produced follow from it."""

    read: int
    written: int = 0
    unchanged: int = 0
    refused: int = 0
    rejected: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What `write` may know: whose write it is. `fence` grows with every newer owner of the partition."""

    run_id: str
    phase: Phase
    partition: Partition
    launch: int
    fence: int

    def key(self, record: Any, *more: Any) -> str:
        """An idempotency key of a record: the same for every attempt in this run, 64 hexadecimal digits.

        Two equal records of a partition share it; pass what tells them apart as `more`.
        """
        text = json.dumps([self.run_id, self.partition.id, record, *more], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def environment_secret(name: str) -> str:
    """The secret that ECS put into the environment as SECRET_<NAME>. Raises JobError where it did not."""
    variable = f"SECRET_{name.upper().replace('-', '_')}"
    try:
        return os.environ[variable]
    except KeyError:
        raise JobError(
            f"Secret {name!r} is not there: {variable} is not set.",
            remedy="Declare it in job.yaml under `secrets`, for the mode in which the task runs.",
        ) from None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a job is built with: parameters, secrets by name, and the batch size that is wanted now."""

    params: Mapping[str, Any] = field(default_factory=dict)
    secret: Callable[[str], str] = environment_secret
    batch_size: Callable[[], int] = lambda: 1000


class Backfill:
    """Subclass it, and write `read` and `write`. The runner owns everything else.

    `params` is the dictionary that the job file's schema validated, or a `Params` of your own (a pydantic
    model).
    """

    Params: ClassVar[type[BaseModel] | None] = None

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        given = dict(self._settings.params)
        self.params: Any = self.Params.model_validate(given) if self.Params else given

    @property
    def batch_size(self) -> int:
        """How many records the next batch should have: the job file's, less where batches took too long."""
        return self._settings.batch_size()

    def secret(self, name: str) -> str:
        """A secret by its name in the job file. Raises JobError where the mode does not have it."""
        return self._settings.secret(name)

    def open(self) -> None:
        """Called once per task, before anything is read: make clients here."""

    def close(self) -> None:
        """Called once per task on the way out, also after an error: give connections back here."""

    def partitions(self, window: Window) -> Iterable[Partition | str]:
        """Name the partitions of a window; used where the job file says `by: job`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no partitions(window), but its job file says `by: job`"
        )

    def count(self, part: Partition) -> int | None:
        """How many records the partition has, found without `read`. None: not known."""
        return None

    def read(self, part: Partition, after: str | None) -> Iterator[Batch | Range]:
        """Yield the records after a cursor (None: from the start), in an order that is always the same.

        After its own end cursor it yields nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} has no read(part, after)")

    def transform(self, record: Any) -> Any:
        """One record to one row, a list of rows, Skip or Reject. Pure. By default the record itself."""
        return record

    def combine(self, rows: list[Any]) -> Sequence[Any]:
        """The rows of one batch to those that are written. Pure; many in, few out. By default as they are."""
        return rows

    def raise_fence(self, part: Partition, ctx: Context) -> None:
        """Guard `transaction`: raise the partition's fence row in the target. Called right after the take."""

    def write(self, rows: Any, ctx: Context) -> Outcome | RangeOutcome:
        """Put rows (or a Range) into the target; idempotent. Says what became of every one of them."""
        raise NotImplementedError(f"{type(self).__name__} has no write(rows, ctx)")

    def finish(self, part: Partition, ctx: Context) -> Sequence[Output]:
        """Called when a partition is through, before it is reported: name the objects that were written.

        Nothing fences an object, so put `ctx.launch` into its name: a task that should be dead then cannot
        overwrite what a newer one reported.
        """
        return ()


class Reconcile:
    """Subclass it where the job file alone cannot say what is compared; every hook is optional.

    `params` is the dictionary that the job file's schema validated.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self.params: Any = dict(self._settings.params)

    def secret(self, name: str) -> str:
        """A secret by its name in the job file. Raises JobError where the mode does not have it."""
        return self._settings.secret(name)

    def normalise(self, side: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row of a side ("truth" or "target") as its source has it, to what the job file's columns name.

        Pure; a row that it fails on cannot be compared. Rows of PostgreSQL are not handed here: name a view.
        """
        return row

    def fold(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The events of one key, in order, to the values that the target must have; instead of `figures`.

        Numbers are int or Decimal, NULL is None, what is absent is not there; everything else is text.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fold(rows)")

    def repair_one(self, item: Mapping[str, Any], expected: Mapping[str, Any] | None) -> Outcome:
        """Repair one row by a write path of your own, instead of trueup's conditional write.

        `item` has `key`, `action` ("insert", "update", "delete") and `values`, what the row should be, None
        where it should not be there; `expected` is the row as the report found it and as it was a moment ago.
        Written, unchanged (the row is not as expected: nothing was done), or refused with the reason.
        Called again after a crash; both sides are read before it, and the target after it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no repair_one(item, expected)")


def overrides(job: Backfill | Reconcile, hook: str) -> bool:
    """Whether the author wrote this hook, rather than leaving the default."""
    default = Reconcile if isinstance(job, Reconcile) else Backfill
    return getattr(type(job), hook) is not getattr(default, hook)
