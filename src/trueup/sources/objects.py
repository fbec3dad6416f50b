"""Rows in objects under a prefix: CSV with a header, JSON Lines, Parquet.

Where the name of a text ends in .gz it is unzipped.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import IO, Any, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from trueup.compare import Key, Layout, Scan, Span
from trueup.compare.lines import ABSENT, NULL, UNREADABLE, escape, unescape
from trueup.errors import SourceError, Transient
from trueup.model.reconcile import ObjectsSource, Side
from trueup.sources.documents import (
    Batch,
    Document,
    Documents,
    Make,
    Normalise,
    Table,
    Unread,
    Wanted,
    batch_maker,
    blocks_of,
    fetched,
    in_batches,
)
from trueup.sources.parquet import read_parquet

__all__ = ["Bucket", "ObjectRows", "S3Bucket", "read_json"]

NO_VALUE = frozenset({NULL, ABSENT, UNREADABLE})

_CHUNK = 1024 * 1024
_BATCH_BYTES = 64 * 1024
_BATCH_ROWS = 500
_FIELD_MOST = 16 * 1024 * 1024  # of a CSV field: the csv module's own 128 KiB would call larger ones an error

Numbered = TypeVar("Numbered")


class Bucket(Protocol):
    """Where objects are: names under a prefix, in order, and their bytes."""

    def names(self, prefix: str) -> Sequence[str]:
        """The keys under a prefix, in order. Raises SourceError and Transient."""

    def open(self, name: str) -> IO[bytes]:
        """The bytes of an object, to be closed. Raises SourceError and Transient."""


class S3Bucket:
    """A bucket of S3; `client` is a boto3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def names(self, prefix: str) -> Sequence[str]:
        """The keys under a prefix, in order of their bytes."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        try:
            return [one["Key"] for page in pages for one in page.get("Contents", [])]
        except (ClientError, BotoCoreError) as error:
            raise self._named(error, prefix) from error

    def open(self, name: str) -> IO[bytes]:
        """The object, as a stream. A connection that breaks off raises Transient while it is read."""
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=name)["Body"]
        except (ClientError, BotoCoreError) as error:
            raise self._named(error, name) from error
        return io.BufferedReader(_Body(body, f"s3://{self._bucket}/{name}"), _CHUNK)

    def _named(self, error: Exception, name: str) -> SourceError | Transient:
        what = f"s3://{self._bucket}/{name} cannot be read: {error}"
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        return SourceError(what) if code in ("NoSuchKey", "NoSuchBucket", "AccessDenied") else Transient(what)


class _Body(io.RawIOBase):
    """What botocore streams, as a file; its errors by our names."""

    def __init__(self, body: Any, name: str) -> None:
        self._body = body
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._body.read(len(buffer))
        except (BotoCoreError, OSError) as error:
            raise Transient(f"{self._name} broke off while it was read: {error}") from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()


class ObjectRows:
    """Rows of CSV, JSON Lines or Parquet as a source of a reconciliation.

    `prefix` is that of the objects' names in the bucket. A row that cannot be read is told with its object
    and line or row; an object that ends too early raises SourceError.
    """

    def __init__(
        self,
        bucket: Bucket,
        prefix: str,
        spec: ObjectsSource,
        layout: Layout,
        side: Side,
        normalise: Normalise | None = None,
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._spec = spec
        self._layout = layout
        self._side = side
        self._normalise = normalise
        self._named: _Named | None = None
        if spec.named is not None:
            self._named = _Named(layout.names.index(spec.named.column), spec.named.suffix)

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The rows whose keys are in the span; all objects are read for it."""
        ordered = self._spec.ordered
        batches = self._batches(Wanted.within(self._layout, span))
        return Scan(blocks_of(batches, self._layout, span, ordered), ordered=ordered)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys; all objects are read for it that may have them."""
        return fetched(self._batches(Wanted.among(keys), self._called(keys)), self._layout, keys)

    def _called(self, keys: Sequence[Key]) -> frozenset[str] | None:
        """What the objects of these keys are called; None where that cannot be told."""
        if self._named is None or any(len(key) <= self._named.at for key in keys):
            return None
        return frozenset(f"{key[self._named.at]}{self._named.suffix}" for key in keys)

    def _batches(self, wanted: Wanted | None, called: frozenset[str] | None = None) -> Iterator[Batch]:
        names = [name for name in self._bucket.names(self._prefix) if self._has_rows(name)]
        if not names:
            raise SourceError(
                f"There is no object under {self._prefix}, the {self._side}.",
                remedy="Correct the location: an empty side would be an empty object.",
            )
        read = {"csv": self._csv, "jsonl": self._json, "parquet": self._parquet}[self._spec.format]
        make = batch_maker(self._layout, self._side, self._spec.absent, self._normalise, wanted)
        rows = 0
        for name in names:
            if called is not None and name.rpartition("/")[2] not in called:
                continue
            belongs = self._named.check(name) if self._named else _anywhere
            with closing(self._bucket.open(name)) as raw:
                for batch in whole(read(name, raw, make), name):
                    rows += batch.read
                    belongs(batch)
                    yield batch
        if called is None and self._spec.records not in (None, rows):
            raise SourceError(
                f"{self._prefix}, the {self._side}, has {rows} rows, and {self._spec.records} are declared.",
                remedy="Have it exported again, or correct `records`.",
            )

    def _has_rows(self, name: str) -> bool:
        """Whether an object is one of rows; what writes Parquet leaves others, such as `_SUCCESS`."""
        last = name.rpartition("/")[2]
        return bool(last) and not (self._spec.format == "parquet" and last[0] in "_.")

    def _parquet(self, name: str, raw: IO[bytes], make: Make) -> Iterator[Batch]:
        columns = self._layout.columns if self._normalise is None else None
        for numbers, table in read_parquet(name, raw, self._side, columns):
            yield from make(name, numbers, table)

    def _json(self, name: str, raw: IO[bytes], make: Make) -> Iterator[Batch]:
        yield from read_json(name, unzipped(name, raw), make)

    def _csv(self, name: str, raw: IO[bytes], make: Make) -> Iterator[Batch]:
        csv.field_size_limit(_FIELD_MOST)
        text = io.TextIOWrapper(unzipped(name, raw), encoding="utf-8", newline="")
        reader = csv.reader(text, delimiter=self._spec.delimiter, strict=True)
        header = next(reader, None)
        if header is None:
            return
        if self._normalise is None:  # which alone knows what it needs
            self._check_header(name, header)
        while rows := [(reader.line_num, row) for row in islice(reader, _BATCH_ROWS)]:
            numbers, values = zip(*rows, strict=True)
            if header and set(map(len, values)) == {len(header)}:
                columns = zip(header, zip(*values, strict=True), strict=True)
                yield from make(name, numbers, Table(dict(columns)))
            else:
                yield from in_batches(name, _as_documents(name, header, rows), make)

    def _check_header(self, name: str, header: Sequence[str]) -> None:
        missing = [name for name in self._names() if name not in header]
        if missing:
            raise SourceError(
                f"{name}, the {self._side}, has no column {missing[0]}; it has {', '.join(header)}.",
                remedy=f"Name one of them in {self._side}.name of the column.",
            )
        twice = next((one for one in self._names() if header.count(one) > 1), None)
        if twice is not None:
            raise SourceError(f"{name}, the {self._side}, has two columns {twice}.", remedy="Rename one.")

    def _names(self) -> list[str]:
        return [column.name_in(self._side) for column in self._layout.columns]


@dataclass(frozen=True, slots=True)
class _Named:
    """Objects that are called as a column of the key of their rows, the field `at` of their lines."""

    at: int
    suffix: str

    def check(self, name: str) -> Callable[[Batch], None]:
        """Raises SourceError for a line that does not belong into an object of this name."""
        called = name.rpartition("/")[2]
        wanted = escape(called.removesuffix(self.suffix).encode()) if called.endswith(self.suffix) else None
        at, most = self.at, self.at + 1

        def check(batch: Batch) -> None:
            for line in batch.lines:
                fields = line.split(b"\t", most)
                # One that has no value there has no key, and is told as that.
                if len(fields) > at and fields[at] != wanted and fields[at][:2] not in NO_VALUE:
                    raise SourceError(
                        f"{name} has a row that belongs into {unescape(fields[at]).decode()}{self.suffix}.",
                        remedy="Correct `named`: rows are looked for where it says.",
                    )

        return check


def _anywhere(batch: Batch) -> None:
    """Whatever the lines: where objects are called anyhow, they belong where they are."""


def _as_documents(
    name: str, header: Sequence[str], rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, Document | Unread]]:
    """Rows of a CSV of which some have not as many fields as its header; one without any is a blank line."""
    for number, row in rows:
        if len(row) == len(header):
            yield number, dict(zip(header, row, strict=True))
        elif row:
            yield number, Unread(f"{name}:{number}: {len(row)} fields, and the header has {len(header)}")


def unzipped(name: str, raw: IO[bytes]) -> io.BufferedReader:
    """A file of text without a byte order mark, unzipped where its name says that it is a gzip.

    EOFError where it should be a gzip and has no byte: even one of nothing has 20.
    """
    file: Any = raw
    if name.endswith(".gz"):
        file = io.BufferedReader(file, _CHUNK)
        if not file.peek(1):
            raise EOFError("it is empty, which no gzip is")
        file = gzip.GzipFile(fileobj=file)
    text = io.BufferedReader(file, _CHUNK)
    if text.peek(3).startswith(codecs.BOM_UTF8):
        text.read(len(codecs.BOM_UTF8))
    return text


def whole(rows: Iterator[Numbered], name: str) -> Iterator[Numbered]:
    """The same rows; SourceError where the object ends too early, or is not what its name says."""
    try:
        yield from rows
    except EOFError as error:
        raise SourceError(f"{name} is truncated: {error}.", remedy="Have it exported again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"{name} is no whole gzip: {error}.", remedy="Have it exported again.") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{name} is not UTF-8: {error}.", remedy="Export it as UTF-8.") from error
    except csv.Error as error:
        raise SourceError(
            f"{name} is no CSV: {error}.", remedy="Correct the delimiter or the file."
        ) from error


def read_json(name: str, file: IO[bytes], make: Make) -> Iterator[Batch]:
    """The canonical lines of a file of JSON Lines; what is no object is unreadable."""
    number = 1
    for lines in _whole_lines(file):
        documents = _objects(lines)
        if documents is None:
            yield from in_batches(name, _one_by_one(name, number, lines), make)
        else:
            yield from make(name, range(number, number + len(documents)), Documents(documents))
        number += lines.count(b"\n")


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """What is in a file, in pieces of whole lines; only the last line may have no newline."""
    held = b""
    while data := file.read(max(_BATCH_BYTES, len(held))):
        whole, newline, held = (held + data).rpartition(b"\n")
        if newline:
            yield whole + newline
    if held:
        yield held


def _objects(lines: bytes) -> Sequence[Document] | None:
    """The objects that some lines are; None where one is blank, or no object alone."""
    try:
        texts = lines.removesuffix(b"\n").decode().split("\n")
        documents, ends = zip(*[_SCAN(text, 0) for text in texts], strict=True)
    except (StopIteration, *_NO_JSON):
        return None
    whole = all(map(operator.eq, ends, map(len, texts))) and set(map(type, documents)) == {dict}
    return documents if whole else None


def _one_by_one(name: str, first: int, lines: bytes) -> Iterator[tuple[int, Document | Unread]]:
    """The same of lines of which one at least is blank or no object."""
    for number, raw in enumerate(io.BytesIO(lines), first):
        try:
            text = raw.decode().strip(_BLANKS)
            document, end = _SCAN(text, 0)
            if type(document) is dict and end == len(text):
                yield number, document
                continue
            what = "no JSON object" if type(document) is not dict else "more than a JSON object"
        except StopIteration:
            what = "no JSON"
        except ArithmeticError:
            what = "a number whose exponent is too large"
        except _NO_JSON as error:
            what = f"no JSON: {getattr(error, 'msg', error)}"
        if raw.isspace():
            continue
        # A line that is cut off is named too: the export may have been truncated.
        cut = "" if raw.endswith(b"\n") else ", and it is the last and has no newline: truncated?"
        yield number, Unread(f"{name}:{number}: {what}{cut}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_BLANKS = " \t\r\n"  # what JSON allows around a value
_NO_JSON = (ValueError, ArithmeticError, RecursionError)  # of which one is an exponent that no Decimal has
_DECODER: Any = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)
_SCAN = _DECODER.scan_once  # what `decode` calls between two searches for blanks, which cost as much as it
