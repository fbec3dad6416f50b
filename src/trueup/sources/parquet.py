"""Rows of Parquet objects, in small batches: memory depends neither on rows nor on row groups.

Parquet is read from its end, so an object is put on disk first, in one request: what is read is one version.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import repeat
from tempfile import NamedTemporaryFile
from typing import IO, Any
from uuid import UUID

from trueup.errors import SourceError
from trueup.model.reconcile import Column, ColumnType, Side
from trueup.sources.documents import Table

__all__ = ["read_parquet"]

_CHUNK = 1024 * 1024
_PAGE_BYTES = 256 * 1024  # of a column that are read from disk at once
_ROWS = 4096

Cells = Callable[[Any], list[Any]]
"""From an Arrow array to what the readers of canonical values take."""


def read_parquet(
    name: str, file: IO[bytes], side: Side, columns: Sequence[Column] | None
) -> Iterator[tuple[range, Table]]:
    """The rows of an object with their numbers, as the columns that lines are made of.

    `columns` are those that are read; None: all, as `normalise` takes them, nested ones as Python holds them.
    SourceError names an object that is no whole Parquet, a column that it lacks, or one of another type.
    """
    _arrow(name)
    with NamedTemporaryFile(prefix="trueup-", suffix=".parquet") as copy:
        shutil.copyfileobj(file, copy, _CHUNK)
        copy.flush()
        with closing(_Rows(name, copy.name, side)) as rows:
            yield from rows.tables(columns)


def _arrow(name: str) -> Any:
    """The library; an extra, which only those need who read Parquet."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise SourceError(
            f"{name} is Parquet, and the package pyarrow is not installed.",
            remedy="Install trueup[parquet], in an image requirements/parquet.lock beside worker.lock.",
        ) from error
    return pyarrow


class _Rows:
    """A Parquet file on disk, which stands for the object `name`."""

    def __init__(self, name: str, path: str, side: Side) -> None:
        self._name = name
        self._side = side
        self._arrow = _arrow(name)
        # INT96, of old writers, holds nanoseconds from a range that 64 bits cannot count: microseconds do.
        # Read as nanoseconds too, which wrap around, it tells what is left beyond the microseconds.
        self._file = self._opened(path, "us")
        schema = self._file.schema
        columns = [schema.column(number) for number in range(len(schema.names))]
        self._old = {one.path for one in columns if one.physical_type == "INT96"}
        self._fine: Any = self._opened(path, "ns") if self._old else None

    def _opened(self, path: str, unit: str) -> Any:
        return self._read(
            lambda: self._arrow.parquet.ParquetFile(
                path,
                buffer_size=_PAGE_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
                coerce_int96_timestamp_unit=unit,
            )
        )

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        if self._fine is not None:
            self._fine.close()

    def tables(self, columns: Sequence[Column] | None) -> Iterator[tuple[range, Table]]:
        """The rows. Raises SourceError."""
        cells = self._cells(columns)
        names, rows = list(cells), 0
        for batch, fine in self._batches(names) if names else ():
            found = {name: cells[name](_stored(batch.column(name))) for name in names}
            for name in fine.schema.names if fine else ():
                found[name] = _finer(found[name], batch.column(name), fine.column(name))
            yield range(rows + 1, rows + 1 + len(batch)), Table(found)
            rows += len(batch)
        if rows != self._file.metadata.num_rows:
            raise self._broken(f"{rows} rows came, and its footer says {self._file.metadata.num_rows}")

    def _batches(self, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        """Batches of these columns; beside each, as nanoseconds, those of them that old writers wrote."""
        coarse = self._file.iter_batches(_ROWS, columns=names, use_threads=False)
        old = [name for name in names if name in self._old]
        fine = self._fine.iter_batches(_ROWS, columns=old, use_threads=False) if old else repeat(None)
        while (batch := self._read(lambda: next(coarse, None))) is not None:
            yield batch, self._read(lambda: next(fine))

    def _read(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except (self._arrow.ArrowException, OSError) as error:  # pages that are damaged are OSErrors
            raise self._broken(str(error).strip()) from error

    def _broken(self, what: str) -> SourceError:
        return SourceError(
            f"{self._name}, of the {self._side}, is no whole Parquet: {what}.",
            remedy="It is truncated, damaged or something else: have it exported again.",
        )

    def _cells(self, columns: Sequence[Column] | None) -> Mapping[str, Cells]:
        kinds: dict[str, Any] = {}
        for one in self._file.schema_arrow:
            if one.name in kinds:
                raise SourceError(
                    f"{self._name}, the {self._side}, has two columns {one.name}.", remedy="Rename one."
                )
            kinds[one.name] = one.type
        if columns is None:
            return {name: _undeclared(kind) for name, kind in kinds.items()}
        return {column.name_in(self._side): self._of_column(column, kinds) for column in columns}

    def _of_column(self, column: Column, kinds: Mapping[str, Any]) -> Cells:
        name = column.name_in(self._side)
        if name not in kinds:
            raise SourceError(
                f"{self._name}, the {self._side}, has no column {name}; it has {', '.join(kinds)}.",
                remedy=f"Name one of them in {self._side}.name of column {column.name}.",
            )
        category = _category(kinds[name])
        if category not in _taken(column, self._side):
            raise SourceError(
                f"Column {name} of {self._name}, the {self._side}, is {kinds[name]}, "
                f"which cannot be compared as {column.type}.",
                remedy=_remedy(category, column),
            )
        if column.type is ColumnType.JSON and category == "text":
            return _documents
        return _uuids if column.type is ColumnType.UUID and category != "text" else _CELLS[category]


def _category(kind: Any) -> str:
    """What a type of Arrow is to us; empty for what is never compared, such as nested ones."""
    from pyarrow import BaseExtensionType, types

    if isinstance(kind, BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "instant"
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return "16 bytes"
    return next((name for name, tests in _TESTS.items() if any(getattr(types, t)(kind) for t in tests)), "")


def _undeclared(kind: Any) -> Cells:
    """What is made of a column of which nothing is declared."""
    from pyarrow import UuidType

    return _uuids if isinstance(kind, UuidType) else _CELLS.get(_category(kind), _listed)


_TESTS = {
    "integer": ("is_integer",),
    "decimal": ("is_decimal",),
    "float": ("is_floating",),
    "text": ("is_string", "is_large_string", "is_string_view"),
    "boolean": ("is_boolean",),
    "date": ("is_date",),
    "bytes": ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"),
    "null": ("is_null",),
}
# Beside these a column of texts may be any type, as in CSV, and one that is NULL throughout has none.
_TAKEN = {
    ColumnType.INTEGER: {"integer", "decimal"},
    ColumnType.DECIMAL: {"integer", "decimal"},
    ColumnType.FLOAT: {"integer", "decimal", "float"},
    ColumnType.BOOLEAN: {"boolean"},
    ColumnType.DATE: {"date"},
    ColumnType.UUID: {"16 bytes"},
    ColumnType.BYTES: {"bytes", "16 bytes"},
}


def _taken(column: Column, side: Side) -> set[str]:
    taken = _TAKEN.get(column.type, set()) | {"text", "null"}
    if column.type is not ColumnType.TIMESTAMP:
        return taken
    reading = column.reading(side)
    if reading.format != "iso":
        return taken | {"integer", "decimal"}
    return taken | ({"instant"} if reading.zone is None else {"instant", "timestamp"})


def _remedy(category: str, column: Column) -> str:
    if not category:
        return (
            "Neither nested values nor times of day or durations are compared: "
            "have it written as text, or leave it to the job's `normalise`."
        )
    if category == "float":
        return "A float holds no exact number: declare it as `float`, with a tolerance if need be."
    if category == "timestamp" and column.type is ColumnType.TIMESTAMP:
        return "It has no time zone: declare in which zone it is to be read (`zone: UTC`)."
    return f"Declare another type for column {column.name}, or have it exported as what it is."


def _stored(array: Any) -> Any:
    """An array without its wrappings."""
    from pyarrow import ExtensionArray, types

    if isinstance(array, ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _listed(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found


def _written(array: Any) -> list[str | None]:
    from pyarrow import string

    found: list[str | None] = array.cast(string()).to_pylist()
    return found


def _texts(array: Any) -> list[Any]:
    from pyarrow import binary

    try:
        return _listed(array)
    except UnicodeDecodeError:  # of one value, which alone is no text: bytes are none either
        return [_decoded(value) for value in _listed(array.cast(binary()))]


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _floats(array: Any) -> list[str | None]:
    """The shortest text that gives the same float of the same size."""
    return [text if text is None else _NO_NUMBERS.get(text, text) for text in _written(array)]


_NO_NUMBERS = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _timestamps(array: Any) -> list[str | None]:
    """As they are; written by way of whole numbers, because Arrow asks the system for time zones."""
    from pyarrow import int64, timestamp

    return _written(array.view(int64()).view(timestamp(array.type.unit)))


def _finer(texts: list[str | None], coarse: Any, fine: Any) -> list[str | None]:
    """Timestamps in microseconds with the nanoseconds that are left, where some are."""
    from pyarrow import compute, int64

    left = compute.subtract(fine.view(int64()), compute.multiply(coarse.view(int64()), 1000)).to_pylist()
    return [
        f"{text.removesuffix('Z')}{more:03}{'Z' * text.endswith('Z')}" if text and more else text
        for text, more in zip(texts, left, strict=True)
    ]


def _instants(array: Any) -> list[str | None]:
    return [text if text is None else text + "Z" for text in _timestamps(array)]


def _uuids(array: Any) -> list[str | None]:
    return [value if value is None else str(UUID(bytes=value)) for value in _listed(array)]


def _documents(array: Any) -> list[Any]:
    return [value if value is None else _document(value) for value in _texts(array)]


def _document(text: str | bytes) -> Any:
    """What a text holds; a text that is no JSON as bytes, which no document is."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, ArithmeticError, RecursionError):
        return text if isinstance(text, bytes) else text.encode()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_CELLS: Mapping[str, Cells] = {
    "integer": _listed,
    "decimal": _listed,
    "float": _floats,
    "text": _texts,
    "boolean": _listed,
    "timestamp": _timestamps,
    "instant": _instants,
    "date": _written,
    "bytes": _listed,
    "16 bytes": _listed,
    "null": _listed,
}
