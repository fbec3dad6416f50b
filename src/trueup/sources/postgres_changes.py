"""The statement that changes one row of PostgreSQL if it is still as expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueup.compare import Change
from trueup.compare.canonical import divided
from trueup.compare.lines import ABSENT, NULL, unescape
from trueup.sources.postgres_columns import Described, any_of

if TYPE_CHECKING:
    from psycopg import sql

__all__ = ["changed"]


def changed(table: sql.Identifier, columns: Sequence[Described], change: Change) -> sql.Composed:
    """The statement that makes a change where what is there is as expected."""
    from psycopg import sql

    if change.wanted is None:
        return sql.SQL("delete from {} where {}").format(table, _as_expected(columns, change))
    wanted = change.wanted.split(b"\t")
    if change.expected is None:
        new = [pair for pair in zip(columns, wanted, strict=True) if pair[0].column.compared]
        return sql.SQL("insert into {} ({}) values ({}) on conflict do nothing").format(
            table,
            sql.SQL(", ").join(sql.Identifier(one.name) for one, _ in new),
            sql.SQL(", ").join(_stored(one, field) for one, field in new),
        )
    before = change.expected.split(b"\t")
    new = [
        (one, field)
        for one, field, old in zip(columns, wanted, before, strict=True)
        if one.column.compared and field != old
    ]
    if not new:
        return sql.SQL("select from {} where {}").format(table, _as_expected(columns, change))
    return sql.SQL("update {} set {} where {}").format(
        table,
        sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(one.name), _stored(one, f)) for one, f in new
        ),
        _as_expected(columns, change),
    )


def _as_expected(columns: Sequence[Described], change: Change) -> sql.Composed:
    from psycopg import sql

    fields = (change.expected or b"").split(b"\t")
    key = any_of(columns, [change.key])
    same = [
        sql.SQL("{} is not distinct from {}").format(one.as_text, _text(field))
        for one, field in zip(columns, fields, strict=True)
    ]
    return sql.SQL(" and ").join([key, *same])


def _text(field: bytes) -> sql.Literal:
    from psycopg import sql

    return sql.Literal(None if field in (NULL, ABSENT) else unescape(field).decode())


def _stored(one: Described, field: bytes) -> sql.Composable:
    """A canonical value as the column holds it."""
    from psycopg import sql

    text, reading = _text(field), one.reading
    if field in (NULL, ABSENT):
        return text
    if reading.times is not None:
        return sql.Literal(format(divided(field, reading.times), "f"))
    if reading.format != "iso":
        return sql.SQL("(extract(epoch from {}::timestamptz) * {})::int8").format(
            text, sql.Literal(_A_SECOND[reading.format])
        )
    if reading.zone is not None:
        return sql.SQL("({}::timestamptz at time zone {})").format(text, sql.Literal(reading.zone))
    return text


_A_SECOND = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}
