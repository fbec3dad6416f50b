"""ItemReader: the items of a Distributed Map, read from S3 ([dg:input-output-itemreader])."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Mapping

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.hash_order import hash_order
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.integrations.shapes import read_bytes
from trueup.local.stepfunctions.model import Reader
from trueup.local.stepfunctions.parsing.maps import MAX_ITEMS
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.running.items import Item, integer_at, items_of
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.values import Json, from_text

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
"""Of an array, as RFC 6901 writes it."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How compressed objects begin."""


async def read_items(visit: Visit, reader: Reader, given: Json) -> list[Item]:
    """The items, at most MaxItems of them. Raises StateError (States.ItemReaderFailed)."""
    most = _max_items(visit, reader, given)
    parameters = visit.render(reader.parameters, given)
    try:
        if reader.action == "getObject":
            return (await _get(visit, reader, parameters))[:most]
        if reader.flatten:
            return await _get_all(visit, reader, parameters, most)
        return [Item(_told(entry)) for entry in await _list(visit, parameters, most)][:most]
    except ServiceFailure as failure:
        raise unreadable(f"{failure.message} (Service: S3, Error Code: {failure.code})") from failure


async def _get(visit: Visit, reader: Reader, parameters: Mapping[str, Json]) -> list[Item]:
    answer = await visit.strand.execution.services.calls.call("s3", "getObject", parameters)
    return _parse(reader, read_bytes(answer.output["Body"]))


async def _get_all(visit: Visit, reader: Reader, parameters: Mapping[str, Json], most: int) -> list[Item]:
    """The items of all objects that are listed, one after the other (Transformation LOAD_AND_FLATTEN)."""
    found: list[Item] = []
    for entry in await _list(visit, parameters, MAX_ITEMS):
        if entry["Key"].endswith("/"):
            continue  # a folder, as consoles make them
        found += await _get(visit, reader, {"Bucket": parameters.get("Bucket"), "Key": entry["Key"]})
        if len(found) >= most:
            break
    return found[:most]


def unreadable(cause: str) -> StateError:
    """The items cannot be read."""
    return StateError("States.ItemReaderFailed", cause)


def check_max_items(visit: Visit, reader: Reader, given: Json) -> None:
    """Raises EvaluationError where MaxItemsPath finds no whole number: AWS looks at that before the Map Run
    starts (moto's engine says so), and at the sign of the number only in the run."""
    if isinstance(reader.max_items, Path):
        integer_at(visit, reader.max_items, "MaxItemsPath", given)


def _max_items(visit: Visit, reader: Reader, given: Json) -> int:
    most = reader.max_items
    if isinstance(most, Path):
        most = integer_at(visit, most, "MaxItemsPath", given)
        # Recorded on AWS: test_map_item_reader_csv_max_items_paths.
        if most < 0:
            raise unreadable("field MaxItems must be positive")
    return min(most, MAX_ITEMS) if most else MAX_ITEMS


async def _list(visit: Visit, parameters: Mapping[str, Json], most: int) -> list[Mapping[str, Json]]:
    calls = visit.strand.execution.services.calls
    found: list[Mapping[str, Json]] = []
    token: Json = None
    while True:
        answer = await calls.call("s3", "listObjectsV2", {**parameters, "ContinuationToken": token})
        found += answer.output.get("Contents", [])
        token = answer.output.get("NextContinuationToken")
        if token is None or len(found) >= most:
            return found


def _told(entry: Mapping[str, Json]) -> Json:
    return {
        "Etag": entry["ETag"],
        "Key": entry["Key"],
        "LastModified": int(entry["LastModified"].timestamp()),
        "Size": entry["Size"],
        "StorageClass": entry.get("StorageClass", "STANDARD"),
    }


def _parse(reader: Reader, raw: bytes) -> list[Item]:
    try:
        text = _unpacked(raw).decode("utf-8-sig")
        if reader.input_type == "CSV":
            return [Item(row) for row in _csv(reader, text)]
        if reader.input_type == "JSONL":
            # Only a line feed ends a line: str.splitlines would also split at U+2028 within a string.
            return [Item(from_text(line)) for line in text.split("\n") if line.strip(" \t\r")]
        return _iterable(from_text(text), reader.pointer)
    except ValueError as error:
        raise unreadable(f"The object is not {reader.input_type}: {error}") from error


def _unpacked(raw: bytes) -> bytes:
    if raw.startswith(_ZSTD):
        raise unreadable("Objects compressed with ZSTD are not implemented; supported are GZIP and none")
    try:
        return gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except (OSError, EOFError) as error:
        raise unreadable(f"The object is not GZIP: {error}") from error


def _pointed(value: Json, pointer: str | None) -> Json:
    for part in (pointer or "").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise unreadable(f"The ItemsPointer {pointer} points to nothing")
    return value


def _iterable(value: Json, pointer: str | None) -> list[Item]:
    """The elements of an array. An object's pairs are iterated over where ItemsPointer selects it
    ([dg:input-output-itemreader]); a whole file that is an object is refused
    (recorded on AWS: test_map_item_reader_json_no_json_list_object).
    """
    found = _pointed(value, pointer)
    items = items_of(found) if pointer or isinstance(found, list) else None
    if items is None:
        raise unreadable("Attempting to map over non-iterable node.")
    return items


def _csv(reader: Reader, text: str) -> list[Json]:
    """Rows as objects: short ones are filled with empty text, what is too much is left out, and the columns
    are not in the file's order (recorded on AWS: test_map_item_reader_csv_first_row_extra_fields).
    """
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=reader.csv_delimiter) if row]
    headers = reader.csv_headers
    if headers is None:
        if not rows:
            raise unreadable("The CSV file has no header row")
        headers, rows = tuple(rows[0]), rows[1:]
    if len(set(headers)) < len(headers):
        # Of two columns of one name one would be lost. Whether AWS words its refusal like this is not known.
        raise unreadable("CSV headers cannot contain duplicates.")
    order = [(name, headers.index(name)) for name in hash_order(headers)]
    return [{name: row[column] if column < len(row) else "" for name, column in order} for row in rows]
