"""Two sources, their columns, and what must hold between them: what a comparison is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from trueup.model.base import Value

Text = Annotated[str, Field(min_length=1)]
Location = Annotated[str, Field(pattern=r"^s3://[^/]+/.+$")]
ColumnName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=63)]


EXACT = r"^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$"


def _exact(value: object) -> object:
    """A decimal comes as text or as a whole number: a float has lost its digits already."""
    if isinstance(value, float):
        raise PydanticCustomError("exact", 'write it as text, so that no digit is lost: "{v}"', {"v": value})
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch(EXACT, value)):
        raise PydanticCustomError("exact", "write a decimal number as text, such as 0.01")
    return Decimal(value) if isinstance(value, str | int) else value


Exact = Annotated[
    Decimal,
    BeforeValidator(_exact),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": EXACT}]}),
]
Tolerance = Annotated[
    Decimal,
    BeforeValidator(_exact),
    Field(ge=0),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": EXACT}]}),
]


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
    tolerance: Tolerance | None = None
    normal: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None
    compared: bool = True
    truth: Reading = Field(default_factory=Reading)
    target: Reading = Field(default_factory=Reading)

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
        if reading.zone is not None and not _is_zone(reading.zone):
            yield f"{side} of column {name}: there is no zone {reading.zone!r}: write it as Europe/Paris"
        if reading.times is not None and kind not in {ColumnType.INTEGER, ColumnType.DECIMAL}:
            yield f"{side} of column {name}: `times` turns units of exact numbers, and this is {kind}"
        if reading.times == 0:
            yield f"{side} of column {name}: `times` is 0, which would make all values the same"


@cache
def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # a path, a folder of zones, none
        return False
    return True


class PostgresSource(Value):
    """A table or view; `where` is SQL that limits its rows. `dsn` names one of the job's secrets."""

    kind: Literal["postgres"]
    table: Text
    dsn: Text = "dsn"
    where: str = ""


class DynamoSource(Value):
    """A DynamoDB table, scanned; `absent` says whether an absent attribute is a NULL or its own case.

    `begins` limits its items to those whose attributes are texts that begin so. `count`: each scan is proved
    by a count of its own, which costs as much as the scan.
    """

    kind: Literal["dynamodb"]
    table: Text
    segments: Annotated[int, Field(ge=1, le=64)] = 1
    absent: Literal["kept", "null"] = "null"
    begins: Annotated[dict[Text, str], Field(max_length=10)] = Field(default_factory=dict)
    count: bool = False


class DynamoExportSource(Value):
    """A table's full export to S3: `location` is the folder of its `manifest-summary.json`."""

    kind: Literal["dynamodb-export"]
    location: Location
    absent: Literal["kept", "null"] = "null"


class ObjectNames(Value):
    """Objects are called as this column of their rows, and then `suffix`: `2013-01-05.csv`."""

    column: ColumnName
    suffix: str = ""


class ObjectsSource(Value):
    """CSV with a header, JSON Lines or Parquet, in all objects under a prefix.

    Texts whose names end in .gz are unzipped; Parquet has no absent attributes and no delimiter.
    `ordered`: they are sorted by the key, over all objects in order of their names. It is checked.
    `records`: how many there should be, where something independent says so. `named`: after which column of
    the key they are called, so that only those are read that rows are asked of. It is checked, too.
    """

    kind: Literal["objects"]
    location: Location
    format: Literal["csv", "jsonl", "parquet"]
    ordered: bool = False
    absent: Literal["kept", "null"] = "kept"
    delimiter: Annotated[str, Field(min_length=1, max_length=1, pattern=r'^[^"\r\n]$')] = ","
    records: Annotated[int, Field(ge=0)] | None = None
    named: ObjectNames | None = None


class InventorySource(Value):
    """An S3 inventory: `location` is the folder of its `manifest.json`.

    `versions` latest: a row for each object that is there now, all: one for each version and delete marker.
    """

    kind: Literal["s3-inventory"]
    location: Location
    versions: Literal["latest", "all"] = "latest"


Source = Annotated[
    PostgresSource | DynamoSource | DynamoExportSource | ObjectsSource | InventorySource,
    Field(discriminator="kind"),
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

    kind: Literal["rows"]


class Exists(Value):
    """The same keys on both sides, or on one side at least those of the other; values are not looked at."""

    kind: Literal["exists"]
    ways: Literal["both", "truth-in-target", "target-in-truth"] = "both"


class Derived(Value):
    """The target holds for each key what a fold over the truth's events gives.

    `events` are the truth's columns beyond the key, `order` those that put events of one key in order.
    `figures` say what the fold is; without them it is the `fold` of the job's class.
    """

    kind: Literal["derived"]
    events: Annotated[tuple[Column, ...], Field(min_length=1)]
    order: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    figures: dict[str, Figure] = Field(default_factory=dict)


class Aggregates(Value):
    """Both sides have the same figures for each group; the key of the job names the groups."""

    kind: Literal["aggregates"]
    figures: Annotated[dict[str, Figure], Field(min_length=1)]


class Conservation(Value):
    """The sums are zero for each group of the truth; there is no other side."""

    kind: Literal["conservation"]
    sums: Annotated[tuple[ColumnName, ...], Field(min_length=1)]


Invariant = Annotated[
    Rows | Exists | Derived | Aggregates | Conservation,
    Field(discriminator="kind"),
]


class Breaker(Value):
    """When a repair stops: more than `share` of at least `sample` items were stale or failed."""

    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.5
    sample: Annotated[int, Field(ge=1, le=2**53 - 1)] = 20

    def trips(self, items: int, bad: int) -> bool:
        """Whether so many bad ones of so many are too many."""
        return items >= self.sample and bad > self.share * items


class RepairSettings(Value):
    """That confirmed findings are repaired once their report is approved.

    `deletes` asked: rows that the truth does not have are deleted, and the approval says so by its name.
    """

    deletes: Literal["refused", "asked"] = "refused"
    breaker: Breaker = Field(default_factory=Breaker)


class _OrByName:
    """What the schema says of columns: a list, or a mapping by name."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        kinds = {"type": "string", "enum": [kind.value for kind in ColumnType]}
        mapping = {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": r"^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 63},
            "additionalProperties": {"anyOf": [kinds, {"type": "object", "required": ["type"]}]},
        }
        return {"anyOf": [handler(core), mapping]}


Columns = Annotated[tuple[Column, ...], Field(min_length=1), _OrByName()]
