"""Damage on purpose: as many items of each class as were asked for, and nothing else."""

from __future__ import annotations

import random
from typing import Any

from trueup.local.damage import damage_summary, differing, key_of
from trueup.local.stores import create_table

from .plain_values import unique


def test_so_many_items_are_damaged_and_it_is_told_which(moto_clients: dict[str, Any]) -> None:
    client, name = moto_clients["dynamodb"], unique()
    create_table(client, name, ["route", "date"])
    for number in range(20):
        origin, miles, fence = "JFK" if number % 2 else "LGA", str(number), "1"
        client.put_item(
            TableName=name,
            Item={
                "route": {"S": f"{origin}#A{number}"},
                "date": {"S": "2013-01-01"},
                "origin": {"S": origin},
                "carrier": {"S": f"A{number}"},
                "miles": {"N": miles},
                "fence": {"N": fence},
            },
        )
    before = {key_of(item): item for item in client.scan(TableName=name)["Items"]}
    done = damage_summary(client, name, random.Random(1), missing=3, mismatched=4, extra=2)
    after = {key_of(item): item for item in client.scan(TableName=name)["Items"]}

    assert {"missing": 3, "mismatched": 4, "extra": 2} == done.counts
    assert 9 == len(done.before)
    assert before.keys() - after.keys() == done.missing.keys()
    assert after.keys() - before.keys() == done.extra.keys()
    both = before.keys() & after.keys()
    assert {key for key in both if before[key] != after[key]} == done.mismatched.keys()
    assert sorted(done.before) == sorted(differing(client, name, done.before))

    for key, item in done.before.items():
        raw = dict(zip(("route", "date"), ({"S": part} for part in key), strict=True))
        if item is None:
            client.delete_item(TableName=name, Key=raw)
        else:
            # Whoever repairs leaves no fence where there was no item.
            client.put_item(TableName=name, Item={k: v for k, v in item.items() if k != "fence"})
    assert [] == differing(client, name, done.before)
