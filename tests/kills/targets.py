"""The tables that the jobs write, the witnesses beside them, and what both must hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple

import psycopg
from boto3.dynamodb.types import TypeDeserializer
from psycopg import sql

from trueup.ledger.partitions import FENCE_EPOCH
from trueup.local.expected import check_rows, check_summary
from trueup.local.stores import create_table

from .driving import Driven, Stack

# A BEFORE trigger sees every row that a statement applies, those that turn out to be the same as before too.
WITNESS = """
create table witness (
    n bigserial, target text, fence bigint, partition text,
    time_hour timestamptz, carrier text, flight integer, origin text
);
create function bear_witness() returns trigger language plpgsql as $$
declare part text := 'date=' || make_date(new.year, new.month, new.day);
begin
    insert into witness (target, fence, partition, time_hour, carrier, flight, origin) values (
        tg_table_name,
        (select fence from trueup_fence f where f.target = tg_table_name and f.partition = part),
        part, new.time_hour, new.carrier, new.flight, new.origin);
    return new;
end $$;
"""

APPLIED = """
select fence, partition,
    to_char(time_hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), carrier, flight, origin
from witness where target = %s order by n
"""


class Applied(NamedTuple):
    """Rows that one task applied to one partition at once: those of a write, or the one of a trigger.

    `after` is the cursor before the write, where the witness was told.
    """

    launch: int
    partition: str
    rows: tuple[Hashable, ...]
    after: str | None


def create_witness(dsn: str) -> None:
    """The table that only grows, and the function that fills it."""
    with psycopg.connect(dsn) as connection:
        connection.execute(WITNESS.encode())


def create_target(stack: Stack, job: str, name: str) -> None:
    """An empty table for a job, and its witness."""
    if job == "flights-summary":
        create_table(stack.dynamodb, name, ["route", "date"])
        create_table(stack.dynamodb, f"{name}-witness", ["partition", "write"])
        return
    statement = sql.SQL(
        "create table {0} (like flights including all);"
        "create trigger witness before insert on {0} for each row execute function bear_witness()"
    )
    with psycopg.connect(stack.dsn) as connection:
        connection.execute(statement.format(sql.Identifier(name)))


def differences(driven: Driven, days: Mapping[date, bytes]) -> list[str]:
    """What differs between the target and an independent aggregate of the days."""
    if driven.shape.job == "flights-summary":
        return check_summary(driven.stack.dynamodb, driven.table, days.items())
    return check_rows(driven.stack.dsn, driven.table, days.items())


def everything(driven: Driven) -> list[str]:
    """The whole target with its fences, and the whole witness: equal only where nothing was touched."""
    if driven.shape.job == "flights-summary":
        return sorted(map(str, _scan(driven.stack, driven.table)))
    with psycopg.connect(driven.stack.dsn) as connection:
        rows = connection.execute(
            sql.SQL("select t::text from {} t order by 1").format(sql.Identifier(driven.table))
        ).fetchall()
        fences = connection.execute(
            "select * from trueup_fence where target = %s order by 2", [driven.table]
        ).fetchall()
        return [*map(str, rows), *map(str, fences), *map(str, connection.execute(APPLIED, [driven.table]))]


def applied(driven: Driven) -> list[Applied]:
    """What the witness saw, in order."""
    if driven.shape.job == "flights-summary":
        return [
            Applied(
                int(item["fence"]) % FENCE_EPOCH,
                item["partition"],
                tuple(sorted(item["routes"])),
                None if item["after"] == "None" else item["after"],
            )
            for item in _scan(driven.stack, f"{driven.table}-witness")
        ]
    with psycopg.connect(driven.stack.dsn) as connection:
        found: Iterable[Any] = connection.execute(APPLIED, [driven.table]).fetchall()
    return [
        Applied(fence % FENCE_EPOCH, part, ((hour, carrier, str(flight), origin),), None)
        for fence, part, hour, carrier, flight, origin in found
    ]


def _scan(stack: Stack, table: str) -> list[dict[str, Any]]:
    read = TypeDeserializer().deserialize
    pages = stack.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return [{name: read(value) for name, value in item.items()} for page in pages for item in page["Items"]]


def row_count(driven: Driven) -> int:
    """How many rows the target and its witness have, as the stores themselves count them."""
    if driven.shape.job == "flights-summary":
        tables = (driven.table, f"{driven.table}-witness")
        return sum(driven.stack.dynamodb.scan(TableName=one, Select="COUNT")["Count"] for one in tables)
    with psycopg.connect(driven.stack.dsn) as connection:
        counts = sql.SQL(
            "select (select count(*) from {}) + (select count(*) from witness where target = {})"
        )
        found = connection.execute(counts.format(sql.Identifier(driven.table), sql.Literal(driven.table)))
        (number,) = found.fetchone() or (0,)
    return int(number)
