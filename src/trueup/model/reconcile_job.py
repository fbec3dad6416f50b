"""What a `job.yaml` of kind `reconcile` declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from trueup.model.base import Value
from trueup.model.job import (
    AbortRule,
    BatchSettings,
    ErrorSettings,
    Guard,
    Job,
    KeyName,
    Seconds,
    Target,
    TaskSettings,
    abort_problems,
    size_problems,
)
from trueup.model.reconcile import (
    NO_KEYS,
    NUMBERS,
    Aggregates,
    Column,
    ColumnName,
    Columns,
    ColumnType,
    Conservation,
    Derived,
    DynamoExportSource,
    DynamoSource,
    Invariant,
    InventorySource,
    Location,
    PostgresSource,
    RepairSettings,
    Rows,
    Side,
    Source,
)

MOST_PARTITIONS = 1_000


def as_lists(document: Mapping[str, Any]) -> dict[str, Any]:
    """A job file's document with what may be written shorter written out: columns by name, splits."""
    found = dict(document)
    if isinstance(found.get("columns"), Mapping):
        found["columns"] = [_column(name, spec) for name, spec in found["columns"].items()]
    partitions = found.get("partitions")
    if isinstance(partitions, Mapping) and isinstance(partitions.get("splits"), list):
        found["partitions"] = {**partitions, "splits": list(map(_split, partitions["splits"]))}
    return found


def _column(name: object, spec: object) -> object:
    if isinstance(spec, str):
        return {"name": name, "type": spec}
    return {"name": name, **spec} if isinstance(spec, Mapping) else spec


def _split(given: object) -> object:
    if isinstance(given, list):
        return list(map(_text, given))
    return [_text(given)] if isinstance(given, str | int | float) else given


def _text(part: object) -> object:
    """A whole number as text, however it is written."""
    whole = type(part) is int or (isinstance(part, float) and part.is_integer())
    return str(int(part)) if whole else part  # type: ignore[call-overload]


Split = Annotated[tuple[str, ...], Field(min_length=1)]
_TEXT = {"type": ["string", "integer"]}
_SPLIT = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
Splits = Annotated[
    tuple[Split, ...],
    Field(max_length=MOST_PARTITIONS - 1),
    WithJsonSchema({"type": "array", "items": _SPLIT, "maxItems": MOST_PARTITIONS - 1}),
]


class SplitPartitions(Value):
    """Ranges of the key between the splits: the first has no lower end, the last no upper one.

    A range includes the split that it begins with. A split names a key, or the first columns of one. Without
    splits there is one partition.
    """

    by: Literal["splits"]
    key: KeyName = "key"
    splits: Splits = ()
    seconds: Seconds = 60.0

    @property
    def empty(self) -> str:
        """A range may be empty: whether a whole side may be is another question."""
        return "allowed"


class QuantilePartitions(Value):
    """About so many ranges of the key, of about as many rows each, as both sides say when it is planned."""

    by: Literal["quantiles"]
    key: KeyName = "key"
    count: Annotated[int, Field(ge=2, le=MOST_PARTITIONS)]
    seconds: Seconds = 60.0

    @property
    def empty(self) -> str:
        """What was there when it was planned may be gone."""
        return "allowed"


ReconcilePartitioning = Annotated[SplitPartitions | QuantilePartitions, Field(discriminator="by")]


class WaitFor(Value):
    """An object that has to be there before anything is compared, and how long it is waited for."""

    location: Location
    minutes: Annotated[float, Field(gt=0, le=43_200, allow_inf_nan=False)] = 60.0


class Reconciliation(Job):
    """Two sources, and what must hold between them.

    `lag` is how long, in seconds, a change may take from one side to the other; 0: nothing is in flight.
    `looks` is how often a difference that keeps changing is looked at again. `version` names a timestamp
    column that says when a row last changed. `locks` names the target that repairs lock, as its backfill
    calls it. Without `repair` a run ends with its report. In the sources `{name}` stands for a parameter.
    """

    kind: Literal["reconcile"]
    truth: Source
    target: Source | None = None
    key: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    columns: Columns
    invariant: Invariant = Field(default_factory=lambda: Rows(kind="rows"))
    version: ColumnName | None = None
    lag: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    empty: Literal["refused", "allowed"] = "refused"
    values: Literal["masked", "shown"] = "masked"
    wait_for: WaitFor | None = None
    looks: Annotated[int, Field(ge=1, le=100)] = 3
    partitions: ReconcilePartitioning = Field(default_factory=lambda: SplitPartitions(by="splits"))
    locks: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    repair: RepairSettings | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Reconciliation:
        """The job of a document as people write it. Raises pydantic's ValidationError."""
        return cls.model_validate(as_lists(document))

    @property
    def named_by_task(self) -> bool:
        """Whether a task names the partitions: it asks both sides for their quantiles."""
        return self.partitions.by == "quantiles"

    @property
    def writes_to(self) -> Target:
        """What is locked before anything is repaired; a repair is one conditional write."""
        return Target(name=self.locks or self.name, guard=Guard.TRANSACTION)

    @property
    def has_dry_run(self) -> bool:
        """It writes nothing before somebody approved it, so there is nothing to rehearse."""
        return False

    @property
    def batch(self) -> BatchSettings:
        """The comparer makes its own steps."""
        return BatchSettings()

    @property
    def errors(self) -> ErrorSettings:
        """What cannot be compared is counted, and makes the verdict INCOMPLETE; it stops nothing."""
        return ErrorSettings(rejects=2**53 - 1)

    @model_validator(mode="after")
    def _rules_across_sections(self) -> Self:
        problems = list(reconciliation_problems(self))
        if problems:
            raise ReconciliationProblems(problems)
        return self

    def source(self, side: Side) -> Source | None:
        """The source of a side, as the file has it; conservation has no target."""
        return self.truth if side is Side.TRUTH else self.target

    def filled(self, params: Mapping[str, Any]) -> Reconciliation:
        """The same with the parameters put into the sources."""
        filled: dict[str, Any] = {
            side.value: type(source).model_validate(_filled(source.document(), params))
            for side in Side
            if (source := self.source(side)) is not None
        }
        if self.wait_for is not None:
            filled["wait_for"] = WaitFor.model_validate(_filled(self.wait_for.document(), params))
        return self.model_copy(update=filled)

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        return {column.name: column for column in self.columns}[name]


NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _filled(value: Any, params: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(part, params) for name, part in value.items()}
    if not isinstance(value, str):
        return value
    return _PLACEHOLDER.sub(lambda match: str(params.get(match[1], match[0])), value)


Problem = tuple[str, str]
"""A field's path, and what is wrong with what to do."""


class ReconciliationProblems(ValueError):
    """What is wrong across the sections of a job file, field by field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{field}: {what}" for field, what in problems))
        self.problems = problems


def reconciliation_problems(job: Reconciliation) -> Iterator[Problem]:
    """What is wrong across sections."""
    columns = {column.name: column for column in job.columns}
    if len(columns) < len(job.columns):
        yield "columns", "two have the same name: name each once"
    yield from _key_problems(job, columns)
    yield from _version_problems(job, columns)
    if (job.target is None) != isinstance(job.invariant, Conservation):
        yield "target", "conservation has one side, the truth, and every other invariant two: name those"
    yield from _figure_problems(job, columns)
    yield from _source_problems(job)
    yield from _split_problems(job)
    yield from _repair_problems(job)
    yield from job_problems(job.task, job.abort)


def job_problems(task: TaskSettings, abort: tuple[AbortRule, ...]) -> Iterator[Problem]:
    """What is wrong in the sections that every job file has."""
    yield from size_problems(task)
    yield from abort_problems(abort)


def _source_problems(job: Reconciliation) -> Iterator[Problem]:
    """Names of secrets and parameters that nothing gives."""
    declared = job.parameters.get("properties")
    known = declared if isinstance(declared, dict) else {}
    sections = {"truth": job.truth, "target": job.target, "waitFor": job.wait_for}
    for side in Side:
        named = getattr(job.source(side), "named", None)
        if named is not None and named.column not in job.key:
            yield f"{side.value}.named", f"{named.column} is not in the key: name one of its columns"
    for section, declared_there in sections.items():
        for field, text in declared_there.document().items() if declared_there else ():
            for name in _named_in(text):
                if name not in known:
                    yield f"{section}.{field}", f"there is no parameter {name}: declare it in `parameters`"


def _named_in(value: Any) -> list[str]:
    """The parameters that a field of a source stands for."""
    if isinstance(value, dict):
        return [name for part in value.values() for name in _named_in(part)]
    return _PLACEHOLDER.findall(value) if isinstance(value, str) else []


def _repair_problems(job: Reconciliation) -> Iterator[Problem]:
    if job.repair is None:
        return
    if not isinstance(job.invariant, Rows | Derived):
        yield "repair", f"{job.invariant.kind} says what is wrong, and not what a row should be: leave it out"
    elif isinstance(job.truth, DynamoExportSource | InventorySource) and not _tells_newer_rows(job):
        what = "the truth is of an earlier moment, and what the target got since would be taken back"
        yield "repair", f"{what}: name the `version` of a row, compare `rows`, or leave it out"
    elif not isinstance(job.target, PostgresSource | DynamoSource) and job.job_class is None:
        yield "repair", "this target cannot be changed: name a `class` with a `repair_one`, or leave it out"


def _tells_newer_rows(job: Reconciliation) -> bool:
    """Whether rows that changed after the instant that is compared are told from drift."""
    return job.version is not None and isinstance(job.invariant, Rows)


def _split_problems(job: Reconciliation) -> Iterator[Problem]:
    splits = job.partitions.splits if isinstance(job.partitions, SplitPartitions) else ()
    if any(len(split) > len(job.key) for split in splits):
        yield "partitions.splits", "a split has more parts than the key: leave some out"
        return
    kinds = {column.name: column.type for column in job.columns}
    if any(name not in kinds for name in job.key):
        return  # which is told of the key
    try:
        places = [_place(split, [kinds[name] for name in job.key]) for split in splits]
        ascend = all(before < after for before, after in pairwise(places))
    except (ValueError, ArithmeticError):
        yield "partitions.splits", "a split is no value of the key's types: write it as the key is written"
        return
    if not ascend:
        yield "partitions.splits", "the splits must ascend, and each be there once: sort them"


def _place(split: tuple[str, ...], kinds: list[ColumnType]) -> tuple[Any, ...]:
    """Where a split stands in the order of keys: texts by their bytes, numbers by what they are."""
    exact = {ColumnType.INTEGER: int, ColumnType.DECIMAL: Decimal}
    return tuple(exact.get(kind, str.encode)(text) for text, kind in zip(split, kinds, strict=False))


def _key_problems(job: Reconciliation, columns: Mapping[str, Column]) -> Iterator[Problem]:
    if len(set(job.key)) < len(job.key):
        yield "key", "a column is here twice: name each once"
    for name in job.key:
        column = columns.get(name)
        if column is None:
            yield "key", f"{name} is not among the columns: declare it there with its type"
        elif column.type in NO_KEYS:
            yield "key", f"{name} is {column.type}, which can be no key: two stores order it differently"
        elif column.normal or column.tolerance is not None or not column.compared:
            yield "key", f"{name} is in the key, and keys are compared as they are: declare its type only"


def _version_problems(job: Reconciliation, columns: Mapping[str, Column]) -> Iterator[Problem]:
    if job.version is None:
        return
    column = columns.get(job.version)
    if column is None:
        yield "version", f"{job.version} is not among the columns: declare it as a timestamp"
    elif column.type is not ColumnType.TIMESTAMP:
        yield "version", f"{job.version} is {column.type}: a version says when, and is a timestamp"


def _figure_problems(job: Reconciliation, columns: Mapping[str, Column]) -> Iterator[Problem]:
    invariant = job.invariant
    if isinstance(invariant, Conservation):
        wrong = [name for name in invariant.sums if name not in columns or columns[name].type not in NUMBERS]
        if wrong:
            yield "invariant.sums", f"{wrong[0]} is no column of numbers: name one that is declared as such"
    if isinstance(invariant, Derived):
        events = {column.name for column in invariant.events}
        yield from _derived_problems(invariant, events, job, columns)
    if isinstance(invariant, Aggregates):
        for name, figure in invariant.figures.items():
            if not re.fullmatch(NAME, name):
                yield f"invariant.figures.{name}", "a figure is called like a column: letters, digits, _"
            if figure.of is not None and figure.of not in columns:
                yield f"invariant.figures.{name}", f"there is no column {figure.of}: declare it in `columns`"


def _derived_problems(
    invariant: Derived, events: set[str], job: Reconciliation, columns: Mapping[str, Any]
) -> Iterator[Problem]:
    for name in invariant.order:
        if name not in events:
            yield "invariant.order", f"{name} is not among the events' columns: declare it in `events`"
    if not invariant.figures and job.job_class is None:
        yield "invariant.figures", "it says what the events come to: give some, or a `class` with a `fold`"
    for name, figure in invariant.figures.items():
        if name not in columns or name in job.key:
            yield f"invariant.figures.{name}", "the target has no such column: declare it in `columns`"
        if figure.of is not None and figure.of not in events | set(job.key):
            yield (
                f"invariant.figures.{name}",
                f"the events have no column {figure.of}: add it to `events`",
            )
    for name in columns if invariant.figures else ():
        if name not in invariant.figures and name not in job.key and columns[name].compared:
            yield f"columns.{name}", "no figure gives it: add one, or declare `compared: false`"
