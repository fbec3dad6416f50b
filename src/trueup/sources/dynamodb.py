"""A DynamoDB table that refuses a task which should be dead: guard `fence`.

Each row carries the fence of the task that wrote it last, and is written only where that is not higher.

Rows go out in transactions of up to 100, which cost a task a fifth of the CPU time of single puts.
A transaction does not say what it replaced, so it is conditional on each row being as it was read:
then what was read is what the write found, and may be counted.
Where that fails (a row moved, another transaction has it in hand, a row is unfit) the rows are put one by
one, and DynamoDB itself returns what each of them replaced.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

import stamina
from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from trueup.errors import JobError, Superseded, Throttled, Transient, TrueupError
from trueup.jobs import Outcome

__all__ = ["FencedTable"]

T = TypeVar("T")
Row = Mapping[str, Any]
Raw = dict[str, Any]
"""One value as DynamoDB writes it, `{"N": "1"}`, or an item of such values."""

_TOGETHER = 100  # DynamoDB's limits: actions of a transaction, and keys of a BatchGetItem
_MOST_PINS = 100  # an expression may have 4 KB and 300 operators; a pin takes 16 bytes and two operators
_PATIENCE_SECONDS = 10.0

_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
        "ThrottlingException",
        "ThrottlingError",
    }
)


class _OneByOne(TrueupError):
    """A call on many rows was refused as a whole: each has to be asked for by itself."""


class _Unfit(_OneByOne):
    """DynamoDB says that a value cannot be stored."""


class _Conflict(Transient):
    """A transaction has the row in hand."""


class _Unprocessed(Throttled):
    """DynamoDB left some keys of a batch for later."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of the author's, the item it becomes, and its key in a form that can be compared."""

    row: Row
    item: Raw
    key: tuple[Any, ...]


class FencedTable:
    """A table whose rows carry a fence.

    `client` is a boto3 DynamoDB client, `key` names the attributes of the table's key.
    A row becomes an item of exactly its attributes and the fence; other attributes that were there go.
    Floats are stored with the digits that Python prints, so reading them back gives the same float.
    None means that the attribute is absent, as indexes want it (inside lists and maps it is a NULL).
    """

    def __init__(self, client: Any, name: str, key: Sequence[str], fence_attribute: str = "fence") -> None:
        self._client = client
        self._name = name
        self._key = tuple(key)
        self._fence = fence_attribute

    def put(self, rows: Sequence[Row], fence: int) -> Outcome:
        """Write rows where their stored fence is not higher, and stamp those that have these values already.

        Returns how many were written (new, or other values) and unchanged (only the fence moved); refused are
        rows with a value that DynamoDB cannot store, each with the reason.
        After an error the same rows can be put again; those that got through are then unchanged.

        Raises Superseded at a higher fence, Throttled, Transient, and JobError for a row without its key, two
        rows of one key, or a type that DynamoDB does not have.
        """
        entries, outcome = self._entries(rows, fence)
        for start in range(0, len(entries), _TOGETHER):
            outcome = outcome.plus(self._put_chunk(entries[start : start + _TOGETHER], fence))
        return outcome

    def _put_chunk(self, chunk: Sequence[_Entry], fence: int) -> Outcome:
        try:
            return self._put_together(chunk, fence)
        except _OneByOne:
            outcome = Outcome()
            for entry in chunk:
                outcome = outcome.plus(self._put_one(entry, fence))
            return outcome

    def _put_together(self, chunk: Sequence[_Entry], fence: int) -> Outcome:
        found = self._read(chunk)
        for item in found.values():
            self._check_fence(item, fence)
        puts = [self._request(entry, self._as_found(entry, found.get(entry.key))) for entry in chunk]
        # botocore's retries share one token, so that none is refused by the effect of an earlier one.
        _ask(self._client.transact_write_items, TransactItems=[{"Put": put} for put in puts])
        unchanged = sum(self._same(entry.item, found.get(entry.key)) for entry in chunk)
        return Outcome(written=len(chunk) - unchanged, unchanged=unchanged)

    def _put_one(self, entry: _Entry, fence: int) -> Outcome:
        condition = {
            "ConditionExpression": "attribute_not_exists(#fence) OR #fence <= :fence",
            "ExpressionAttributeNames": {"#fence": self._fence},
            "ExpressionAttributeValues": {":fence": entry.item[self._fence]},
        }
        wanted = self._request(entry, condition)
        answers = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            answer = _patiently(_Conflict, lambda: _ask(self._client.put_item, **wanted, **answers))
        except _Unfit as error:
            return Outcome(refused=[(entry.row, error.what)])
        except ClientError as error:  # the condition; `_ask` has named what else may come
            self._check_fence(error.response.get("Item", {}), fence)
            raise
        unchanged = self._same(entry.item, answer.get("Attributes"))
        return Outcome(written=int(not unchanged), unchanged=int(unchanged))

    def _request(self, entry: _Entry, condition: Mapping[str, Any]) -> dict[str, Any]:
        return {"TableName": self._name, "Item": entry.item, **condition}

    def _as_found(self, entry: _Entry, found: Raw | None) -> dict[str, Any]:
        """The condition that the item is still what was read."""
        if found is None:
            names = {"#0": self._key[0]}
            return {"ConditionExpression": "attribute_not_exists(#0)", "ExpressionAttributeNames": names}
        # The row's own names too: what was absent, a None included, must still be absent.
        pinned = sorted((found.keys() | entry.item.keys() | entry.row.keys()) - set(self._key))
        if len(pinned) > _MOST_PINS:
            raise _OneByOne("The row has too many attributes to pin.")
        numbered = list(enumerate(pinned))
        terms = [f"#{n} = :{n}" if name in found else f"attribute_not_exists(#{n})" for n, name in numbered]
        return {
            "ConditionExpression": " AND ".join(terms),
            "ExpressionAttributeNames": {f"#{n}": name for n, name in numbered},
            "ExpressionAttributeValues": {f":{n}": found[name] for n, name in numbered if name in found},
        }

    def _read(self, chunk: Sequence[_Entry]) -> dict[tuple[Any, ...], Raw]:
        """The items that exist, by their keys."""
        keys = [{name: entry.item[name] for name in self._key} for entry in chunk]
        wanted: Any = {self._name: {"Keys": keys, "ConsistentRead": True}}
        found: dict[tuple[Any, ...], Raw] = {}

        def ask() -> None:
            nonlocal wanted
            answer = _ask(self._client.batch_get_item, RequestItems=wanted)
            found.update((self._key_of(item), item) for item in answer["Responses"].get(self._name, []))
            wanted = answer.get("UnprocessedKeys")
            if wanted:
                raise _Unprocessed(f"DynamoDB put off some keys of {self._name}.")

        _patiently(_Unprocessed, ask)
        return found

    def _check_fence(self, found: Raw, ours: int) -> None:
        """Superseded where the item's fence is higher; JobError where it is no number."""
        stored = found.get(self._fence, {"N": "0"})
        if "N" not in stored:
            raise JobError(
                f"Attribute {self._fence!r} of {self._named(found)} holds no number but {stored}.",
                remedy="Give FencedTable a fence_attribute that nothing else uses.",
            )
        theirs = int(Decimal(stored["N"]))
        if theirs > ours:
            raise Superseded(
                f"{self._named(found)} was written with fence {theirs}, ours is {ours}.",
                ours=ours,
                theirs=theirs,
            )

    def _named(self, item: Raw) -> str:
        key = ", ".join(f"{name}={next(iter(item[name].values()))}" for name in self._key)
        return f"Row {key} of table {self._name}"

    def _same(self, ours: Raw, found: Raw | None) -> bool:
        return found is not None and self._values(ours) == self._values(found)

    def _values(self, item: Raw) -> dict[str, Any]:
        return {name: _comparable(value) for name, value in item.items() if name != self._fence}

    def _key_of(self, item: Raw) -> tuple[Any, ...]:
        return tuple(_comparable(item[name]) for name in self._key)

    def _entries(self, rows: Sequence[Row], fence: int) -> tuple[list[_Entry], Outcome]:
        """The rows as entries, and the outcome of those that have a number which cannot be stored."""
        entries: dict[tuple[Any, ...], _Entry] = {}
        refused = []
        for row in rows:
            self._check_names(row)
            try:
                item = dict(_encoded(row))
            except ArithmeticError as error:
                refused.append((row, str(error)))
                continue
            item[self._fence] = {"N": str(fence)}
            key = self._key_of(item)
            if key in entries:
                raise JobError(
                    f"{self._named(item)} comes twice in one write.",
                    remedy="Give each key once: see `combine`.",
                )
            entries[key] = _Entry(row, item, key)
        return list(entries.values()), Outcome(refused=refused)

    def _check_names(self, row: Row) -> None:
        missing = [name for name in self._key if row.get(name) is None]
        if missing:
            raise JobError(
                f"A row for table {self._name} has no {' and no '.join(missing)}: {dict(row)}.",
                remedy=f"Every row needs its key: {', '.join(self._key)}.",
            )
        if self._fence in row:
            raise JobError(
                f"A row for table {self._name} has an attribute {self._fence!r}, which holds the fence.",
                remedy="Rename it, or give FencedTable another fence_attribute.",
            )


def _patiently(on: type[Exception], call: Callable[[], T]) -> T:
    """What `call` returns, asked again for a while when it raises `on`."""
    for attempt in stamina.retry_context(
        on=on, attempts=None, timeout=_PATIENCE_SECONDS, wait_initial=0.02, wait_max=1.0, wait_jitter=0.05
    ):
        with attempt:
            return call()
    raise AssertionError("the last attempt returns or raises")


def _ask(call: Callable[..., Any], **arguments: Any) -> Any:
    """What DynamoDB answers; its refusals by our names, save that of a condition."""
    try:
        return call(**arguments)
    except ClientError as error:
        named = _named_error(error)
        if named is None:
            raise
        raise named from error
    except (NoConnection, HTTPClientError) as error:
        raise Transient(f"DynamoDB did not answer: {error}.") from error


def _named_error(error: ClientError) -> TrueupError | None:
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
    if _THROTTLED & {code, *reasons}:
        return Throttled(f"DynamoDB asks to slow down: {message}")
    if code == "ValidationException":
        return _Unfit(message)
    if code == "TransactionCanceledException":
        return _OneByOne(message)
    if code == "TransactionConflictException":
        return _Conflict(message)
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if code == "TransactionInProgressException" or status >= 500:
        return Transient(f"DynamoDB failed: {message}")
    return None


_serialize = TypeSerializer().serialize


def _encoded(row: Row) -> Iterator[tuple[str, Raw]]:
    """A row's attributes. ArithmeticError for a number, JobError for a type that DynamoDB lacks."""
    for name, value in row.items():
        if value is None:
            continue
        try:
            yield name, _serialize(_exact(value))
        except decimal.DecimalException as error:
            raise ArithmeticError(
                f"{name} is {value}: DynamoDB has numbers of up to 38 digits, and no NaN or infinity"
            ) from error
        except TypeError as error:
            raise JobError(
                f"Attribute {name!r} is a {type(value).__name__}, which DynamoDB does not have: {value!r}.",
                remedy="Make it text, a number, bytes, a bool, a list, a set or a dict in `transform`.",
            ) from error


def _exact(value: Any) -> Any:
    """Floats as decimals of the digits that Python prints, at any depth."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal) and not value.is_finite():
        raise decimal.InvalidOperation
    if isinstance(value, dict):
        return {name: _exact(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(part) for part in value]
    return value


def _comparable(raw: Raw) -> tuple[str, Any]:
    """A value with its type (Python holds True and 1 for equal), numbers by value and sets without order."""
    ((kind, value),) = raw.items()
    if kind == "N":
        return kind, Decimal(value)
    if kind in ("NS", "SS", "BS"):
        return kind, frozenset(map(Decimal, value) if kind == "NS" else value)
    if kind == "L":
        return kind, tuple(map(_comparable, value))
    if kind == "M":
        return kind, frozenset((name, _comparable(part)) for name, part in value.items())
    return kind, bytes(value) if kind == "B" else value
