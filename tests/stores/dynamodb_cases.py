"""DynamoDB tables of a test's own, and clients on which something happens at a chosen moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

from trueup import Outcome
from trueup.sources.dynamodb import FencedTable

KEY = ("route", "day")


def new_table(dynamodb: Any) -> str:
    name = f"summary-{uuid4().hex[:8]}"
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "route", "AttributeType": "S"},
            {"AttributeName": "day", "AttributeType": "N"},
        ],
        KeySchema=[
            {"AttributeName": "route", "KeyType": "HASH"},
            {"AttributeName": "day", "KeyType": "RANGE"},
        ],
    )
    return name


def stored(dynamodb: Any, name: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The items by their keys, which are left out."""
    read = TypeDeserializer().deserialize
    pages = dynamodb.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
    items = [{k: read(v) for k, v in item.items()} for page in pages for item in page["Items"]]
    return {(item.pop("route"), int(item.pop("day"))): item for item in items}


def row(day: int, **values: Any) -> dict[str, Any]:
    return {"route": "EWR#UA", "day": day, **values}


def put(table: FencedTable, rows: list[dict[str, Any]], fence: int) -> Outcome:
    """What `table.put` says, to be compared: an Outcome's refused rows may be a list or a tuple."""
    outcome = table.put(rows, fence)
    return replace(outcome, refused=tuple(outcome.refused))


class Interposed:
    """A client on which something happens right before or after a call, once."""

    def __init__(self, real: Any, call: str, *, before: Any = None, after: Any = None) -> None:
        self._real = real
        self._call = call
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return self._around(real) if name == self._call else real

    def _around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            before, self._before = self._before, None
            if before:
                before(arguments)
            answer = real(**arguments)
            after, self._after = self._after, None
            return after(answer) or answer if after else answer

        return call


def failing(code: str, reasons: list[str] | None = None, status: int = 400) -> Callable[[Any], None]:
    def fail(_: Any) -> None:
        response: Any = {
            "Error": {"Code": code, "Message": "no"},
            "CancellationReasons": [{"Code": reason} for reason in reasons or []],
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        raise ClientError(response, "TransactWriteItems")

    return fail
