"""A PostgreSQL table that refuses a task which should be dead: guard `transaction`.

The table `trueup_fence` holds a row for each target and partition.
A task raises it right after it took the partition; each of its writes locks it and compares.

Each write is one message that the server works and commits by itself: lock the fence row, compare, upsert,
count. So there is no moment between check and commit at which a frozen task would hold the lock: stopped
before it sent the message it has done nothing, stopped after it the server finishes without it.
`FOR SHARE` is the weakest lock that raising the fence waits for, and lets tasks' threads write side by side.
A newer task waits for a write in flight, which the server ends after `statement_seconds` at the latest.
Once its `raise_fence` has returned, no older write is in progress and none can begin.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from trueup.errors import JobError, Superseded, Transient
from trueup.jobs import Outcome

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

__all__ = ["FencedTable", "create_fence_table"]

Row = Mapping[str, Any]

_FENCE_TABLE = """
create table if not exists trueup_fence (
    target text, partition text, fence bigint not null, primary key (target, partition)
)
"""

_RAISE = """
set local statement_timeout = {timeout};
insert into trueup_fence as old (target, partition, fence) values ({target}, {partition}, {fence})
on conflict (target, partition) do update set fence = greatest(old.fence, excluded.fence)
returning fence
"""

# `where ... = fence` is what pulls `held` in, so that its row is locked before the first row is written.
_UPSERT = """
set local statement_timeout = {timeout};
with held as materialized (
    select fence from trueup_fence where target = {target} and partition = {partition} for share
), put as (
    insert into {table} as old ({columns})
    select {columns} from json_populate_recordset(null::{table}, {rows}::json)
    where (select fence from held) = {fence}
    on conflict ({key}) do {action}
    returning 1
)
select (select fence from held), (select count(*) from put)
"""

_UPDATE = "update set {sets} where ({old}) is distinct from ({new})"

# SQLSTATEs and their classes. What a row can be at fault for: types, constraints, views, triggers.
_REFUSALS = ("22", "23", "44", "P0001")
# Serialization and deadlock, connection, resources, locks, timeouts, shutdown; a server turned replica.
_PASSING = ("40", "08", "53", "55P03", "57", "25006", "25P")
_SAME_KEY_TWICE = "21000"


def create_fence_table(dsn: str) -> None:
    """Create the table `trueup_fence` where it is not there; needs the right to create tables.

    Those who write need SELECT, INSERT and UPDATE on it.
    """
    with _psycopg().connect(dsn) as connection:
        # Two sessions that create it at once would collide in the catalogue.
        connection.execute("select pg_advisory_xact_lock(hashtext('trueup_fence'))")
        connection.execute(_FENCE_TABLE)


class FencedTable:
    """A table whose writes hold the fence of their partition.

    `dsn` is a libpq connection string: the connection is the table's own, made at the first use and anew
    after a loss. It keeps no settings, so poolers may share it. One thread uses it at a time.
    `table` may be qualified (`schema.table`), `key` are the columns of a unique constraint of it, `target`
    is its name in `trueup_fence`, by default `table`. The server ends a write after `statement_seconds`.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        columns: Sequence[str],
        key: Sequence[str],
        target: str | None = None,
        statement_seconds: float = 15.0,
    ) -> None:
        if not set(key) <= set(columns):
            raise JobError(
                f"The key of {table} ({', '.join(key)}) is not among its columns: {', '.join(columns)}."
            )
        self._dsn = dsn
        self._table = table
        self._columns = tuple(columns)
        self._key = tuple(key)
        self._target = target or table
        self._timeout = round(statement_seconds * 1000)
        self._open: psycopg.Connection[tuple[Any, ...]] | None = None

    def close(self) -> None:
        """Give the connection back; the next use makes a new one."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def raise_fence(self, partition_id: str, fence: int) -> None:
        """Raise the partition's fence to ours; it is never lowered. Waits for a write in flight.

        Raises Superseded where it is higher already, and Transient.
        """
        # Twice as long as a write may take, so as to outlast the one that it waits for.
        (stored,) = self._ask(_RAISE, partition=partition_id, fence=fence, timeout=2 * self._timeout)
        if stored > fence:
            raise self._superseded(partition_id, fence, stored)

    def upsert(self, rows: Sequence[Row], partition_id: str, fence: int) -> Outcome:
        """Insert or update rows, each a dict of exactly the columns, while the partition's fence is ours.

        Returns how many were written (new, or other values) and unchanged; refused are the rows that a type,
        a constraint or a trigger does not take, each with PostgreSQL's reason. They are found by halving the
        rows; each half is a write of its own, under the fence.
        After an error the same rows can be upserted again; those that got through are then unchanged.

        Raises Superseded at a higher fence, Transient, and JobError for rows with other columns, without
        their key or with the same one, and where `raise_fence` was not called.
        """
        self._check(rows)
        return self._upsert(rows, partition_id, fence) if rows else Outcome()

    def _upsert(self, rows: Sequence[Row], partition_id: str, fence: int) -> Outcome:
        try:
            held, written = self._ask(
                _UPSERT, partition=partition_id, fence=fence, timeout=self._timeout, rows=_as_json(rows)
            )
        except _RefusedRows as error:
            if len(rows) == 1:
                return Outcome(refused=[(rows[0], error.what)])
            half = len(rows) // 2
            first = self._upsert(rows[:half], partition_id, fence)
            return first.plus(self._upsert(rows[half:], partition_id, fence))
        self._check_held(partition_id, fence, held)
        return Outcome(written=written, unchanged=len(rows) - written)

    def _check_held(self, partition_id: str, ours: int, held: int | None) -> None:
        """Compare what the statement did: it wrote nothing where the fence was not ours."""
        if held is not None and held > ours:
            raise self._superseded(partition_id, ours, held)
        if held != ours:
            found = "was never raised" if held is None else f"is {held}"
            raise JobError(
                f"{self._named(partition_id)} {found}; ours is {ours}.",
                remedy="Call the table's raise_fence(part.id, ctx.fence) in the job's raise_fence.",
            )

    def _superseded(self, partition_id: str, ours: int, theirs: int) -> Superseded:
        return Superseded(
            f"{self._named(partition_id)} is {theirs}; ours is {ours}.", ours=ours, theirs=theirs
        )

    def _named(self, partition_id: str) -> str:
        return f"The fence of {self._target}, partition {partition_id},"

    def _check(self, rows: Sequence[Row]) -> None:
        keys, columns = set(), set(self._columns)
        for row in rows:
            if row.keys() != columns:
                raise self._wrong(
                    row, f"has other columns ({', '.join(sorted(map(str, row.keys() ^ columns)))})"
                )
            key = tuple(row[name] for name in self._key)
            if None in key:
                raise self._wrong(row, "lacks a part of its key")
            if key in keys:
                raise self._wrong(row, "has the key of another one in the same write")
            keys.add(key)

    def _wrong(self, row: Row, what: str) -> JobError:
        return JobError(
            f"A row for table {self._table} {what}: {dict(row)}.",
            remedy=f"A row has the columns {', '.join(self._columns)}; no two share {', '.join(self._key)}.",
        )

    def _ask(self, statement: str, **values: Any) -> tuple[Any, ...]:
        """The row that the last statement of the message returns; PostgreSQL's errors by our names."""
        psycopg = _psycopg()
        try:
            # A ClientCursor puts the values into the text: one message, and the server does not ask back.
            with psycopg.ClientCursor(self._connection()) as cursor:
                cursor.execute(self._composed(statement, values))
                cursor.nextset()
                (row,) = cursor.fetchall()
        except psycopg.Error as error:
            named = _named_error(error)
            if named is None:
                raise
            raise named from error
        return tuple(row)

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._open is None or self._open.closed:
            self._open = _psycopg().connect(self._dsn, autocommit=True)
        return self._open

    def _composed(self, statement: str, values: Mapping[str, Any]) -> sql.Composed:
        from psycopg import sql

        literals = {name: sql.Literal(value) for name, value in values.items()}
        return sql.SQL(statement).format(**self._parts, **literals)

    @cached_property
    def _parts(self) -> dict[str, sql.Composable]:
        """What is the same in all statements, quoted."""
        from psycopg import sql

        return {
            "target": sql.Literal(self._target),
            "table": sql.Identifier(*self._table.split(".")),
            "columns": _names(self._columns),
            "key": _names(self._key),
            "action": self._action(),
        }

    def _action(self) -> sql.Composable:
        from psycopg import sql

        others = [name for name in self._columns if name not in self._key]
        if not others:
            return sql.SQL("nothing")
        sets = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others]
        return sql.SQL(_UPDATE).format(
            sets=sql.SQL(", ").join(sets), old=_names(others, "old"), new=_names(others, "excluded")
        )


class _RefusedRows(JobError):
    """At least one of the rows is not taken, and none was written."""


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise JobError(
            "PostgreSQL needs the package psycopg, which is not installed.",
            remedy="Install the extra: pip install 'trueup[postgres]'.",
        ) from error
    return psycopg


def _named_error(error: psycopg.Error) -> JobError | None:
    state, text = error.sqlstate, str(error).strip()
    if state is None:  # no word from the server: the connection was lost, or none could be made
        lost = isinstance(error, _psycopg().OperationalError)
        return Transient(f"PostgreSQL did not answer: {text}") if lost else None
    if state.startswith(_REFUSALS):
        return _RefusedRows(text)
    if state.startswith(_PASSING):
        return Transient(f"PostgreSQL gave up: {text}")
    if state == _SAME_KEY_TWICE:
        return JobError(f"Two rows of one write have the same key: {text}", remedy="Give each key once.")
    return None


def _names(columns: Sequence[str], of: str = "") -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(sql.Identifier(of, name) if of else sql.Identifier(name) for name in columns)


def _as_json(rows: Sequence[Row]) -> str:
    """The rows as JSON, from which the columns' own types read them: one parameter, whatever the types."""
    plain = [{name: _number_or_text(value) for name, value in row.items()} for row in rows]
    return json.dumps(plain, default=_text, ensure_ascii=False)


def _number_or_text(value: Any) -> Any:
    """JSON has no word for NaN and infinity; PostgreSQL reads them from text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, date | time | timedelta | Decimal | UUID):
        return str(value)
    raise JobError(
        f"A {type(value).__name__} cannot be written to PostgreSQL: {value!r}.",
        remedy="Make it text, a number, bytes, a bool, a date, a time, a list or a dict in `transform`.",
    )
