"""Plans, partitions, slices and dispatches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field, ValidationError

from trueup.model.base import Count, Instant, Name, Sha256, Value, canonical, sha256
from trueup.model.history import EarlierRun
from trueup.model.jobs import AnyJob
from trueup.model.states import Phase

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Partition(Value):
    """The unit of progress. `low` is included, `high` is not; both are text in the key's own form."""

    partition_id: Annotated[str, Field(min_length=1, max_length=512)]
    low: str | None = None
    high: str | None = None
    input: str | None = None
    weight: Weight = 1.0

    @property
    def id(self) -> str:
        """The stable, readable id, such as `date=2013-01-05`."""
        return self.partition_id

    @property
    def label(self) -> str:
        """The id's value without its key: `2013-01-05`."""
        return self.partition_id.partition("=")[2] or self.partition_id


Bound = int | str | datetime


_NAMED = 3  # items of a window that an error names


class Window(Value):
    """What a run covers and a lock protects.

    `kind` date and key hold `low` (included) and `high` (not included); None is unbounded. Dates are local
    dates of `timezone`, or instants in UTC. `list` holds `items`. `all` covers everything; its `low` and
    `high` are only what the request said, for the job's own `partitions` hook.
    """

    kind: Literal["date", "key", "list", "all"]
    low: str | None = None
    high: str | None = None
    key_type: Literal["integer", "text"] | None = None
    timezone: str = "UTC"
    items: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As people read it: `2013-01-01 to 2014-01-01 (UTC)`, `a, b and 3 more`, `everything`."""
        if self.kind == "all" or (self.kind == "list" and not self.items):
            return "everything"
        if self.kind == "list":
            more = f" and {len(self.items) - _NAMED} more" if len(self.items) > _NAMED else ""
            return ", ".join(self.items[:_NAMED]) + more
        low, high = (bound or "the end" for bound in (self.low or "the beginning", self.high))
        return f"{low} to {high}" + (f" ({self.timezone})" if self.kind == "date" else "")

    def overlaps(self, other: Window) -> bool:
        """Whether the two may touch the same thing. Windows that cannot be compared do.

        Text is compared by code point, dates as instants, so that jobs in other units and time zones compare.
        """
        if self.kind != other.kind or self.kind == "all":
            return True
        if self.kind == "list":
            return not self.items or not other.items or not set(self.items).isdisjoint(other.items)
        if self.key_type != other.key_type:
            return True
        try:
            return self._reaches_into(other) and other._reaches_into(self)
        except (ValueError, TypeError, OverflowError, LookupError, OSError):
            return True

    def _reaches_into(self, other: Window) -> bool:
        """Whether this one begins before the other one ends."""
        if self.low is None or other.high is None:
            return True
        low, high = self._bound(self.low), other._bound(other.high)
        return low < high  # type: ignore[operator]  # the same type on both sides, or the TypeError says "overlap"

    def _bound(self, text: str) -> Bound:
        if self.kind == "date":
            return instant(text, self.timezone)
        return int(text) if self.key_type == "integer" else text


def instant(text: str, timezone: str) -> datetime:
    """A local date (its first instant), local time or instant with an offset, as an instant in UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(timezone))).astimezone(UTC)


class CodeIdentity(Value):
    """Which code runs: the task definition with its revision, and the image by digest."""

    task_definition: Annotated[str, Field(pattern=r":[0-9]+$")]
    image_digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ObjectRef(Value):
    """An immutable object in the artifact store."""

    key: Annotated[str, Field(min_length=1)]
    sha256: Sha256
    bytes: Count


class Plan(Value):
    """The immutable list of partitions of a run, with parameters and code identity. One per run.

    Of a reconciliation `earlier` are the runs that its findings get their ages from, of an undo those that
    took back the same before it; `known` is what was signed as known when it was planned.
    """

    schema_version: Literal[1] = 1
    run_id: Annotated[str, Field(min_length=1, max_length=80)]
    job: AnyJob
    params: dict[str, Any]
    window: Window
    dry_run: bool = False
    read_code: CodeIdentity
    write_code: CodeIdentity
    partitions: ObjectRef
    partition_count: Count
    total_weight: Weight
    created_at: Instant
    earlier: tuple[EarlierRun, ...] = ()
    known: ObjectRef | None = None

    def bytes(self) -> bytes:
        """What is stored and hashed."""
        return canonical(self.document())

    def sha256(self) -> str:
        """The hash that approvals, dispatches and contracts name."""
        return sha256(self.bytes())

    def code(self, phase: Phase) -> CodeIdentity:
        """The code that works a phase: the write identity only where something is written."""
        return self.write_code if phase in (Phase.APPLY, Phase.REPAIR) else self.read_code


class Slice(Value):
    """The partitions that one task works through in order: `length` bytes at `offset` of the object `key`.

    The bytes are JSON Lines, one Partition a line.
    """

    slice_id: Count
    key: Annotated[str, Field(min_length=1)]
    offset: Count
    length: Count
    partitions: Count
    weight: Weight


class Dispatch(Value):
    """The slices still to be worked, handed to one fan-out."""

    run_id: str
    phase: Phase
    number: Count
    plan_sha256: Sha256
    partitions: ObjectRef
    slices: list[Slice]

    @property
    def name(self) -> Name:
        """The dispatch's name within its run: `apply-1`."""
        return f"{self.phase.value}-{self.number}"

    @property
    def slices_key(self) -> str:
        """Where the slices are stored, for the Distributed Map's ItemReader."""
        return f"runs/{self.run_id}/{self.phase.value}/dispatch/{self.number}/slices.json"


class TaskOrder(Value):
    """What a task is told when it is launched. Ids and pointers only, so that it fits ECS overrides.

    `dispatch` is which of the run's it belongs to, and `launched_at` when the state machine asked for it,
    where one did.
    """

    run_id: str
    job: Name
    generation: Annotated[int, Field(ge=1)]
    phase: Phase
    launch: Annotated[int, Field(ge=1)]
    slice: Slice
    plan_key: str
    plan_sha256: Sha256
    dispatch: Count | None = None
    launched_at: Instant | None = None


class Addressee(Value):
    """Whose task it is, by its order: what orders of every kind have, whatever else they say."""

    model_config = ConfigDict(extra="ignore")

    run_id: str
    launch: Count
    job: str | None = None

    @classmethod
    def of(cls, order: str) -> Addressee | None:
        """Read it from an order's text; None where that is no order: people start tasks by hand."""
        try:
            return cls.model_validate_json(order)
        except ValidationError:
            return None
