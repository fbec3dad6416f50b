"""What `job.yaml` declares (design, section 7). `trueup.jobfile` reads it and names lines in its refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from trueup.model.base import Name, Value
from trueup.model.verification import ENDS, Verify

Positive = Annotated[int, Field(ge=1, le=2**53 - 1, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
KeyName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Guard(StrEnum):
    """What protects the target from a task that should be dead."""

    FENCE = "fence"
    TRANSACTION = "transaction"
    KEY = "key"
    NONE = "none"

    @property
    def cannot_prevent(self) -> str:
        """What this guard does not hold back; the plan and the gate print it."""
        return _CANNOT_PREVENT[self]


_CANNOT_PREVENT = {
    Guard.FENCE: "a late write of a row that the newer task has yet to write; it is overwritten then",
    Guard.TRANSACTION: "nothing inside the target; effects outside its transaction",
    Guard.KEY: "a second application by a target that forgets keys sooner than a task can freeze",
    Guard.NONE: "a task that should be dead writing over newer data",
}


class DatePartitions(Value):
    """One partition for each hour, day, week, month or year of the window, in a time zone.

    `seconds`, here and below: the work in one partition where neither `count` nor the job's history says.
    """

    by: Literal["date"]
    unit: Literal["hour", "day", "week", "month", "year"] = "day"
    timezone: str = "UTC"
    input: str | None = None
    empty: Literal["refused", "allowed"] = "refused"
    seconds: Seconds = 10.0


class KeyRangePartitions(Value):
    """Ranges of a key: integers in steps of `size`, or text cut at the `splits`."""

    by: Literal["key-range"]
    key: KeyName = "id"
    type: Literal["integer", "text"] = "integer"
    size: Positive | None = None
    splits: tuple[str, ...] = ()
    input: str | None = None
    empty: Literal["refused", "allowed"] = "allowed"
    seconds: Seconds = 10.0

    @model_validator(mode="after")
    def _one_way_to_cut(self) -> Self:
        if self.type == "integer" and (self.size is None or self.splits):
            raise ValueError("integer keys are cut by `size`: give `size`, and no `splits`")
        if self.type == "text" and self.size is not None:
            raise ValueError("text keys are cut at `splits`: give `splits`, and no `size`")
        if any(after <= before for before, after in pairwise(self.splits)):
            raise ValueError("the splits must ascend, by code point, and each be there once: sort them")
        return self


class ListPartitions(Value):
    """One partition for each item: of the job file, or of the request's keys."""

    by: Literal["list"]
    key: KeyName = "item"
    items: tuple[str, ...] = ()
    input: str | None = None
    empty: Literal["refused", "allowed"] = "refused"
    seconds: Seconds = 10.0

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        twice = [item for item, count in Counter(self.items).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is among the items twice: name each once")
        return self


class S3PrefixPartitions(Value):
    """One partition for each object under an S3 prefix; its size says how much work it is."""

    by: Literal["s3-prefix"]
    key: KeyName = "object"
    prefix: Annotated[str, Field(pattern=r"^s3://[^/]+/.*$")]
    suffix: str = ""
    empty: Literal["refused", "allowed"] = "refused"
    seconds: Seconds = 10.0


class JobPartitions(Value):
    """The job's own `partitions(window)` hook names them; it runs as a task under the read role."""

    by: Literal["job"]
    key: KeyName = "item"
    empty: Literal["refused", "allowed"] = "refused"
    seconds: Seconds = 10.0


Partitioning = Annotated[
    DatePartitions | KeyRangePartitions | ListPartitions | S3PrefixPartitions | JobPartitions,
    Field(discriminator="by"),
]


class Target(Value):
    """What the job writes, and what protects it from a task that should be dead."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    guard: Guard


class BatchSettings(Value):
    """How many records a batch should have, and how long one should and may take, in seconds."""

    size: Positive = 1000
    target_seconds: Seconds = 5.0
    maximum_seconds: Seconds = 20.0


class TaskSettings(Value):
    """The container: CPU units, memory in MiB, the minutes that a task should run, how it is awaited."""

    cpu: Literal[256, 512, 1024, 2048, 4096, 8192, 16384] = 256
    memory: Annotated[int, Field(ge=512, le=122880)] = 512
    minutes: Annotated[float, Field(gt=0, le=10080)] = 15.0
    wait: Literal["exit", "callback"] = "exit"
    stop_seconds: Annotated[int, Field(ge=2, le=120)] = 30
    no_progress_seconds: Seconds = 600.0


class Limits(Value):
    """How much of the world a run may use. Rates are the whole run's."""

    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 16
    records_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class ErrorSettings(Value):
    """How many records of a partition may be rejected, or refused by the sink, before it is REJECTED."""

    rejects: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0


class AbortRule(Value):
    """A bound on the whole run: when `of` exceeds `above` in its `unit`, the run drains and ends ABORTED.

    `minimum` is the sample below which a rule about partitions or records says nothing yet.
    """

    of: Literal["failedPartitions", "consecutiveFailures", "rejects", "dollars", "hours"]
    above: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    unit: Literal["count", "percent", "usd", "hours"] = "count"
    minimum: Annotated[int, Field(ge=1, le=2**53 - 1)] = 1


class Approval(Value):
    """Who has to agree before anything is written, and how long the agreement holds."""

    required: bool = False
    roles: tuple[str, ...] = ()
    expires_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 24.0
    canary: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0


class Secrets(Value):
    """Names of secrets by mode: what a rehearsal may know, and what a writing task may know."""

    read: dict[str, str] = Field(default_factory=dict)
    write: dict[str, str] = Field(default_factory=dict)


class Job(Value):
    """What every job file declares, whatever its kind."""

    name: Name
    description: str = ""
    job_class: str | None = Field(
        default=None, alias="class", pattern=r"^[A-Za-z0-9_.]+:[A-Za-z_][A-Za-z0-9_]*$"
    )
    parameters: dict[str, Any] = Field(default_factory=dict)
    secrets: Secrets = Field(default_factory=Secrets)
    order: Literal["heaviest", "oldest", "newest"] = "heaviest"
    task: TaskSettings = Field(default_factory=TaskSettings)
    limits: Limits = Field(default_factory=Limits)
    abort: tuple[AbortRule, ...] = ()
    approval: Approval = Field(default_factory=Approval)

    @property
    def has_dry_run(self) -> bool:
        """Whether a rehearsal can be had: not where the only secrets are ones that can write."""
        return not self.secrets.write or bool(self.secrets.read)

    @property
    def abort_rules(self) -> tuple[AbortRule, ...]:
        """The rules of every run: those declared, and a bound in hours where none is: every run ends."""
        bounded = any(rule.of == "hours" for rule in self.abort)
        return self.abort if bounded else (*self.abort, AbortRule(of="hours", above=MOST_HOURS, unit="hours"))

    @property
    def follows_failures(self) -> bool:
        """Whether some rule asks how many partitions failed in a row."""
        return any(rule.of == "consecutiveFailures" for rule in self.abort)


class JobFile(Job):
    """A backfill, as declared in `containers/<image>/job.yaml`."""

    kind: Literal["backfill"] = "backfill"
    command: tuple[str, ...] | None = None
    partitions: Partitioning
    target: Target
    batch: BatchSettings = Field(default_factory=BatchSettings)
    errors: ErrorSettings = Field(default_factory=ErrorSettings)
    verify: Verify | None = None

    @property
    def named_by_task(self) -> bool:
        """Whether a task names the partitions, by the job's own code."""
        return self.partitions.by == "job"

    @property
    def writes_to(self) -> Target:
        """What is locked before anything is written."""
        return self.target

    @model_validator(mode="after")
    def _rules_across_sections(self) -> Self:
        problems = [
            *entry_point_problems(self.job_class is not None, self.command is not None),
            *batch_problems(self.batch, self.task),
            *progress_problems(self.batch, self.task),
            *size_problems(self.task),
            *abort_problems(self.abort),
            *verify_problems(self.verify, self.parameters),
        ]
        if problems:
            raise ValueError("; ".join(f"{field}: {what}" for field, what in problems))
        return self


Problem = tuple[str, str]
"""A field's path, such as `batch.maximumSeconds`, and what is wrong with what to do."""


def entry_point_problems(has_class: bool, has_command: bool) -> Iterator[Problem]:
    """A job runs a class or a command."""
    if has_class == has_command:
        yield "class", "name what runs: either `class: module:Class` or `command: [...]`, and not both"


def batch_problems(batch: BatchSettings, task: TaskSettings) -> Iterator[Problem]:
    """A batch that outlives the stop time would be killed half-way at each stop."""
    if batch.maximum_seconds >= task.stop_seconds:
        yield (
            "batch.maximumSeconds",
            f"a batch may take {batch.maximum_seconds:g} s, but the container is killed "
            f"{task.stop_seconds} s after it was asked to stop: lower "
            "batch.maximumSeconds below task.stopSeconds, or raise task.stopSeconds (at most 120)",
        )
    if batch.target_seconds > batch.maximum_seconds:
        yield (
            "batch.targetSeconds",
            f"the target of {batch.target_seconds:g} s is above batch.maximumSeconds, "
            f"{batch.maximum_seconds:g} s: lower the target",
        )


def progress_problems(batch: BatchSettings, task: TaskSettings) -> Iterator[Problem]:
    """A task shows progress with each batch; one that works as it may would be taken for one that hangs."""
    if task.no_progress_seconds <= batch.maximum_seconds:
        yield (
            "task.noProgressSeconds",
            f"a batch may take {batch.maximum_seconds:g} s, but a task without progress for "
            f"{task.no_progress_seconds:g} s ends itself: raise task.noProgressSeconds above "
            "batch.maximumSeconds, with room for a checkpoint",
        )


def verify_problems(verify: Verify | None, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """What nothing fills would reach the reconciliation as it stands."""
    declared = parameters.get("properties")
    known = {*ENDS, *(declared if isinstance(declared, dict) else ())}
    for name, placeholder in verify.placeholders() if verify else ():
        if placeholder not in known:
            yield (
                f"verify.params.{name}",
                f"there is no parameter {placeholder}: declare it in `parameters`, or use {{from}} or {{to}}",
            )


def size_problems(task: TaskSettings) -> Iterator[Problem]:
    """Fargate knows certain amounts of memory for each CPU size only."""
    if task.memory not in fargate_memory(task.cpu):
        allowed = fargate_memory(task.cpu)
        yield (
            "task.memory",
            f"Fargate has no size of {task.cpu} CPU units with {task.memory} MiB: "
            f"choose from {', '.join(map(str, allowed[:8]))}{', ...' if len(allowed) > 8 else ''} "
            f"(at most {allowed[-1]}), or another task.cpu",
        )


def fargate_memory(cpu: int) -> list[int]:
    """The amounts of memory, in MiB, that Fargate offers with so many CPU units."""
    low, high, step = _FARGATE[cpu]
    steps = [gib * 1024 for gib in range(low, high + 1, step)]
    return [512, *steps] if cpu == 256 else steps


_FARGATE = {
    256: (1, 2, 1),
    512: (1, 4, 1),
    1024: (2, 8, 1),
    2048: (4, 16, 1),
    4096: (8, 30, 1),
    8192: (16, 60, 4),
    16384: (32, 120, 8),
}

MOST_HOURS = 720.0
"""How long a run may be open where its job does not say: 30 days."""

_ABORT_UNITS = {
    "failedPartitions": ("count", "percent"),
    "consecutiveFailures": ("count",),
    "rejects": ("count", "percent"),
    "dollars": ("usd",),
    "hours": ("hours",),
}


def abort_problems(rules: tuple[AbortRule, ...]) -> Iterator[Problem]:
    """A bound in a unit that its figure does not have, or on a sample that it does not have, is a mistake."""
    for index, rule in enumerate(rules):
        units = _ABORT_UNITS[rule.of]
        if rule.unit not in units:
            yield (
                f"abort.{index}.unit",
                f"{rule.of} is not measured in {rule.unit}: write {' or '.join(units)}",
            )
        if rule.of in ("dollars", "hours") and rule.minimum > 1:
            yield f"abort.{index}.minimum", f"{rule.of} are spent whatever has ended: leave `minimum` out"
