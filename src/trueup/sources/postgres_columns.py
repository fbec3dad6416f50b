"""How PostgreSQL writes a column canonically: what the catalogue says, and the SQL that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.compare import Key, Layout
from trueup.errors import SourceError
from trueup.model.reconcile import Column, ColumnType, Reading, Side

if TYPE_CHECKING:
    from psycopg import sql

__all__ = ["SETTINGS", "Described", "any_of", "described"]

# The same on both sides, whatever the server, the database, the role or PGOPTIONS say.
# `row_security = off` makes a policy that would hide rows an error instead.
SETTINGS = """
set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'iso_8601';
set local extra_float_digits = 1; set local bytea_output = 'hex'; set local xmlbinary = 'base64';
set local row_security = off; set local standard_conforming_strings = on
"""

_COLUMNS = """
select a.attname, coalesce(base.typname, t.typname), t.typtype, a.attnotnull, a.attgenerated <> '',
       coalesce(c.collname in ('C', 'POSIX', 'ucs_basic')
                or (c.collname = 'default' and d.datlocprovider = 'c'
                    and d.datcollate in ('C', 'POSIX')), true)
from pg_attribute a
join pg_type t on t.oid = a.atttypid
left join pg_type base on base.oid = t.typbasetype
left join pg_collation c on c.oid = a.attcollation
join pg_database d on d.datname = current_database()
where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped
"""

# Unique over all rows that a select gives: of plain columns, of every row, of no table with children.
_UNIQUE = """
select array(select a.attname::text from unnest(i.indkey[0:i.indnkeyatts - 1]) k join pg_attribute a
             on a.attrelid = i.indrelid and a.attnum = k)
from pg_index i join pg_class r on r.oid = i.indrelid
where i.indrelid = %s::regclass and i.indisunique and i.indisvalid and i.indpred is null
  and i.indexprs is null and not (r.relkind = 'r' and r.relhassubclass)
"""

_INTEGERS = {"int2", "int4", "int8"}
_TAKEN: Mapping[ColumnType, set[str]] = {
    ColumnType.INTEGER: _INTEGERS | {"numeric"},
    ColumnType.DECIMAL: _INTEGERS | {"numeric"},
    ColumnType.FLOAT: _INTEGERS | {"numeric", "float4", "float8"},
    ColumnType.TEXT: {"text", "varchar", "bpchar", "name", "citext", "char"},
    ColumnType.BOOLEAN: {"bool"},
    ColumnType.TIMESTAMP: {"timestamptz", "timestamp"},
    ColumnType.DATE: {"date"},
    ColumnType.UUID: {"uuid"},
    ColumnType.BYTES: {"bytea"},
    ColumnType.JSON: {"json", "jsonb"},
}
_MILLISECONDS = {"seconds": "1 second", "milliseconds": "1 millisecond", "microseconds": "1 microsecond"}


@dataclass(frozen=True, slots=True)
class Described:
    """A column as the catalogue has it, and as the layout wants it.

    `expression` gives the canonical value; `plain` says that it is the column itself, or as good as that for
    its order and its uniqueness; `not_null` and `bytewise` (its collation orders by bytes) are of the table.
    """

    column: Column
    name: str
    type: str
    not_null: bool
    bytewise: bool
    plain: bool
    expression: sql.Composable
    reading: Reading

    @property
    def order(self) -> sql.Composable:
        """What puts rows in the order of this column's canonical bytes, or numbers."""
        from psycopg import sql

        if self.column.type is not ColumnType.TEXT or (self.plain and self.bytewise):
            return self.expression
        return sql.SQL('({}) collate "C"').format(self.expression)

    def bound(self, text: str) -> sql.Composable:
        """A value of this column in canonical text, as a literal to compare `order` with."""
        from psycopg import sql

        if self.column.type is ColumnType.INTEGER and abs(int(text)) < 2**63 and self.type != "numeric":
            return sql.SQL("{}::int8").format(sql.Literal(text))
        return sql.SQL("{}::{}").format(sql.Literal(text), sql.SQL(_BOUNDS.get(self.column.type, "text")))

    @property
    def as_text(self) -> sql.Composable:
        """The expression in the text that COPY would write, before its escapes."""
        from psycopg import sql

        if self.column.type is ColumnType.BOOLEAN:
            return sql.SQL("case when {0} then 't' when not {0} then 'f' end").format(self.expression)
        return sql.SQL("({})::text").format(self.expression)


_BOUNDS = {
    ColumnType.INTEGER: "numeric",
    ColumnType.DECIMAL: "numeric",
    ColumnType.TIMESTAMP: "timestamptz",
    ColumnType.DATE: "date",
    ColumnType.UUID: "uuid",
    ColumnType.BYTES: "bytea",
}


def described(cursor: Any, table: str, layout: Layout, side: Side) -> tuple[list[Described], bool]:
    """The columns of a layout in a table, and whether its key is unique there by an index that says so.

    SourceError names a column that is not there, or whose type is not what the layout declares.
    """
    found = {row[0]: row[1:] for row in cursor.execute(_COLUMNS, [table]).fetchall()}
    columns = [_one(found, table, column, side) for column in layout.columns]
    key = columns[: len(layout.key)]
    unique = [set(names) for (names,) in cursor.execute(_UNIQUE, [table]).fetchall()]
    names = {one.name for one in key}
    distinct = all(one.plain and one.not_null for one in key) and any(index <= names for index in unique)
    return columns, distinct


def any_of(columns: Sequence[Described], keys: Sequence[Key]) -> sql.Composed:
    """The condition that a row has one of these keys, or first columns of them."""
    from psycopg import sql

    width = len(keys[0])
    rows = [
        sql.SQL("({})").format(
            sql.SQL(", ").join(one.bound(text) for one, text in zip(columns[:width], key, strict=True))
        )
        for key in keys
    ]
    names = sql.SQL(", ").join(one.expression for one in columns[:width])
    return sql.SQL("({}) in ({})").format(names, sql.SQL(", ").join(rows))


def _one(found: Mapping[str, Sequence[Any]], table: str, column: Column, side: Side) -> Described:
    name = column.name_in(side)
    if name not in found:
        raise SourceError(
            f"Table {table}, the {side}, has no column {name}.",
            remedy=f"It has {', '.join(sorted(found))}: name one in {side}.name of column {column.name}.",
        )
    kind, category, not_null, _, bytewise = found[name]
    reading = column.reading(side)
    expression = _expression(name, kind, category == "e", column, reading)
    if expression is None:
        raise SourceError(
            f"Column {name} of table {table}, the {side}, is {kind}, "
            f"which cannot be compared as {column.type}.",
            remedy=_remedy(kind, column),
        )
    plain = kind != "bpchar" and category != "e" and not (reading.times or reading.zone or reading.nulls)
    return Described(
        column, name, kind, not_null, bytewise, plain and kind != "timestamp", expression, reading
    )


def _remedy(kind: str, column: Column) -> str:
    if kind in ("float4", "float8"):
        return "A float holds no exact number: declare it as `float`, with a tolerance if need be."
    if kind == "timestamp":
        return "It has no time zone: declare in which zone it is to be read (`zone: UTC`)."
    return f"Declare another type for column {column.name}, or compare a view that casts it."


def _expression(
    name: str, kind: str, is_enum: bool, column: Column, reading: Reading
) -> sql.Composable | None:
    """The canonical value of a column; None where its type cannot give one."""
    from psycopg import sql

    it: sql.Composable = sql.Identifier(name)
    wanted = column.type
    if reading.format != "iso":
        if kind not in _INTEGERS:
            return None
        unit = sql.Literal(_MILLISECONDS[reading.format])
        return sql.SQL("(timestamptz 'epoch' + {} * {}::interval)").format(it, unit)
    if kind not in _TAKEN[wanted] and not (wanted is ColumnType.TEXT and is_enum):
        return None
    if kind == "timestamp":
        if reading.zone is None:
            return None
        return sql.SQL("({} at time zone {})").format(it, sql.Literal(reading.zone))
    if reading.times is not None:
        it = sql.SQL("trim_scale({}::numeric * {}::numeric)").format(it, sql.Literal(str(reading.times)))
    else:
        it = sql.SQL("{}::text" if is_enum else _SHAPES.get(kind, "{}")).format(it)
    for null in reading.nulls if wanted is ColumnType.TEXT else ():
        it = sql.SQL("nullif({}, {})").format(it, sql.Literal(null))
    return it


_SHAPES = {
    "numeric": "trim_scale({})",
    # By way of text, the shortest that gives the same float: a plain cast keeps 15 digits.
    "float4": "trim_scale({}::text::numeric)",
    "float8": "trim_scale({}::text::numeric)",
    "json": "{}::jsonb::text",
    "jsonb": "{}::text",
    "text": "{}",
    "varchar": "{}",
    "bpchar": "{}::text",
    "name": "{}::text",
    "citext": "{}::text",
    "char": "{}::text",
}
