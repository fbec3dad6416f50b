"""The ledger's table and the artifacts' bucket on an emulator: what template.yaml makes on AWS."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

TABLE = "trueup"
BUCKET = "trueup-artifacts"


def create_ledger_table(dynamodb: Any, name: str = TABLE) -> None:
    """The one table: two string keys, on demand."""
    create_table(dynamodb, name, ["PK", "SK"])


def create_table(dynamodb: Any, name: str, key: list[str]) -> None:
    """A table on demand with a string partition key and, where a second is named, a string sort key."""
    dynamodb.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": part, "KeyType": kind}
            for part, kind in zip(key, ["HASH", "RANGE"], strict=False)
        ],
        AttributeDefinitions=[{"AttributeName": part, "AttributeType": "S"} for part in key],
        BillingMode="PAY_PER_REQUEST",
    )


def put_days(s3: Any, bucket: str, days: Iterable[tuple[date, bytes]]) -> int:
    """Put one object a day, `flights/<date>.csv`, and say how many."""

    def put(day: tuple[date, bytes]) -> None:
        s3.put_object(Bucket=bucket, Key=f"flights/{day[0]}.csv", Body=day[1])

    with ThreadPoolExecutor(8) as pool:
        return sum(1 for _ in pool.map(put, days))
