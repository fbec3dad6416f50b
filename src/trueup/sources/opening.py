"""From what a job file says of a source to the source."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from trueup import compare
from trueup.aws import connect
from trueup.compare import Layout
from trueup.model.reconcile import (
    DynamoExportSource,
    DynamoSource,
    InventorySource,
    ObjectsSource,
    PostgresSource,
    Side,
    Source,
)
from trueup.sources.documents import Normalise
from trueup.sources.dynamodb_export import DynamoExport
from trueup.sources.dynamodb_rows import DynamoRows
from trueup.sources.inventory import Inventory
from trueup.sources.objects import ObjectRows, S3Bucket

__all__ = ["open_source"]


def open_source(
    spec: Source,
    layout: Layout,
    side: Side,
    secret: Callable[[str], str],
    normalise: Normalise | None = None,
) -> compare.Source:
    """The source of a side, which reads what `layout` says. Raises JobError where a secret is not there.

    `normalise` is not for PostgreSQL, whose rows never become documents.
    """
    match spec:
        case PostgresSource():
            return _postgres(spec, layout, side, secret)
        case DynamoSource():
            return DynamoRows(
                _client("dynamodb"),
                spec.table,
                layout,
                side,
                absent=spec.absent,
                segments=spec.segments,
                begins=spec.begins,
                normalise=normalise,
                counts=spec.count,
            )
        case DynamoExportSource():
            bucket, prefix = _placed(spec.location)
            return DynamoExport(bucket, prefix, layout, side, absent=spec.absent, normalise=normalise)
        case ObjectsSource():
            bucket, prefix = _placed(spec.location)
            return ObjectRows(bucket, prefix, spec, layout, side, normalise)
        case InventorySource():
            bucket, prefix = _placed(spec.location)
            return Inventory(bucket, prefix, spec, layout, side, normalise)


def _postgres(
    spec: PostgresSource, layout: Layout, side: Side, secret: Callable[[str], str]
) -> compare.Source:
    from trueup.sources.postgres_rows import PostgresRows  # an extra, which only such sources need

    return PostgresRows(secret(spec.dsn), spec.table, layout, side, spec.where, counts=True)


def _placed(location: str) -> tuple[S3Bucket, str]:
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    return S3Bucket(_client("s3"), bucket), prefix


@cache
def _client(service: str) -> Any:
    return connect(service)
