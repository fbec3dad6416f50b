"""The table on DynamoDB: writes as expressions, refusals with the old item.

`ReturnValuesOnConditionCheckFailure=ALL_OLD` gives the holder's item with a refusal, at no read charge.
Only botocore is imported, since boto3 costs a starting task a good deal more and adds nothing to a client.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import stamina
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from trueup.aws import connect
from trueup.errors import StoreUnavailable
from trueup.ledger.expressions import condition_of, decode, encode_key, request_of
from trueup.ledger.table import (
    ConditionFailed,
    Item,
    Key,
    TransactionFailed,
    Write,
    check_alone,
    check_together,
)

_GET_MANY = 100
_REMEDY = "Check the table's name, the role and the network; the work goes on from the last checkpoint."


def connect_dynamodb() -> Any:
    """A client that finds DynamoDB by the standard environment, with retries and connections for a task."""
    return connect("dynamodb", connections=32)


class DynamoTable:
    """A Table on DynamoDB, with the keys `PK` and `SK`, both strings.

    `client` is a boto3 or botocore DynamoDB client; its own retries apply to throttling and network errors.
    Conflicts with other transactions are retried here for up to `patience` seconds.
    """

    def __init__(self, client: Any, name: str, *, patience: float = 30.0) -> None:
        self._client = client
        self._name = name
        self._patience = patience

    def get(self, key: Key) -> Item | None:
        """The item, or None. Raises StoreUnavailable."""
        answer = self._call("get_item", Key=encode_key(key), ConsistentRead=True)
        return decode(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Those of the items that exist, for any number of keys. Raises StoreUnavailable."""
        found: dict[Key, Item] = {}
        wanted = list(dict.fromkeys(keys))  # DynamoDB refuses a batch that names a key twice
        for start in range(0, len(wanted), _GET_MANY):
            found.update(self._get_batch(wanted[start : start + _GET_MANY]))
        return found

    def _get_batch(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        left: Any = {self._name: {"Keys": [encode_key(key) for key in keys], "ConsistentRead": True}}

        def ask() -> None:
            nonlocal left
            answer = _answered(self._client.batch_get_item, RequestItems=left)
            for raw in answer["Responses"].get(self._name, []):
                found[raw["PK"]["S"], raw["SK"]["S"]] = decode(raw)
            left = answer.get("UnprocessedKeys") or {}
            if left:
                raise _Later(
                    f"DynamoDB left {len(left[self._name]['Keys'])} keys of a batch unread.", remedy=_REMEDY
                )

        self._patiently(ask)
        return found

    def write(self, write: Write) -> Item | None:
        """Do one write and return the old item. Raises ConditionFailed, StoreUnavailable."""
        check_alone(write)
        call, arguments = request_of(write)
        both = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            answer = self._patiently(lambda: self._call(call, **arguments, **both))
        except ClientError as error:
            raise ConditionFailed(write, _item_or_none(error.response.get("Item"))) from error
        return _item_or_none(answer.get("Attributes"))

    def transact(self, writes: Sequence[Write]) -> None:
        """Do all writes or none. Raises TransactionFailed, StoreUnavailable.

        One token for all attempts, so that an attempt whose answer was lost is not refused by its own effect.
        """
        check_together(writes)
        items = [_transaction_item(write, self._name) for write in writes]
        token = str(uuid.uuid4())
        self._patiently(lambda: self._transact_once(items, writes, token))

    def _transact_once(self, items: list[Any], writes: Sequence[Write], token: str) -> None:
        try:
            _answered(self._client.transact_write_items, TransactItems=items, ClientRequestToken=token)
        except ClientError as error:
            reasons = error.response.get("CancellationReasons", [])
            refusals = _refusals(reasons, writes)
            if refusals:
                raise TransactionFailed(refusals) from error
            codes = {reason.get("Code") for reason in reasons}
            if codes & _WRONG:
                raise _wrong(error) from error
            raise (_later(error) if codes & _BUSY else _unavailable(error)) from error

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        """Items of one partition key, in the order of their sort keys. Raises StoreUnavailable."""
        start: dict[str, Any] = {}
        while True:
            answer = self._call("query", **condition_of(pk, prefix, after), ConsistentRead=True, **start)
            for raw in answer["Items"]:
                if raw["SK"]["S"] > after:
                    yield {**decode(raw), "SK": raw["SK"]["S"]}
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _call(self, name: str, **arguments: Any) -> Any:
        return _answered(getattr(self._client, name), TableName=self._name, **arguments)

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        # Short waits: a conflict lasts as long as another call is under way.
        waits = {"wait_initial": 0.02, "wait_max": 1.0, "wait_jitter": 0.1}
        for attempt in stamina.retry_context(on=_Later, attempts=None, timeout=self._patience, **waits):
            with attempt:
                answer = ask()
        return answer


class _Later(StoreUnavailable):
    """Nothing was refused and nothing was done: another call had an item in hand, or it was too much."""


_REFUSED = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
_BUSY = frozenset(
    {
        "TransactionConflictException",
        "TransactionInProgressException",
        # These come as reasons of a cancelled transaction, which the client itself does not try again.
        "TransactionConflict",
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
    }
)
_WRONG = frozenset({"ValidationException", "ValidationError", "ItemCollectionSizeLimitExceeded"})


def _answered(call: Any, **arguments: Any) -> Any:
    """What DynamoDB answers. A refusal passes as ClientError, everything else as an error of ours."""
    try:
        return call(**arguments)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _REFUSED:
            raise
        if code in _WRONG:
            raise _wrong(error) from error
        raise (_later(error) if code in _BUSY else _unavailable(error)) from error
    except ParamValidationError as error:
        raise _wrong(error) from error
    except BotoCoreError as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"DynamoDB did not do what was asked: {error}.", remedy=_REMEDY)


def _later(error: Exception) -> _Later:
    return _Later(f"DynamoDB was busy with the same items all the time: {error}.", remedy="Try again.")


def _wrong(error: Exception) -> ValueError:
    return ValueError(f"DynamoDB can never do what was asked: {error}")


def _refusals(reasons: Sequence[Any], writes: Sequence[Write]) -> list[ConditionFailed]:
    return [
        ConditionFailed(write, _item_or_none(reason.get("Item")))
        for write, reason in zip(writes, reasons, strict=False)
        if reason.get("Code") == "ConditionalCheckFailed"
    ]


_TRANSACTION_WORD = {"put_item": "Put", "delete_item": "Delete", "update_item": "Update"}


def _transaction_item(write: Write, table: str) -> dict[str, Any]:
    call, arguments = request_of(write)
    word = "ConditionCheck" if write.is_check else _TRANSACTION_WORD[call]
    return {word: {"TableName": table, **arguments, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}


def _item_or_none(raw: dict[str, Any] | None) -> Item | None:
    return decode(raw) if raw else None
