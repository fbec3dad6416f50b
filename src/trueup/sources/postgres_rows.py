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
from trueup.errors import SourceError, Transient
from trueup.model.reconcile import Side
from trueup.sources.postgres import _named_error, _psycopg
from trueup.sources.postgres_changes import changed
from trueup.sources.postgres_columns import SETTINGS, Described, any_of, described

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
    Each reading makes a connection of its own, so that both sides of a comparison are read side by side;
    changes share one until `close`. One thread changes at a time.
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
        self._writing: psycopg.Connection[Any] | None = None

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
                asked = any_of(columns, keys[start : start + _KEYS_AT_ONCE])
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
        with self._kept() as connection:
            connection.execute(f"begin; {SETTINGS}")
            columns, distinct = described(connection, self._quoted(connection), self._layout, self._side)
            if not distinct:
                raise SourceError(
                    f"{self._named} has no unique index over its key: a change could meet another row.",
                    remedy="Create one, or repair it by hand.",
                )
            cursor = connection.execute(changed(self._identifier(), columns, change))
            done = cursor.rowcount == 1
            connection.execute("commit")
        return Applied.APPLIED if done else Applied.STALE_TARGET

    def close(self) -> None:
        """Give back the connection for changes; the next change makes a new one."""
        if self._writing is not None:
            self._writing.close()
            self._writing = None

    @contextmanager
    def _kept(self) -> Iterator[psycopg.Connection[Any]]:
        """The connection for changes, kept for the next one where all went well, closed where it did not."""
        with self._named_errors():
            connection, self._writing = self._writing or self._connected(), None
            try:
                yield connection
            except BaseException:
                connection.close()  # and with it what was not committed is undone
                raise
            self._writing = connection

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
        """A connection in a transaction."""
        with self._named_errors():
            connection = self._connected()
            try:
                connection.execute(begin)
                yield connection
            finally:
                # Closed, never rolled back: a COPY that nobody reads on would have to be read to its end.
                connection.close()

    def _connected(self) -> psycopg.Connection[Any]:
        library = _psycopg()
        connection: psycopg.Connection[Any] = library.connect(
            self._dsn,
            autocommit=True,
            client_encoding="utf8",
            connect_timeout=self._connect_seconds,
            cursor_factory=library.ClientCursor,
        )
        return connection

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """PostgreSQL's errors by our names, with the table."""
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            named = _named_error(error)
            what = f"{self._named} cannot be read or changed: {_without_values(error)}"
            raise (Transient(what) if isinstance(named, Transient) else SourceError(what)) from error

    @property
    def _named(self) -> str:
        return f"Table {self._table} in PostgreSQL, the {self._side},"


def _without_values(error: psycopg.Error) -> str:
    """What PostgreSQL says of a row that it refuses, but for the row: reports show it, and no values.

    Its DETAIL quotes rows (class 23), and what is no value of a type is quoted in the message (class 22).
    """
    state, said = error.sqlstate or "", error.diag
    if state[:2] not in ("22", "23"):
        return str(error).strip()
    what = said.message_primary if state.startswith("23") else None
    named = {"column": said.column_name, "constraint": said.constraint_name}
    places = "".join(f", {kind} {name}" for kind, name in named.items() if name and name not in (what or ""))
    return f"{what or type(error).__name__} (SQLSTATE {state}{places})"


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
