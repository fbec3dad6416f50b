"""What the tables of the flights must hold, found by other means than the jobs use.

The summary is added up in one pass with exact fractions; the rows are loaded by PostgreSQL's own COPY.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
from boto3.dynamodb.types import TypeDeserializer
from psycopg import sql

Days = Iterable[tuple[date, bytes]]
"""Each day with its flights as CSV, as `trueup.local.flights.days` gives them."""

Row = Mapping[str, Any]

_MOST = 10
_ADDED_UP = {"dep_delay": "departure_delay", "arr_delay": "arrival_delay"}


def check_summary(client: Any, table: str, days: Days) -> list[str]:
    """What differs between the DynamoDB table and the summary of the days: the first of it, or nothing."""
    return compare(expected_summary(days), stored_summary(client, table))


def check_rows(dsn: str, table: str, days: Days) -> list[str]:
    """What differs between the PostgreSQL table and the flights of the days: the first of it, or nothing."""
    expected, found = sql.Identifier("expected"), sql.Identifier(*table.split("."))
    with psycopg.connect(dsn) as connection:
        connection.execute(
            sql.SQL("create temporary table {} (like {}) on commit drop").format(expected, found)
        )
        for _, data in days:
            _copy(connection, expected, data)
        missing = _rows_only_in(connection, expected, found)
        unexpected = _rows_only_in(connection, found, expected)
    return [f"missing: {row}" for row in missing] + [f"unexpected: {row}" for row in unexpected]


def _copy(connection: psycopg.Connection[Any], into: sql.Identifier, data: bytes) -> None:
    header = data[: data.index(b"\n")].decode().strip().split(",")
    columns = sql.SQL(", ").join(map(sql.Identifier, header))
    statement = sql.SQL("copy {} ({}) from stdin with (format csv, header, null 'NA')").format(into, columns)
    with connection.cursor().copy(statement) as copy:
        copy.write(data)


def _rows_only_in(
    connection: psycopg.Connection[Any], one: sql.Identifier, other: sql.Identifier
) -> list[str]:
    statement = sql.SQL("select t::text from (select * from {} except all select * from {}) t limit {}")
    return [row for (row,) in connection.execute(statement.format(one, other, sql.Literal(_MOST)))]


def stored_summary(client: Any, table: str) -> dict[Hashable, Row]:
    """The items of a table by (route, date), without their fences."""
    read = TypeDeserializer().deserialize
    found: dict[Hashable, Row] = {}
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            row = {name: read(value) for name, value in item.items() if name != "fence"}
            found[row["route"], row["date"]] = row
    return found


def expected_summary(days: Days) -> dict[Hashable, Row]:
    """One row for each (route, date), with numbers that compare equal to those that DynamoDB gives back."""
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for day, data in days:
        for flight in _flights(data):
            key = (f"{flight['origin']}#{flight['carrier']}", day.isoformat())
            if key not in totals:
                totals[key] = _nothing(flight, day)
            _add(totals[key], flight)
    return {key: _with_means(total) for key, total in totals.items()}


def _flights(data: bytes) -> Iterator[dict[str, str]]:
    header, *lines = data.decode().split()  # no field of this source has a space, a comma or a quote
    names = header.split(",")
    for line in lines:
        yield dict(zip(names, line.split(","), strict=True))


def _nothing(flight: Mapping[str, str], day: date) -> dict[str, Any]:
    origin, carrier = flight["origin"], flight["carrier"]
    total: dict[str, Any] = {"route": f"{origin}#{carrier}", "date": day.isoformat()}
    total |= {
        "origin": origin,
        "carrier": carrier,
        "flights": 0,
        "cancelled": 0,
        "air_minutes": 0,
        "miles": 0,
    }
    return total | {f"{name}_{figure}": 0 for name in _ADDED_UP.values() for figure in ("count", "sum")}


def _add(total: dict[str, Any], flight: Mapping[str, str]) -> None:
    total["flights"] += 1
    if flight["dep_time"] == "NA":
        total["cancelled"] += 1
    else:
        total["miles"] += int(flight["distance"])
    if flight["air_time"] != "NA":
        total["air_minutes"] += int(flight["air_time"])
    for column, name in _ADDED_UP.items():
        if flight[column] != "NA":
            delay = int(flight[column])
            total[f"{name}_count"] += 1
            total[f"{name}_sum"] += delay
            total[f"{name}_max"] = max(delay, total.get(f"{name}_max", delay))


def _with_means(total: dict[str, Any]) -> Row:
    """With means to hundredths, halves to the even one; none where no delay is known."""
    for name in _ADDED_UP.values():
        if count := total[f"{name}_count"]:
            hundredths = round(Fraction(total[f"{name}_sum"] * 100, count))
            total[f"{name}_mean"] = Decimal(hundredths).scaleb(-2)
    return total


def compare(expected: Mapping[Hashable, Row], found: Mapping[Hashable, Row]) -> list[str]:
    """What differs, one line for each of the first rows, the number of the others last; empty when equal."""
    differences = list(_differences(expected, found))
    more = len(differences) - _MOST
    return differences if more <= 0 else [*differences[:_MOST], f"and {more} more"]


def _differences(expected: Mapping[Hashable, Row], found: Mapping[Hashable, Row]) -> Iterator[str]:
    for key, row in expected.items():
        if key not in found:
            yield f"missing: {key}"
        elif row != found[key]:
            names = sorted(
                name for name in row.keys() | found[key].keys() if row.get(name) != found[key].get(name)
            )
            wanted, actual = ({name: side.get(name) for name in names} for side in (row, found[key]))
            yield f"{key}: expected {wanted}, found {actual}"
    for key in found.keys() - expected.keys():
        yield f"unexpected: {key}"
