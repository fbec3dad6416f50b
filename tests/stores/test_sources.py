"""Every source of a reconciliation behaves alike: `trueup.testing.suites.source`, over each adapter."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from boto3.dynamodb.types import TypeSerializer
from psycopg import sql

from trueup.compare import Layout, Source
from trueup.local.postgres import postgres
from trueup.local.stores import BUCKET
from trueup.model.reconcile import ColumnType, ObjectsSource, Side
from trueup.sources.dynamodb_export import DynamoExport
from trueup.sources.dynamodb_rows import DynamoRows
from trueup.sources.objects import ObjectRows, S3Bucket
from trueup.sources.postgres_rows import PostgresRows
from trueup.testing.suites.source import SourceSuite

from .plain_values import plain, unique

Row = Mapping[str, Any]

SQL_TYPES = {
    ColumnType.INTEGER: "bigint",
    ColumnType.DECIMAL: "numeric(38, 18)",
    ColumnType.TEXT: "text",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.TIMESTAMP: "timestamptz",
    ColumnType.DATE: "date",
    ColumnType.UUID: "uuid",
    ColumnType.BYTES: "bytea",
}


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


class PostgresWorld:
    keeps_absent = False

    def __init__(self, dsn: str, keyed: bool) -> None:
        self._dsn = dsn
        self._keyed = keyed

    def source(self, layout: Layout, rows: Iterable[Row]) -> Source:
        name = unique()
        key = sql.SQL(", ").join(sql.Identifier(column.name) for column in layout.key)
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(SQL_TYPES[one.type]))
            for one in layout.columns
        ]
        if self._keyed:
            columns.append(sql.SQL("primary key ({})").format(key))
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("create table {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns))
            )
            for row in rows:
                connection.execute(
                    sql.SQL("insert into {} values ({})").format(
                        sql.Identifier(name), sql.SQL(", ").join(sql.Placeholder() for _ in layout.columns)
                    ),
                    [row[one.name] for one in layout.columns],
                )
        return PostgresRows(self._dsn, name, layout, Side.TRUTH)


class TestPostgresWithAKey(SourceSuite):
    @pytest.fixture
    def world(self, dsn: str) -> PostgresWorld:
        return PostgresWorld(dsn, keyed=True)


class TestPostgresWithout(SourceSuite):
    @pytest.fixture
    def world(self, dsn: str) -> PostgresWorld:
        return PostgresWorld(dsn, keyed=False)


def item(row: Row) -> dict[str, Any]:
    serialize = TypeSerializer().serialize
    kept = (bytes, bool, int, Decimal, type(None))
    return {name: serialize(one if isinstance(one, kept) else plain(one)) for name, one in row.items()}


class DynamoWorld:
    keeps_absent = True

    def __init__(self, client: Any, segments: int, *, counts: bool = False) -> None:
        self._client = client
        self._segments = segments
        self._counts = counts

    def source(self, layout: Layout, rows: Iterable[Row]) -> Source:
        name = unique()
        kinds = {ColumnType.INTEGER: "N", ColumnType.TEXT: "S"}
        self._client.create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": column.name, "KeyType": kind}
                for column, kind in zip(layout.key, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[
                {"AttributeName": column.name, "AttributeType": kinds[column.type]} for column in layout.key
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        for row in rows:
            self._client.put_item(TableName=name, Item=item(row))
        options: Any = {"absent": "kept", "segments": self._segments, "counts": self._counts}
        return DynamoRows(self._client, name, layout, Side.TRUTH, **options)


class TestDynamoTable(SourceSuite):
    @pytest.fixture
    def world(self, moto_clients: dict[str, Any]) -> DynamoWorld:
        return DynamoWorld(moto_clients["dynamodb"], segments=1)


class TestDynamoTableOnMiniStack(SourceSuite):
    @pytest.fixture
    def world(self, ministack_clients: dict[str, Any]) -> DynamoWorld:
        return DynamoWorld(ministack_clients["dynamodb"], segments=3, counts=True)


class ExportWorld:
    """An export as DynamoDB writes it: a summary, a list of files, and the files."""

    keeps_absent = True

    def __init__(self, client: Any) -> None:
        self._client = client

    def source(self, layout: Layout, rows: Iterable[Row]) -> Source:
        prefix = f"{unique()}/AWSDynamoDB/01234"
        # Rows in no order over two files.
        items = [item(row) for row in rows]
        entries = [self._file(f"{prefix}/data/{n}.json.gz", items[n::2]) for n in range(2)]
        summary = {
            "version": "2020-06-30",
            "exportTime": "2026-07-06T01:00:00.000Z",
            "itemCount": len(items),
            "outputFormat": "DYNAMODB_JSON",
        }
        self._put(f"{prefix}/manifest-summary.json", json.dumps(summary).encode())
        self._put(
            f"{prefix}/manifest-files.json", b"".join(json.dumps(one).encode() + b"\n" for one in entries)
        )
        return DynamoExport(S3Bucket(self._client, BUCKET), prefix, layout, Side.TRUTH, absent="kept")

    def _file(self, key: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        lines = (json.dumps({"Item": one}, default=lambda b: base64.b64encode(b).decode()) for one in items)
        data = gzip.compress("".join(f"{line}\n" for line in lines).encode())
        self._put(key, data)
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        return {"itemCount": len(items), "md5Checksum": digest, "etag": "x", "dataFileS3Key": key}

    def _put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=key, Body=data)


class TestDynamoExport(SourceSuite):
    @pytest.fixture
    def world(self, moto_clients: dict[str, Any]) -> ExportWorld:
        return ExportWorld(moto_clients["s3"])


def json_number(value: Any) -> Any:
    return value if isinstance(value, Decimal) else plain(value)


def json_lines(rows: list[Row]) -> bytes:
    """Decimals as JSON numbers of all their digits."""
    lines = []
    for row in rows:
        marked = json.dumps({name: plain(value) for name, value in row.items()})
        for value in row.values():
            if isinstance(value, Decimal):
                marked = marked.replace(f'"{value}"', f"{value}")
        lines.append(marked)
    return "".join(f"{line}\n" for line in lines).encode()


def csv_lines(names: list[str], rows: list[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    for row in rows:
        writer.writerow(["(null)" if row[name] is None else plain(row[name]) for name in names])
    return text.getvalue().encode()


class ObjectsWorld:
    def __init__(self, client: Any, form: str, suffix: str) -> None:
        self._client = client
        self._form = form
        self._suffix = suffix
        self.keeps_absent = form == "jsonl"

    def source(self, layout: Layout, rows: Iterable[Row]) -> Source:
        prefix = unique() + "/"
        every = list(rows)
        if self._form == "csv":
            values = tuple(
                one.model_copy(update={"truth": one.truth.model_copy(update={"nulls": ("(null)",)})})
                for one in layout.values
            )
            layout = Layout(layout.key, values)
        for number in range(2):
            some = every[number::2]
            data = json_lines(some) if self._form == "jsonl" else csv_lines(list(layout.names), some)
            self._client.put_object(
                Bucket=BUCKET,
                Key=f"{prefix}{number}{self._suffix}",
                Body=gzip.compress(data) if self._suffix.endswith(".gz") else data,
            )
        spec = ObjectsSource(kind="objects", location=f"s3://{BUCKET}/{prefix}", format=self._form)
        return ObjectRows(S3Bucket(self._client, BUCKET), prefix, spec, layout, Side.TRUTH)


class TestJsonLines(SourceSuite):
    @pytest.fixture(params=[".jsonl", ".jsonl.gz"])
    def world(self, request: pytest.FixtureRequest, moto_clients: dict[str, Any]) -> ObjectsWorld:
        return ObjectsWorld(moto_clients["s3"], "jsonl", request.param)


class TestCsv(SourceSuite):
    @pytest.fixture(params=[".csv", ".csv.gz"])
    def world(self, request: pytest.FixtureRequest, moto_clients: dict[str, Any]) -> ObjectsWorld:
        return ObjectsWorld(moto_clients["s3"], "csv", request.param)


# Used by no suite: that each type of the model is either tried above or has no rows of its own.
def test_every_type_is_tried() -> None:
    from trueup.testing.suites.source import VALUES

    untried = set(ColumnType) - set(VALUES)
    assert {ColumnType.FLOAT, ColumnType.JSON} == untried, list(itertools.chain(untried))
