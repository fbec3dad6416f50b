"""A DynamoDB table's full export to S3: gzip files of DynamoDB JSON, named and counted by a manifest."""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from trueup.compare import Key, Layout, Missing, Scan, Span
from trueup.errors import SourceError
from trueup.model.reconcile import Side
from trueup.sources.documents import (
    Batch,
    Document,
    Make,
    Normalise,
    Rows,
    Unread,
    Wanted,
    batch_maker,
    blocks_of,
    fetched,
    in_batches,
)
from trueup.sources.dynamodb_rows import plain_item, plain_value
from trueup.sources.manifests import Hashed, changed, check_instant, instant, json_object, require
from trueup.sources.objects import Bucket, read_json, whole

__all__ = ["DynamoExport"]

_CHUNK = 1024 * 1024
_SUMMARY = "manifest-summary.json"
_NO_EXPORT = "It is no export as DynamoDB makes them: export the table again."


class DynamoExport:
    """An export as a source of a reconciliation.

    `prefix` is the folder of `manifest-summary.json` in the bucket. The state is that of the manifest's
    `exportTime`. Each data file must have the checksum and the number of items that the manifest says.
    """

    def __init__(
        self,
        bucket: Bucket,
        prefix: str,
        layout: Layout,
        side: Side,
        *,
        absent: str = "null",
        normalise: Normalise | None = None,
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix.rstrip("/")
        self._layout = layout
        self._side = side
        self._absent = absent
        self._normalise = normalise

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The items whose keys are in the span; all files are read for it, and held against the manifest.

        SourceError where the export is older than `as_of`: what changed between would look like drift.
        """
        summary = self._summary()
        taken = self._taken(summary)
        check_instant(
            f"The export {self._prefix}, the {self._side},",
            taken,
            as_of,
            "Export the table again, or compare as of the export.",
        )
        batches = self._batches(summary, Wanted.within(self._layout, span))
        scan = Scan(iter(()), ordered=False, as_of=taken)
        scan.blocks = _counted(scan, blocks_of(batches, self._layout, span, ordered=False))
        return scan

    def taken(self) -> datetime:
        """When the export was made."""
        return self._taken(self._summary())

    def _taken(self, summary: Mapping[str, Any]) -> datetime:
        return instant(f"{self._prefix}/{_SUMMARY}", self._side, summary["exportTime"], _NO_EXPORT)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys, as they were when the export was made; all files are read for it."""
        return fetched(self._batches(self._summary(), Wanted.among(keys)), self._layout, keys)

    def _summary(self) -> dict[str, Any]:
        summary = self._json(_SUMMARY)
        if (
            summary.get("outputFormat") != "DYNAMODB_JSON"
            or summary.get("exportType", "FULL_EXPORT") != "FULL_EXPORT"
        ):
            raise SourceError(
                f"The export {self._prefix}, the {self._side}, is no full export in DynamoDB JSON, but "
                f"{summary.get('exportType')} in {summary.get('outputFormat')}.",
                remedy="Export the table with ExportFormat DYNAMODB_JSON and ExportType FULL_EXPORT.",
            )
        fields = {"exportTime": str, "itemCount": int}
        require(f"{self._prefix}/{_SUMMARY}", self._side, summary, fields, _NO_EXPORT)
        return summary

    def _batches(self, summary: Mapping[str, Any], wanted: Wanted | None) -> Iterator[Batch]:
        make = _of_items(batch_maker(self._layout, self._side, self._absent, self._normalise, wanted))
        folder = self._prefix.rpartition("AWSDynamoDB/")[0]
        rows = 0
        for entry in self._files():
            name = (
                entry["dataFileS3Key"]
                if not folder
                else folder + "AWSDynamoDB/" + entry["dataFileS3Key"].rpartition("AWSDynamoDB/")[2]
            )
            before = rows
            with closing(Hashed(self._bucket.open(name))) as raw:
                file: Any = gzip.GzipFile(fileobj=raw)
                for batch in whole(read_json(name, io.BufferedReader(file, _CHUNK), make), name):
                    rows += batch.read
                    yield batch
                self._check_file(name, entry, rows - before, base64.b64encode(raw.whole()[0]).decode())
        if rows != summary["itemCount"]:
            raise self._truncated(self._prefix, f"{rows} items", f"{summary['itemCount']} items")

    def _check_file(self, name: str, entry: Mapping[str, Any], rows: int, digest: str) -> None:
        if rows != entry["itemCount"]:
            raise self._truncated(name, f"{rows} items", f"{entry['itemCount']} items")
        if digest != entry.get("md5Checksum", digest):
            raise self._truncated(name, f"MD5 {digest}", f"MD5 {entry['md5Checksum']}")

    def _truncated(self, name: str, found: str, declared: str) -> SourceError:
        return changed(name, self._side, found, declared, "export the table again")

    def _files(self) -> Iterator[dict[str, Any]]:
        name = f"{self._prefix}/manifest-files.json"
        with closing(self._bucket.open(name)) as file:
            for line in file:
                entry = json_object(name, self._side, line)
                require(name, self._side, entry, {"dataFileS3Key": str, "itemCount": int}, _NO_EXPORT)
                yield entry

    def _json(self, name: str) -> dict[str, Any]:
        name = f"{self._prefix}/{name}"
        with closing(self._bucket.open(name)) as file:
            return json_object(name, self._side, file.read())


@dataclass(frozen=True, slots=True)
class _Items:
    """Items as rows; only what is asked for is made plain. Raises one of _NO_ITEM where it is none."""

    items: Sequence[Mapping[str, Any]]

    def column(self, name: str) -> Sequence[Any]:
        """The values of an attribute, nearly always all of one type."""
        values = [item.get(name, _ABSENT) for item in self.items]
        kinds = set(chain.from_iterable(values))
        if kinds == {"S"}:
            return list(map(itemgetter("S"), values))
        if kinds == {"N"}:
            return list(map(Decimal, map(itemgetter("N"), values)))
        return [Missing if value is _ABSENT else plain_value(value) for value in values]

    def documents(self) -> Iterator[Document]:
        """The items as documents."""
        return map(plain_item, self.items)


_ABSENT: Mapping[str, Any] = {"": None}  # of no type that an item may have
_NO_ITEM = (ValueError, TypeError, ArithmeticError, AttributeError, LookupError)


def _of_items(make: Make) -> Make:
    """The same for the lines of an export; a line that holds no item is unreadable."""

    def made(name: str, numbers: Sequence[int], rows: Rows) -> Iterator[Batch]:
        try:
            return iter(list(make(name, numbers, _Items([line["Item"] for line in rows.documents()]))))
        except _NO_ITEM:
            items = map(partial(_item, name), numbers, rows.documents())
            return in_batches(name, zip(numbers, items, strict=True), make)

    return made


def _item(name: str, number: int, line: Document) -> Document | Unread:
    try:
        return plain_item(line["Item"])
    except _NO_ITEM:
        return Unread(f"{name}:{number}: no item in DynamoDB JSON")


def _counted(scan: Scan, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a scan, which is proved behind the last one: there were as many items as declared."""
    rows = 0
    for block in blocks:
        rows += block.count(b"\n")
        yield block
    scan.counted = rows
