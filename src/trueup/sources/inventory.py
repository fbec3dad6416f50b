"""An S3 inventory: a manifest and its checksum, and lists of objects in CSV or Parquet, each with its own."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

from trueup.compare import Key, Layout, Scan, Span
from trueup.errors import SourceError
from trueup.model.reconcile import InventorySource, Side
from trueup.sources.documents import (
    Batch,
    Document,
    Normalise,
    Table,
    Unread,
    batch_maker,
    blocks_of,
    fetched,
    in_batches,
)
from trueup.sources.manifests import Hashed, changed, check_instant, json_object, require
from trueup.sources.objects import Bucket, whole
from trueup.sources.parquet import read_parquet

__all__ = ["Inventory"]

_CHUNK = 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGAIN = "take the next inventory"
_NO_INVENTORY = f"It is no inventory as S3 makes them: {_AGAIN}."
_FIELDS = {"creationTimestamp": str, "fileSchema": str, "files": list}
_OF_A_FILE = {"key": str, "size": int, "MD5checksum": str}
_TRUE, _FALSE = {True, "true"}, {False, "false"}

Listed = Iterator[tuple[int, Document | Unread]]
"""Rows with their numbers."""


class Inventory:
    """An inventory as a source of a reconciliation: a row for each object, or for each version of one.

    `prefix` is the folder of `manifest.json` in the bucket. The fields have the names of the CSV format:
    `Key`, `VersionId`, `Size`, `LastModifiedDate`, `ETag`. What is empty in CSV is NULL.
    """

    def __init__(
        self,
        bucket: Bucket,
        prefix: str,
        spec: InventorySource,
        layout: Layout,
        side: Side,
        normalise: Normalise | None = None,
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix.rstrip("/")
        self._spec = spec
        self._layout = layout
        self._side = side
        self._normalise = normalise

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The rows whose keys are in the span; all files are read for it.

        SourceError where the inventory is older than `as_of`.
        """
        manifest = self._manifest()
        taken = _taken(manifest)
        check_instant(
            f"The inventory {self._prefix}, the {self._side},", taken, as_of, "Wait for the next one."
        )
        blocks = blocks_of(self._batches(manifest), self._layout, span, ordered=False)
        return Scan(blocks, ordered=False, as_of=taken)

    def taken(self) -> datetime:
        """When S3 began to make it."""
        return _taken(self._manifest())

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys, as they were when it was made; all files are read for it."""
        return fetched(self._batches(self._manifest()), self._layout, keys)

    def _manifest(self) -> dict[str, Any]:
        name = f"{self._prefix}/manifest.json"
        data = self._bytes(name)
        declared = self._bytes(f"{self._prefix}/manifest.checksum").decode("ascii", "replace").strip()
        if (found := hashlib.md5(data, usedforsecurity=False).hexdigest()) != declared.lower():
            raise SourceError(
                f"{name}, of the {self._side}, has MD5 {found}, and manifest.checksum says {declared}.",
                remedy=f"It was changed, or not yet written whole: {_AGAIN}.",
            )
        manifest = json_object(name, self._side, data)
        require(name, self._side, manifest, _FIELDS, _NO_INVENTORY)
        for entry in manifest["files"]:
            require(name, self._side, entry, _OF_A_FILE, _NO_INVENTORY)
        if manifest.get("fileFormat") not in ("CSV", "Parquet"):
            raise SourceError(
                f"The inventory {self._prefix}, the {self._side}, is in {manifest.get('fileFormat')}.",
                remedy="Have it made in CSV or Parquet.",
            )
        return manifest

    def _bytes(self, name: str) -> bytes:
        with closing(self._bucket.open(name)) as file:
            return file.read()

    def _batches(self, manifest: Mapping[str, Any]) -> Iterator[Batch]:
        make = batch_maker(self._layout, self._side, normalise=self._normalise)
        rows_of = self._parquet if manifest["fileFormat"] == "Parquet" else self._csv(manifest["fileSchema"])
        for entry in manifest["files"]:
            name = entry["key"]
            with closing(Hashed(self._bucket.open(name))) as raw:
                yield from whole(in_batches(name, self._chosen(name, rows_of(name, raw)), make), name)
                self._check_file(name, entry, raw)

    def _chosen(self, name: str, rows: Listed) -> Listed:
        """The rows that are compared, and those that cannot be read with where they are."""
        for number, row in rows:
            if isinstance(row, Unread):
                yield number, Unread(f"{name}:{number}: {row}")
            elif (wanted := self._wanted(row)) is None:
                yield number, Unread(f"{name}:{number}: no IsLatest that is true or false")
            elif wanted:
                yield number, row

    def _check_file(self, name: str, entry: Mapping[str, Any], raw: Hashed) -> None:
        digest, size = raw.whole()
        if size != entry["size"]:
            raise changed(name, self._side, f"{size} bytes", f"{entry['size']} bytes", _AGAIN)
        if digest.hex() != entry["MD5checksum"]:
            raise changed(name, self._side, f"MD5 {digest.hex()}", f"MD5 {entry['MD5checksum']}", _AGAIN)

    def _wanted(self, row: Document) -> bool | None:
        """Whether a row is one of those that are compared; None where it does not say."""
        if self._spec.versions == "all" or "IsLatest" not in row:
            return True
        if row["IsLatest"] in _FALSE:
            return False
        return row.get("IsDeleteMarker") not in _TRUE if row["IsLatest"] in _TRUE else None

    def _csv(self, schema: str) -> Callable[[str, Any], Listed]:
        names = [name.strip() for name in schema.split(",")]
        self._check_names(names)

        def rows(name: str, raw: Any) -> Listed:
            file: Any = gzip.GzipFile(fileobj=raw)
            text = io.TextIOWrapper(io.BufferedReader(file, _CHUNK), encoding="utf-8", newline="")
            for number, values in enumerate(csv.reader(text, strict=True), 1):
                yield number, _row(names, values)

        return rows

    def _parquet(self, name: str, raw: Any) -> Listed:
        names: dict[str, str] = {}
        for numbers, table in read_parquet(name, raw, self._side, None):
            if not names:
                names = {one: _as_in_csv(one) for one in table.columns}
                self._check_names(names.values())
            rows = Table({names[one]: values for one, values in table.columns.items()}).documents()
            yield from zip(numbers, rows, strict=True)

    def _check_names(self, names: Any) -> None:
        if self._spec.versions == "all" and "VersionId" not in names:
            raise SourceError(
                f"The inventory {self._prefix}, the {self._side}, lists current versions only.",
                remedy="Have it made of all versions, or leave `versions: all` out.",
            )
        needed = [column.name_in(self._side) for column in self._layout.columns]
        lacking = [name for name in needed if name not in names] if self._normalise is None else []
        if lacking:
            raise SourceError(
                f"The inventory {self._prefix}, the {self._side}, has no field {lacking[0]}; "
                f"it has {', '.join(names)}.",
                remedy=f"Have it made with that field, or name another in {self._side}.name of the column.",
            )


def _taken(manifest: Mapping[str, Any]) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(manifest["creationTimestamp"]))


def _as_in_csv(name: str) -> str:
    """`last_modified_date`, as a field is called in Parquet, to `LastModifiedDate`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _row(names: Sequence[str], values: Sequence[str]) -> Document | Unread:
    if len(values) != len(names):
        return Unread(f"{len(values)} fields, and the manifest names {len(names)}")
    row: dict[str, Any] = {name: value or None for name, value in zip(names, values, strict=True)}
    try:
        # Spaces are written as plus signs, and plus signs as %2B.
        row["Key"] = unquote_plus(row.get("Key") or "", errors="strict")
    except UnicodeDecodeError:
        return Unread("a key that is no UTF-8")
    return row
