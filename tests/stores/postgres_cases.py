"""A PostgreSQL table of a test's own, tasks that own it, and a way to hold a write where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from trueup import Outcome
from trueup.sources.postgres import FencedTable

PART = "date=2013-01-05"
COLUMNS = ("id", "name", "amount")

# A row named `wait` blocks its statement while the test holds the table's advisory lock, and one named
# `raise <sqlstate>` fails with that error: this is how a write is caught between its check and its commit.
TABLE = """
create table {name} (id int primary key, name varchar(12) not null, amount numeric check (amount >= 0));
create function obey_{name}() returns trigger language plpgsql as $$
begin
    if new.name = 'wait' then perform pg_advisory_xact_lock_shared(tg_relid::bigint); end if;
    if new.name like 'raise %' then
        raise exception 'told to' using errcode = substr(new.name, 7);
    end if;
    return new;
end $$;
create trigger obey before insert or update on {name} for each row execute function obey_{name}();
"""


class Database:
    """A table of its own for each test, and a connection that is the test's and no task's."""

    def __init__(self, dsn: str, connection: psycopg.Connection[Any]) -> None:
        self.dsn = dsn
        self.name = f"amounts_{uuid4().hex[:8]}"
        self._connection = connection
        self.sql(TABLE.format(name=self.name))

    def sql(self, statement: Any, *values: Any) -> list[Any]:
        """Run a statement, `{}` in it being the table, and give its rows."""
        if isinstance(statement, str) and "{}" in statement:
            statement = sql.SQL(statement).format(sql.Identifier(self.name))  # type: ignore[arg-type]
        cursor = self._connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []

    def names(self) -> dict[int, str]:
        return dict(self.sql("select id, name from {}"))

    @contextmanager
    def owner(
        self, fence: int | None = None, columns: Sequence[str] = COLUMNS, **options: Any
    ) -> Iterator[FencedTable]:
        """The table as one task has it; with `fence`, after it raised it."""
        with closing(FencedTable(self.dsn, self.name, columns, ["id"], **options)) as table:
            if fence is not None:
                table.raise_fence(PART, fence)
            yield table

    def hold(self) -> None:
        """From now on, whoever writes a row named `wait` waits."""
        self.sql("select pg_advisory_lock(%s::regclass::oid::bigint)", self.name)

    def let_go(self) -> None:
        self.sql("select pg_advisory_unlock(%s::regclass::oid::bigint)", self.name)

    def wait_until_blocked(self, sessions: int) -> None:
        """Return when so many sessions, busy with this table, wait for a lock that another one holds."""
        deadline = time.monotonic() + 30
        blocked = """
            select count(*) from pg_stat_activity
            where query like %s and cardinality(pg_blocking_pids(pid)) > 0
        """
        while self.sql(blocked, f"%{self.name}%") != [(sessions,)]:
            assert time.monotonic() < deadline, f"{sessions} sessions should wait by now"


def row(number: int, name: str = "a", amount: Any = 1) -> dict[str, Any]:
    return {"id": number, "name": name, "amount": amount}


def upsert(table: FencedTable, rows: list[dict[str, Any]], fence: int) -> Outcome:
    """What `table.upsert` says, to be compared: an Outcome's refused rows may be a list or a tuple."""
    outcome = table.upsert(rows, PART, fence)
    return replace(outcome, refused=tuple(outcome.refused))
