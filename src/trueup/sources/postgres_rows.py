"""Rows of a PostgreSQL table or view, by an ordered COPY in canonical text; and their repair.

Each scan is one snapshot, read only. Order and uniqueness are the server's to warrant: `order by` the key in
bytes, and a unique index over it; without such an index the comparer looks itself.
"""

from __future__ import annotations

import select
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trueup.compare import Applied, Change, Key, Layout, Scan, Span
from trueup.compare.canonical import divided
from trueup.compare.lines import ABSENT, NULL, unescape
from trueup.errors import SourceError, Transient
from trueup.model.reconcile import Side
from trueup.sources.postgres import _named_error, _psycopg
from trueup.sources.postgres_columns import SETTINGS, Described, described

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

__all__ = ["PostgresRows"]

_BLOCK_BYTES = 128 * 1024
_KEYS_AT_ONCE = 500
_BEGIN = f"begin isolation level repeatable read, read only; {SETTINGS}"


class PostgresRows:
    """A table, view or materialised view as a source of a reconciliation, and as a target of its repair.

    `dsn` is a libpq connection string, `table` may be qualified, `where` is SQL that limits the rows.
    `counts`: each scan counts its rows first, in the same snapshot and by a plan of its own.
    Each call makes a connection of its own, so that both sides of a comparison are read side by side.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        layout: Layout,
        side: Side,
        where: str = "",
        connect_seconds: int = 10,
        counts: bool = False,
    ) -> None:
        self._dsn = dsn
        self._table = table
        self._layout = layout
        self._side = side
        self._where = where
        self._connect_seconds = connect_seconds
        self._counts = counts

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The rows whose keys are in the span, as they are now. Raises SourceError and Transient."""
        rows = self._scanned(span)
        distinct, now, counted = next(rows)
        return Scan(rows, ordered=True, distinct=distinct, as_of=now, counted=counted)

    def _scanned(self, span: Span) -> Iterator[Any]:
        """First whether keys are warranted to be there once, the instant, and the count; then the blocks."""
        with self._session(_BEGIN) as connection:
            columns, distinct = described(connection, self._quoted(connection), self._layout, self._side)
            row = connection.execute("select statement_timestamp()").fetchone()
            within = _within(columns, self._layout, span)
            yield distinct, row[0] if row else None, self._counted(connection, within)
            yield from _copied(connection, self._select(columns, within))

    def _counted(self, connection: psycopg.Connection[Any], condition: sql.Composable) -> int | None:
        from psycopg import sql

        if not self._counts:
            return None
        statement = sql.SQL("select count(*) from {} where {} and {}").format(
            self._identifier(), self._limit(), condition
        )
        row = connection.execute(statement).fetchone()
        return int(row[0]) if row else None

    def _limit(self) -> sql.Composable:
        from psycopg import sql

        return sql.SQL("({})").format(sql.SQL(self._where)) if self._where else sql.SQL("true")

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys, or of what begins with them. Raises SourceError and Transient."""
        found: dict[Key, list[bytes]] = defaultdict(list)
        wanted = dict.fromkeys(keys)
        with self._session(_BEGIN) as connection:
            columns, _ = described(connection, self._quoted(connection), self._layout, self._side)
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                asked = _any_of(columns, keys[start : start + _KEYS_AT_ONCE])
                for block in _copied(connection, self._select(columns, asked)):
                    for line in block.removesuffix(b"\n").split(b"\n"):
                        key = self._layout.key_of(line)[: len(keys[0])]
                        if key in wanted:
                            found[key].append(line)
        return found

    def quantiles(self, count: int) -> list[Key]:
        """Keys that cut the rows into so many parts of the same size, in order; fewer where rows are few.

        Raises SourceError and Transient.
        """
        from psycopg import sql

        with self._session(_BEGIN) as connection:
            columns, _ = described(connection, self._quoted(connection), self._layout, self._side)
            key = columns[: len(self._layout.key)]
            names = [sql.Identifier(f"key{number}") for number in range(len(key))]
            statement = sql.SQL(
                "copy (select {} from (select {}, row_number() over (order by {}) as number, "
                "count(*) over () as total from {} where {} and {}) as numbered "
                "where number % greatest(total / {}, 1) = 0 order by number limit {}) to stdout"
            ).format(
                sql.SQL(", ").join(names),
                sql.SQL(", ").join(
                    sql.SQL("{} as {}").format(one.expression, name)
                    for one, name in zip(key, names, strict=True)
                ),
                sql.SQL(", ").join(one.order for one in key),
                self._identifier(),
                self._limit(),
                sql.SQL(" and ").join(sql.SQL("{} is not null").format(one.expression) for one in key),
                sql.Literal(count),
                sql.Literal(count - 1),
            )
            lines = b"".join(_copied(connection, statement)).splitlines()
        return [self._layout.key_of(line) for line in lines]

    def apply(self, change: Change) -> Applied:
        """Make one row as wanted if it is as expected, in one statement.

        The columns that are compared are written, the others are left to the table's defaults and triggers.
        Raises SourceError where the key is not unique or the table refuses the row, and Transient.
        """
        with self._session(f"begin; {SETTINGS}") as connection:
            columns, distinct = described(connection, self._quoted(connection), self._layout, self._side)
            if not distinct:
                raise SourceError(
                    f"{self._named} has no unique index over its key: a change could meet another row.",
                    remedy="Create one, or repair it by hand.",
                )
            cursor = connection.execute(_changed(self._identifier(), columns, change))
            done = cursor.rowcount == 1
            connection.execute("commit")
        return Applied.APPLIED if done else Applied.STALE_TARGET

    def _select(self, columns: Sequence[Described], condition: sql.Composable) -> sql.Composed:
        from psycopg import sql

        return sql.SQL("copy (select {} from {} where {} and {} order by {}) to stdout").format(
            sql.SQL(", ").join(one.expression for one in columns),
            self._identifier(),
            self._limit(),
            condition,
            # Rows without a key come first: those that resume after a key have them behind.
            sql.SQL(", ").join(
                sql.SQL("{}" if one.not_null else "{} nulls first").format(one.order)
                for one in columns[: len(self._layout.key)]
            ),
        )

    def _identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(*self._table.split("."))

    def _quoted(self, connection: psycopg.Connection[Any]) -> str:
        return self._identifier().as_string(connection)

    @contextmanager
    def _session(self, begin: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection in a transaction; PostgreSQL's errors by our names, with the table."""
        psycopg = _psycopg()
        connection = None
        try:
            connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                client_encoding="utf8",
                connect_timeout=self._connect_seconds,
                cursor_factory=psycopg.ClientCursor,
            )
            connection.execute(begin)
            yield connection
        except psycopg.Error as error:
            named = _named_error(error)
            what = f"{self._named} cannot be read or changed: {str(error).strip()}"
            raise (Transient(what) if isinstance(named, Transient) else SourceError(what)) from error
        finally:
            # Closed, never rolled back: a COPY that nobody reads on would have to be read to its end.
            if connection is not None:
                connection.close()

    @property
    def _named(self) -> str:
        return f"Table {self._table} in PostgreSQL, the {self._side},"


def _copied(connection: psycopg.Connection[Any], statement: sql.Composed) -> Iterator[bytes]:
    """What a COPY sends, in blocks; at its end the server's own count of rows must be what came.

    This asks libpq directly: psycopg's `Copy.read` costs several times as much a row as reading it does.
    """
    psycopg = _psycopg()
    server = connection.pgconn
    _check(psycopg, server.exec_(statement.as_bytes(connection)), psycopg.pq.ExecStatus.COPY_OUT)
    rows, held, size = 0, [], 0
    for lines in _received(server):
        rows += len(lines)
        held.append(b"".join(lines))
        size += len(held[-1])
        if size >= _BLOCK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
    result: Any = server.get_result()
    _check(psycopg, result, psycopg.pq.ExecStatus.COMMAND_OK)
    while server.get_result() is not None:
        pass
    if result.command_tuples != rows:
        raise SourceError(f"PostgreSQL sent {result.command_tuples} rows, and {rows} came.")


def _received(server: Any) -> Iterator[list[Any]]:
    """The lines of a COPY as they come, those that libpq has in its buffer at a time: some kilobytes.

    Waiting is done here and not in libpq, so that other threads go on.
    """
    receive = server.get_copy_data
    length = 0
    while length >= 0:
        lines: list[Any] = []
        keep = lines.append
        while (received := receive(1))[0] > 0:
            keep(received[1])
        length = received[0]
        if lines:
            yield lines
        elif length == 0:
            select.select([server.socket], [], [])
        if length == 0:
            server.consume_input()


def _check(psycopg: Any, result: Any, status: Any) -> None:
    if result is None:
        raise psycopg.OperationalError("the connection was lost")
    if result.status != status:
        raise psycopg.errors.error_from_result(result)


def _within(columns: Sequence[Described], layout: Layout, span: Span) -> sql.Composable:
    from psycopg import sql

    key = columns[: len(layout.key)]
    # Where a part of a key may be NULL a comparison may be unknown: such rows are shown, not lost.
    unknown = sql.SQL("" if all(one.not_null for one in key) else " is not false")
    bounds = [(">=", span.low, unknown), ("<", span.high, unknown), (">", span.after, sql.SQL(""))]
    terms = [
        _compared(key, operator, bound) + after for operator, bound, after in bounds if bound is not None
    ]
    return sql.SQL(" and ").join(terms) if terms else sql.SQL("true")


def _compared(key: Sequence[Described], operator: str, bound: Key) -> sql.Composed:
    from psycopg import sql

    used = list(zip(key, bound, strict=False))
    return sql.SQL("(({}) {} ({}))").format(
        sql.SQL(", ").join(one.order for one, _ in used),
        sql.SQL(operator),
        sql.SQL(", ").join(one.bound(text) for one, text in used),
    )


def _any_of(columns: Sequence[Described], keys: Sequence[Key]) -> sql.Composed:
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


def _changed(table: sql.Identifier, columns: Sequence[Described], change: Change) -> sql.Composed:
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
    key = _any_of(columns, [change.key])
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
