"""Damage on purpose: some items of the summary table are taken away, some changed, some added."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Item = dict[str, dict[str, str]]
Key = tuple[str, ...]

_FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done to a table: each key with the item that was there before it; of the extra ones, None."""

    missing: Mapping[Key, Item] = field(default_factory=dict)
    mismatched: Mapping[Key, Item] = field(default_factory=dict)
    extra: Mapping[Key, None] = field(default_factory=dict)

    @property
    def before(self) -> dict[Key, Item | None]:
        """All of it."""
        return {**self.missing, **self.mismatched, **self.extra}

    @property
    def counts(self) -> dict[str, int]:
        """How many of each class, by the names that reports have for them."""
        return {name: len(getattr(self, name)) for name in ("missing", "mismatched", "extra")}


def damage_summary(
    client: Any, table: str, rng: random.Random, *, missing: int, mismatched: int, extra: int
) -> Damage:
    """Damage so many items of a table of flights-summary, chosen by `rng`; what was done to which.

    The extra ones are flights of a carrier that there is not. ValueError where the table has too few items.
    """
    found = sorted(_items(client, table), key=key_of)
    chosen = rng.sample(found, missing + mismatched + extra)
    taken, changed, copied = chosen[:missing], chosen[missing : missing + mismatched], chosen[-extra:]
    for item in taken:
        client.delete_item(TableName=table, Key=_raw_key(item))
    for item in changed:
        miles = str(int(item["miles"]["N"]) + 1)
        client.put_item(TableName=table, Item={**item, "miles": {"N": miles}})
    added = [_of_nobody(item, number) for number, item in enumerate(copied)]
    for item in added:
        client.put_item(TableName=table, Item=item)
    return Damage(
        missing={key_of(item): item for item in taken},
        mismatched={key_of(item): item for item in changed},
        extra={key_of(item): None for item in added},
    )


def differing(client: Any, table: str, expected: Mapping[Key, Item | None]) -> list[Key]:
    """The keys whose item is not as expected; which task wrote it last makes no difference."""
    wrong = []
    for key, item in expected.items():
        raw = dict(zip(("route", "date"), ({"S": part} for part in key), strict=True))
        found = client.get_item(TableName=table, Key=raw, ConsistentRead=True).get("Item")
        if _values(found) != _values(item):
            wrong.append(key)
    return wrong


def key_of(item: Item) -> Key:
    """An item's key, as reports have it."""
    return item["route"]["S"], item["date"]["S"]


def _items(client: Any, table: str) -> Iterator[Item]:
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        yield from page["Items"]


def _raw_key(item: Item) -> Item:
    return {name: item[name] for name in ("route", "date")}


def _of_nobody(item: Item, number: int) -> Item:
    carrier = f"Z{number}"
    return {**item, "carrier": {"S": carrier}, "route": {"S": f"{item['origin']['S']}#{carrier}"}}


def _values(item: Item | None) -> Item | None:
    return None if item is None else {name: value for name, value in item.items() if name != _FENCE}
