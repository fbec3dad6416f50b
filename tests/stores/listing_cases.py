"""Rows as Parquet, and inventories as S3 makes them."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
from pyarrow import parquet

from trueup.compare import Layout
from trueup.local.stores import BUCKET
from trueup.model.reconcile import Column, ColumnType, InventorySource, ObjectsSource, Side
from trueup.sources.inventory import Inventory
from trueup.sources.objects import ObjectRows, S3Bucket

from .plain_values import plain, unique

Row = Mapping[str, Any]

ARROW_TYPES = {
    ColumnType.INTEGER: pa.int64(),
    ColumnType.DECIMAL: pa.decimal128(38, 18),
    ColumnType.TEXT: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.TIMESTAMP: pa.timestamp("us", "UTC"),
    ColumnType.DATE: pa.date32(),
    ColumnType.UUID: pa.uuid(),
    ColumnType.BYTES: pa.binary(),
}
EPOCH_TAKEN = "1783299600000"  # 2026-07-06T01:00:00Z


def file_of(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file, **options)
    return file.getvalue()


def table_of(names: Mapping[str, pa.DataType], rows: Sequence[Row]) -> pa.Table:
    columns = []
    for name, kind in names.items():
        values = [row.get(name) for row in rows]
        if kind == pa.uuid():
            values = [value if value is None else value.bytes for value in values]
        columns.append(pa.array(values, kind))
    return pa.table(columns, schema=pa.schema(list(names.items())))


def types_of(layout: Layout) -> dict[str, pa.DataType]:
    return {column.name: ARROW_TYPES[column.type] for column in layout.columns}


class ParquetWorld:
    keeps_absent = False

    def __init__(self, client: Any, **options: Any) -> None:
        self._client = client
        self._options = options

    def source(self, layout: Layout, rows: Iterable[Row]) -> ObjectRows:
        prefix, every = unique() + "/", list(rows)
        for number in range(2):
            data = file_of(table_of(types_of(layout), every[number::2]), row_group_size=2, **self._options)
            self._client.put_object(Bucket=BUCKET, Key=f"{prefix}{number}.parquet", Body=data)
        self._client.put_object(Bucket=BUCKET, Key=f"{prefix}_SUCCESS", Body=b"")
        spec = ObjectsSource(kind="objects", location=f"s3://{BUCKET}/{prefix}", format="parquet")
        return ObjectRows(S3Bucket(self._client, BUCKET), prefix, spec, layout, Side.TRUTH)


class InventoryWorld:
    """An inventory of two files, with fields that no inventory has beside those that each has."""

    keeps_absent = False

    def __init__(self, client: Any, form: str) -> None:
        self._client = client
        self._form = form
        self.keeps_empty = form == "Parquet"

    def source(self, layout: Layout, rows: Iterable[Row]) -> Inventory:
        rows = [{"Bucket": "b", "Key": f"k {n}", **row} for n, row in enumerate(rows)]
        text = pa.string()
        types = {"Bucket": text, "Key": text, **types_of(layout)}
        files = [rows[0::2], rows[1::2]]
        if self._form == "Parquet":  # where names have another form
            layout = Layout(*(tuple(map(_renamed, part)) for part in (layout.key, layout.values)))
        return self.inventory(layout, types, files)

    def inventory(
        self,
        layout: Layout,
        types: Mapping[str, pa.DataType],
        files: Sequence[Sequence[Row]],
        *,
        versions: str = "latest",
        manifest: Mapping[str, Any] | None = None,
        checksum: str | None = None,
    ) -> Inventory:
        """An inventory of these fields and files, whose manifest differs from a true one as is said."""
        prefix = f"inventory/{unique()}"
        folder = f"{prefix}/2026-07-06T01-00Z"
        document = {
            "sourceBucket": "b",
            "destinationBucket": f"arn:aws:s3:::{BUCKET}",
            "version": "2016-11-30",
            "creationTimestamp": EPOCH_TAKEN,
            "fileFormat": self._form,
            "fileSchema": ", ".join(types),
            "files": [self._file(f"{prefix}/data/{n}", types, rows) for n, rows in enumerate(files)],
        }
        for name, value in (manifest or {}).items():
            document[name] = value(document) if callable(value) else value
        data = json.dumps({name: value for name, value in document.items() if value is not None}).encode()
        self._put(f"{folder}/manifest.json", data)
        self._put(f"{folder}/manifest.checksum", (checksum or md5(data)).encode() + b"\n")
        spec = InventorySource(kind="s3-inventory", location=f"s3://{BUCKET}/{folder}", versions=versions)
        return Inventory(S3Bucket(self._client, BUCKET), folder, spec, layout, Side.TRUTH)

    def _file(self, name: str, types: Mapping[str, pa.DataType], rows: Sequence[Row]) -> dict[str, Any]:
        if self._form == "Parquet":
            data, name = file_of(table_of(types, rows)), f"{name}.parquet"
        else:
            text = io.StringIO(newline="")
            writer = csv.writer(text, quoting=csv.QUOTE_ALL)
            for row in rows:
                values = {**row, "Key": quote_plus(row["Key"], safe="/")}
                writer.writerow(["" if values.get(name) is None else plain(values[name]) for name in types])
            data, name = gzip.compress(text.getvalue().encode()), f"{name}.csv.gz"
        self._put(name, data)
        return {"key": name, "size": len(data), "MD5checksum": md5(data)}

    def _put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=BUCKET, Key=key, Body=data)


def _renamed(column: Column) -> Column:
    name = column.name.capitalize()
    return column.model_copy(update={"truth": column.truth.model_copy(update={"name": name})})


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
