"""What a reconciliation's job file declares: two sources, their columns, and what must hold between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trueup.model.base import Name, Value

Text = Annotated[str, Field(min_length=1)]
Location = Annotated[str, Field(pattern=r"^s3://[^/]+/.+$")]
ColumnName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=63)]


def _exact(value: object) -> object:
    """A decimal comes as text or as a whole number: a float has lost its digits already."""
    if isinstance(value, float):
        raise ValueError(f'write it as text, so that no digit is lost: "{value}"')
    return value


Exact = Annotated[Decimal, BeforeValidator(_exact), Field(allow_inf_nan=False)]


class Side(StrEnum):
    """Which of the two: what is right by declaration, and what is derived from it."""

    TRUTH = "truth"
    TARGET = "target"

    @property
    def other(self) -> Side:
        """The side that this one is compared with."""
        return Side.TARGET if self is Side.TRUTH else Side.TRUTH


class ColumnType(StrEnum):
    """How a column's values are written canonically and compared."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    UUID = "uuid"
    BYTES = "bytes"
    JSON = "json"


NUMBERS = frozenset({ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.FLOAT})
# What has no total order that two stores agree on is no key.
NO_KEYS = frozenset({ColumnType.FLOAT, ColumnType.JSON, ColumnType.BOOLEAN})


class Reading(Value):
    """How one side holds a column, where that differs from the plain form.

    `name` is its name there; `format` that of a timestamp, ISO or a number since 1970; `zone` that of
    timestamps without one; `times` makes the declared unit of what is stored ("0.01" for cents);
    `encoding` is that of bytes in text; `nulls` are texts that mean NULL.
    """

    name: Text | None = None
    format: Literal["iso", "seconds", "milliseconds", "microseconds"] = "iso"
    zone: Text | None = None
    times: Exact | None = None
    encoding: Literal["base64", "hex"] = "base64"
    nulls: tuple[str, ...] = ()


class Column(Value):
    """A column: its type, what counts as the same, and how each side holds it.

    `tolerance` is the largest difference that is none, in the column's unit (seconds for timestamps).
    `normal` is the Unicode form in which texts are compared where their bytes differ.
    A column that is not `compared` is carried along only: it may be the version of a row.
    """

    name: ColumnName
    type: ColumnType
    tolerance: Annotated[Exact, Field(ge=0)] | None = None
    normal: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None
    compared: bool = True
    truth: Reading = Reading()
    target: Reading = Reading()

    @model_validator(mode="after")
    def _rules(self) -> Self:
        problem = next(column_problems(self), None)
        if problem:
            raise ValueError(problem)
        return self

    def reading(self, side: Side) -> Reading:
        """How that side holds it."""
        return self.truth if side is Side.TRUTH else self.target

    def name_in(self, side: Side) -> str:
        """What it is called there."""
        return self.reading(side).name or self.name


def column_problems(column: Column) -> Iterator[str]:
    """What is declared for a column and has no meaning for its type."""
    kind, name = column.type, column.name
    if column.tolerance is not None and kind not in NUMBERS | {ColumnType.TIMESTAMP}:
        yield f"column {name} is {kind} and can have no tolerance: numbers and timestamps can"
    if column.normal is not None and kind is not ColumnType.TEXT:
        yield f"column {name} is {kind}: only text has a Unicode form, leave `normal` out"
    for side in Side:
        reading = column.reading(side)
        if (reading.zone or reading.format != "iso") and kind is not ColumnType.TIMESTAMP:
            yield f"{side} of column {name}: only a timestamp has a zone or a format, and this is {kind}"
        if reading.times is not None and kind not in {ColumnType.INTEGER, ColumnType.DECIMAL}:
            yield f"{side} of column {name}: `times` turns units of exact numbers, and this is {kind}"
        if reading.times == 0:
            yield f"{side} of column {name}: `times` is 0, which would make all values the same"


class PostgresSource(Value):
    """A table or view; `where` is SQL that limits its rows. `dsn` names one of the job's secrets."""

    kind: Literal["postgres"]
    table: Text
    dsn: Text = "dsn"
    where: str = ""


class DynamoSource(Value):
    """A DynamoDB table, scanned; `absent` says whether an absent attribute is a NULL or its own case."""

    kind: Literal["dynamodb"]
    table: Text
    segments: Annotated[int, Field(ge=1, le=64)] = 1
    absent: Literal["kept", "null"] = "null"


class DynamoExportSource(Value):
    """A table's full export to S3: `location` is the folder of its `manifest-summary.json`."""

    kind: Literal["dynamodb-export"]
    location: Location
    absent: Literal["kept", "null"] = "null"


class ObjectsSource(Value):
    """CSV with a header, or JSON Lines, in all objects under a prefix; names that end in .gz are unzipped.

    `ordered`: they are sorted by the key, over all objects in order of their names. It is checked.
    `records`: how many there should be, where something independent says so.
    """

    kind: Literal["objects"]
    location: Location
    format: Literal["csv", "jsonl"]
    ordered: bool = False
    absent: Literal["kept", "null"] = "kept"
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    records: Annotated[int, Field(ge=0)] | None = None


Source = Annotated[
    PostgresSource | DynamoSource | DynamoExportSource | ObjectsSource, Field(discriminator="kind")
]


class Figure(Value):
    """One value of a fold over rows of one key: how many, or an operation over a column."""

    op: Literal["count", "sum", "min", "max", "first", "last"]
    of: ColumnName | None = None

    @model_validator(mode="after")
    def _what_is_needed(self) -> Self:
        if (self.op == "count") != (self.of is None):
            raise ValueError(f"{self.op}: `count` has no column, every other operation names one in `of`")
        return self


class Rows(Value):
    """The same keys with the same values on both sides."""

    kind: Literal["rows"] = "rows"


class Exists(Value):
    """The same keys on both sides, or on one side at least those of the other; values are not looked at."""

    kind: Literal["exists"]
    ways: Literal["both", "truth-in-target", "target-in-truth"] = "both"


class Derived(Value):
    """The target holds for each key what a fold over the truth's events gives.

    `events` are the truth's columns beyond the key, `order` those that put events of one key in order.
    """

    kind: Literal["derived"]
    events: Annotated[tuple[Column, ...], Field(min_length=1)]
    order: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    figures: Annotated[dict[ColumnName, Figure], Field(min_length=1)]


class Aggregates(Value):
    """Both sides have the same figures for each group; the key of the job names the groups."""

    kind: Literal["aggregates"]
    figures: Annotated[dict[ColumnName, Figure], Field(min_length=1)]


class Conservation(Value):
    """The sums are zero for each group of the truth; there is no other side."""

    kind: Literal["conservation"]
    sums: Annotated[tuple[ColumnName, ...], Field(min_length=1)]


Invariant = Annotated[
    Rows | Exists | Derived | Aggregates | Conservation,
    Field(discriminator="kind"),
]


def _named(value: object) -> object:
    """Columns as a mapping of name to type, or to all that is declared, become a list."""
    if not isinstance(value, Mapping):
        return value
    return [
        {"name": name, **({"type": spec} if isinstance(spec, str) else spec)}
        if isinstance(spec, str | Mapping)
        else spec
        for name, spec in value.items()
    ]


Columns = Annotated[tuple[Column, ...], BeforeValidator(_named), Field(min_length=1)]


class Reconciliation(Value):
    """What a `job.yaml` of kind `reconcile` declares beyond what every job file does.

    `lag` is how long, in seconds, a change may take from one side to the other; 0: nothing is in flight.
    `version` names a timestamp column that says when a row last changed.
    """

    name: Name
    kind: Literal["reconcile"]
    description: str = ""
    truth: Source
    target: Source | None = None
    key: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    columns: Columns
    invariant: Invariant = Rows()
    version: ColumnName | None = None
    lag: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    empty: Literal["refused", "allowed"] = "refused"
    values: Literal["masked", "shown"] = "masked"

    @model_validator(mode="after")
    def _rules_across_sections(self) -> Self:
        problems = list(reconciliation_problems(self))
        if problems:
            raise ValueError("; ".join(f"{field}: {what}" for field, what in problems))
        return self

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        return {column.name: column for column in self.columns}[name]


Problem = tuple[str, str]
"""A field's path, and what is wrong with what to do."""


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


def _key_problems(job: Reconciliation, columns: Mapping[str, Column]) -> Iterator[Problem]:
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
            if figure.of is not None and figure.of not in columns:
                yield f"invariant.figures.{name}", f"there is no column {figure.of}: declare it in `columns`"


def _derived_problems(
    invariant: Derived, events: set[str], job: Reconciliation, columns: Mapping[str, Any]
) -> Iterator[Problem]:
    for name in invariant.order:
        if name not in events:
            yield "invariant.order", f"{name} is not among the events' columns: declare it in `events`"
    for name, figure in invariant.figures.items():
        if name not in columns or name in job.key:
            yield f"invariant.figures.{name}", "the target has no such column: declare it in `columns`"
        if figure.of is not None and figure.of not in events | set(job.key):
            yield (
                f"invariant.figures.{name}",
                f"the events have no column {figure.of}: add it to `events`",
            )
    for name in columns:
        if name not in invariant.figures and name not in job.key and columns[name].compared:
            yield f"columns.{name}", "no figure gives it: add one, or declare `compared: false`"
