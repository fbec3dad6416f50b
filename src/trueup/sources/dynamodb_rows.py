"""Items of a DynamoDB table as rows: scanned, fetched by key, repaired by conditional writes.

A scan has no order and is no snapshot: the rows are sorted by the comparer, and what changed during the scan
shows up as a candidate, which a second look settles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trueup.compare import Applied, Change, Key, Layout, Scan, Span
from trueup.compare.canonical import divided
from trueup.compare.lines import ABSENT, NULL, unescape
from trueup.errors import SourceError, Transient
from trueup.model.reconcile import Column, ColumnType, Side
from trueup.sources.documents import Batch, Normalise, batch_maker, blocks_of, fetched, in_batches, line_maker

__all__ = ["DynamoRows", "plain_item", "plain_value"]

Item = dict[str, dict[str, Any]]

_KEYS_AT_ONCE = 100  # of a BatchGetItem


class DynamoRows:
    """A table as a source of a reconciliation, and as a target of its repair; `client` is a boto3 client.

    The key of the layout must be that of the table; `absent` is `kept` or `null`. `begins` limits the items
    to those whose attributes of these names are texts that begin so: of the others nothing is known here.
    `counts`: DynamoDB counts the items by itself before each scan, which reads the table once more.
    """

    def __init__(
        self,
        client: Any,
        table: str,
        layout: Layout,
        side: Side,
        *,
        absent: str = "null",
        segments: int = 1,
        begins: Mapping[str, str] | None = None,
        normalise: Normalise | None = None,
        counts: bool = False,
    ) -> None:
        self._counts = counts
        self._client = client
        self._table = table
        self._layout = layout
        self._side = side
        self._absent = absent
        self._segments = segments
        self._begins = begins or {}
        self._make = batch_maker(layout, side, absent, normalise)
        self._line = line_maker(layout, side, absent, normalise)

    @property
    def layout(self) -> Layout:
        """What the fields of the lines are."""
        return self._layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The items whose keys are in the span; the whole table is read for it, in no order."""
        if not self._counts:
            return Scan(blocks_of(self._batches(), self._layout, span, ordered=False), ordered=False)
        scan = Scan(iter(()), ordered=False)
        scan.blocks = self._proved(scan, span)
        return scan

    def _proved(self, scan: Scan, span: Span) -> Iterator[bytes]:
        """The blocks of a scan, which is proved where a count before it found as many items.

        Where it did not, another count tells a table that is written to, of which nothing is proved, from a
        scan that has lost items: SourceError.
        """
        counted = yield from self._count()
        read = rows = 0

        def batches() -> Iterator[Batch]:
            nonlocal read
            for batch in self._batches():
                read += batch.read
                yield batch

        for block in blocks_of(batches(), self._layout, span, ordered=False):
            rows += block.count(b"\n")
            yield block
        if read == counted:
            scan.counted = rows
        elif (yield from self._count()) == counted:
            raise SourceError(
                f"{read} items of the table {self._table}, the {self._side}, were read, and DynamoDB counted "
                f"{counted} before and after.",
                remedy="Retry the partition; if it is so again, look what hides items.",
            )

    def _count(self) -> Generator[bytes, None, int]:
        """How many items DynamoDB itself counts; an empty block for each page, so that a task can stop."""
        counted = 0
        for page in self._pages(Select="COUNT"):
            counted += page["Count"]
            yield b""
        return counted

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The lines of these keys, read consistently; of what begins with them, by reading all."""
        if any(len(key) < len(self._layout.key) for key in keys):
            return fetched(self._batches(), self._layout, keys)
        found: dict[Key, list[bytes]] = defaultdict(list)
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            for item in self._got(keys[start : start + _KEYS_AT_ONCE]):
                line = self._line(plain_item(item))
                found[self._layout.key_of(line)].append(line)
        return found

    def apply(self, change: Change) -> Applied:
        """Make one item as wanted if it is as expected: read, compared, written if it is still what was read.

        The attributes that are compared are written, all others stay.
        Raises SourceError where DynamoDB does not take the item, and Transient.
        """
        item = next(iter(self._got([change.key])), None)
        found = None if item is None else self._line(plain_item(item))
        if found != change.expected:
            return Applied.STALE_TARGET
        try:
            self._write(change, item)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return Applied.APPLIED if self._is_ours(change, error) else Applied.STALE_TARGET
            raise self._named(error) from error
        except BotoCoreError as error:
            raise self._named(error) from error
        return Applied.APPLIED

    def _is_ours(self, change: Change, refused: ClientError) -> bool:
        """Whether what the condition met is our own write, whose answer was lost: botocore asked again."""
        if not refused.response.get("ResponseMetadata", {}).get("RetryAttempts"):
            return False
        item = next(iter(self._got([change.key])), None)
        if item is None or change.wanted is None:
            return item is None and change.wanted is None
        fields = self._line(plain_item(item)).split(b"\t"), change.wanted.split(b"\t")
        both = zip(self._layout.columns, *fields, strict=False)
        return all(found == wanted for column, found, wanted in both if column.compared)

    def _write(self, change: Change, item: Item | None) -> None:
        key = self._raw_key(change.key)
        condition = self._as_found(item)
        if change.wanted is None:
            self._client.delete_item(TableName=self._table, Key=key, **condition)
            return
        sets, removes = {}, []
        for column, field in zip(self._layout.columns, change.wanted.split(b"\t"), strict=True):
            name = column.name_in(self._side)
            if name in key or not column.compared:
                continue
            if field == ABSENT or (field == NULL and self._absent == "null"):
                removes.append(name)
            else:
                sets[name] = _raw(column, self._side, field)
        self._client.update_item(TableName=self._table, Key=key, **_update(sets, removes, condition))

    def _as_found(self, item: Item | None) -> dict[str, Any]:
        """The condition that the compared attributes are still what was read."""
        names = [column.name_in(self._side) for column in self._layout.columns]
        if item is None:
            return {
                "ConditionExpression": "attribute_not_exists(#0)",
                "ExpressionAttributeNames": {"#0": names[0]},
            }
        terms = [
            f"#{n} = :{n}" if name in item else f"attribute_not_exists(#{n})" for n, name in enumerate(names)
        ]
        return {
            "ConditionExpression": " AND ".join(terms),
            "ExpressionAttributeNames": {f"#{n}": name for n, name in enumerate(names)},
            "ExpressionAttributeValues": {
                f":{n}": item[name] for n, name in enumerate(names) if name in item
            },
        }

    def _batches(self) -> Iterator[Batch]:
        number = 1
        for page in self._pages():
            yield from in_batches(self._table, enumerate(map(plain_item, page["Items"]), number), self._make)
            number += len(page["Items"])

    def _pages(self, **asked: Any) -> Iterator[dict[str, Any]]:
        """What a scan of all segments answers, one after the other."""
        for segment in range(self._segments):
            options = {"TableName": self._table, "ConsistentRead": True, **self._filter(), **asked}
            if self._segments > 1:
                options |= {"Segment": segment, "TotalSegments": self._segments}
            while True:
                page = self._ask("scan", **options)
                yield page
                if "LastEvaluatedKey" not in page:
                    break
                options["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _filter(self) -> dict[str, Any]:
        if not self._begins:
            return {}
        numbered = list(enumerate(self._begins.items()))
        return {
            "FilterExpression": " AND ".join(f"begins_with(#b{n}, :b{n})" for n, _ in numbered),
            "ExpressionAttributeNames": {f"#b{n}": name for n, (name, _) in numbered},
            "ExpressionAttributeValues": {f":b{n}": {"S": text} for n, (_, text) in numbered},
        }

    def _is_one_of_ours(self, item: Item) -> bool:
        return all(item.get(name, {}).get("S", "").startswith(text) for name, text in self._begins.items())

    def _got(self, keys: Sequence[Key]) -> Iterator[Item]:
        wanted: Any = {self._table: {"Keys": list(map(self._raw_key, keys)), "ConsistentRead": True}}
        while wanted:
            answer = self._ask("batch_get_item", RequestItems=wanted)
            yield from filter(self._is_one_of_ours, answer["Responses"].get(self._table, []))
            wanted = answer.get("UnprocessedKeys")

    def _raw_key(self, key: Key) -> Item:
        return {
            column.name_in(self._side): _raw(column, self._side, text.encode())
            for column, text in zip(self._layout.key, key, strict=True)
        }

    def _ask(self, call: str, **options: Any) -> Any:
        try:
            return getattr(self._client, call)(**options)
        except (ClientError, BotoCoreError) as error:
            raise self._named(error) from error

    def _named(self, error: Exception) -> SourceError | Transient:
        what = f"DynamoDB table {self._table}, the {self._side}, cannot be read or changed: {error}"
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        lasting = ("ResourceNotFoundException", "ValidationException", "AccessDeniedException")
        return SourceError(what) if code in lasting else Transient(what)


def plain_item(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An item as a document: numbers exact, sets as lists in order."""
    return {name: plain_value(value) for name, value in item.items()}


def plain_value(value: Mapping[str, Any]) -> Any:
    """One attribute of an item as a value."""
    ((kind, inner),) = value.items()
    if kind in ("S", "BOOL"):
        return inner
    if kind == "N":
        return Decimal(inner)
    if kind == "B":
        return bytes(inner) if not isinstance(inner, str) else inner
    if kind == "NULL":
        return None
    if kind == "M":
        return plain_item(inner)
    if kind == "L":
        return list(map(plain_value, inner))
    return sorted(map(Decimal, inner)) if kind == "NS" else sorted(inner)


def _update(sets: Mapping[str, Any], removes: Sequence[str], condition: Mapping[str, Any]) -> dict[str, Any]:
    names = dict(condition["ExpressionAttributeNames"])
    values = dict(condition.get("ExpressionAttributeValues", {}))
    parts = []
    if sets:
        names |= {f"#s{n}": name for n, name in enumerate(sets)}
        values |= {f":s{n}": value for n, value in enumerate(sets.values())}
        parts.append("SET " + ", ".join(f"#s{n} = :s{n}" for n in range(len(sets))))
    if removes:
        names |= {f"#r{n}": name for n, name in enumerate(removes)}
        parts.append("REMOVE " + ", ".join(f"#r{n}" for n in range(len(removes))))
    request = {"ConditionExpression": condition["ConditionExpression"], "ExpressionAttributeNames": names}
    if parts:
        request["UpdateExpression"] = " ".join(parts)
    if values:
        request["ExpressionAttributeValues"] = values
    return request


def _raw(column: Column, side: Side, field: bytes) -> dict[str, Any]:
    """A canonical field as the attribute that reads as it. SourceError where there is none."""
    if field == NULL:
        return {"NULL": True}
    text = unescape(field).decode()
    reading = column.reading(side)
    if reading.times is not None:
        return {"N": format(divided(field, reading.times), "f")}
    if column.type in (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.FLOAT):
        return {"N": text}
    if column.type is ColumnType.BOOLEAN:
        return {"BOOL": field == b"t"}
    if column.type is ColumnType.BYTES:
        return {"B": bytes.fromhex(text.removeprefix("\\x"))}
    if column.type is ColumnType.TIMESTAMP:
        return _raw_instant(text, reading.format)
    if column.type is ColumnType.JSON:
        raise SourceError(f"Column {column.name} is json, which cannot be written to DynamoDB.")
    return {"S": text}


def _raw_instant(text: str, form: str) -> dict[str, Any]:
    if form == "iso":
        return {"S": text.replace(" ", "T").removesuffix("+00") + "Z"}
    apart = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (apart.days * 86_400 + apart.seconds) * 1_000_000 + apart.microseconds
    scale = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}[form]
    return {"N": format(Decimal(microseconds) / scale, "f")}
