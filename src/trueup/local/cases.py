"""Data for reconciliations: cases with their events, their status, and a copy of that; made from a seed.

`case_events` is a ledger that only grows; `case_status` is what a service keeps of it; the DynamoDB table is
the copy that a portal reads. All three agree until something is damaged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql

CASES = 300_000
STATES = ("open", "waiting", "paid", "closed")
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_BATCH = 25  # what a BatchWriteItem takes

_TABLES = """
create table {events} (case_id text collate "C", seq int, status text not null,
                       amount numeric(18, 4) not null, primary key (case_id, seq));
create table {status} (case_id text collate "C" primary key, status text not null, paid numeric not null,
                       events int not null, updated_at timestamptz not null default now());
"""
_FOLD = """
insert into {status}
select case_id, (array_agg(status order by seq desc))[1], sum(amount), count(*),
       {first}::timestamptz + max(seq) * interval '1 minute'
from {events} group by case_id
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a case."""

    case_id: str
    seq: int
    status: str
    amount: Decimal


def events(seed: int, cases: int = CASES) -> Iterator[Event]:
    """The events of so many cases, one to five of each, in order; the same seed gives the same."""
    rng = random.Random(seed)
    for number in range(cases):
        for seq in range(1, rng.randrange(1, 6) + 1):
            amount = Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-4)
            yield Event(f"case-{number:07d}", seq, rng.choice(STATES), amount)


def make_tables(
    dsn: str, seed: int, cases: int = CASES, *, ledger: str = "case_events", status: str = "case_status"
) -> None:
    """Create both PostgreSQL tables and fill them; PostgreSQL itself folds the events to the status."""
    names = {"events": sql.Identifier(ledger), "status": sql.Identifier(status)}
    with psycopg.connect(dsn) as connection:
        connection.execute(sql.SQL(_TABLES).format(**names))
        with connection.cursor().copy(sql.SQL("copy {events} from stdin").format(**names)) as copy:
            for one in events(seed, cases):
                copy.write_row((one.case_id, one.seq, one.status, one.amount))
        connection.execute(sql.SQL(_FOLD).format(**names, first=sql.Literal(_FIRST.isoformat())))


def copy_to_dynamodb(dsn: str, client: Any, table: str, *, status: str = "case_status") -> int:
    """Put every row of the status into a DynamoDB table, whose key is `case_id`, and give their number."""
    rows = 0
    with psycopg.connect(dsn) as connection, connection.cursor("cases") as cursor:
        cursor.execute(
            sql.SQL("select case_id, status, paid, events, updated_at from {}").format(sql.Identifier(status))
        )
        found = iter(cursor)
        while batch := list(islice(found, _BATCH)):
            _put(client, table, batch)
            rows += len(batch)
    return rows


def _put(client: Any, table: str, batch: list[Any]) -> None:
    wanted: Any = {table: [{"PutRequest": {"Item": _item(*row)}} for row in batch]}
    while wanted:
        wanted = client.batch_write_item(RequestItems=wanted).get("UnprocessedItems")


def _item(case_id: str, status: str, paid: Decimal, number: int, updated_at: datetime) -> dict[str, Any]:
    since = updated_at - datetime(1970, 1, 1, tzinfo=UTC)
    return {
        "case_id": {"S": case_id},
        "status": {"S": status},
        "paid": {"N": format(paid, "f")},
        "events": {"N": str(number)},
        "updatedAt": {"N": str(since // timedelta(milliseconds=1))},
    }
