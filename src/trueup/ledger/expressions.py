"""Writes, conditions and values in the words of DynamoDB's API. Pure: nothing here calls anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trueup.ledger.table import Clause, Item, Key, Write

# The last character there is: no sort key with a prefix comes after the prefix and this one.
_LAST = "\U0010ffff"


def encode_key(key: Key) -> dict[str, Any]:
    """A key as DynamoDB attribute values."""
    return {"PK": {"S": key[0]}, "SK": {"S": key[1]}}


def condition_of(pk: str, prefix: str, after: str) -> dict[str, Any]:
    """The key condition of a query. `after` itself is still in it, since BETWEEN includes both ends."""
    if not (prefix or after):
        return {"KeyConditionExpression": "PK = :pk", "ExpressionAttributeValues": {":pk": {"S": pk}}}
    ends = {":low": {"S": max(prefix, after)}, ":high": {"S": max(prefix + _LAST, after)}}
    return {
        "KeyConditionExpression": "PK = :pk AND SK BETWEEN :low AND :high",
        "ExpressionAttributeValues": {":pk": {"S": pk}, **ends},
    }


def request_of(write: Write) -> tuple[str, dict[str, Any]]:
    """The client's method for a write, and its arguments without the table."""
    names = _Names()
    arguments: dict[str, Any] = {}
    if write.clauses:
        arguments["ConditionExpression"] = " AND ".join(_condition(clause, names) for clause in write.clauses)
    if write.item is not None:
        item = {**encode(write.item), **encode_key(write.key)}
        return "put_item", {**arguments, "Item": item, **names.arguments()}
    arguments["Key"] = encode_key(write.key)
    if write.delete:
        return "delete_item", {**arguments, **names.arguments()}
    if not write.is_check:
        arguments["UpdateExpression"] = _changes(write, names)
    return "update_item", {**arguments, **names.arguments()}


class _Names:
    """Placeholders of one expression: `#a0` for attributes, `:v0` for values."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def name(self, attribute: str) -> str:
        return self.names.setdefault(attribute, f"#a{len(self.names)}")

    def value(self, value: Any) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = encode_value(value)
        return placeholder

    def arguments(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        if self.names:
            chosen["ExpressionAttributeNames"] = {short: name for name, short in self.names.items()}
        if self.values:
            chosen["ExpressionAttributeValues"] = self.values
        return chosen


def _condition(clause: Clause, names: _Names) -> str:
    attribute = names.name(clause.attribute)
    if clause.op == "absent":
        return f"attribute_not_exists({attribute})"
    if clause.op == "present":
        text = f"attribute_exists({attribute})"
    elif clause.op == "in":
        text = f"{attribute} IN ({', '.join(names.value(value) for value in clause.value)})"
    else:
        text = f"{attribute} {clause.op} {names.value(clause.value)}"
    return f"(attribute_not_exists({attribute}) OR {text})" if clause.or_absent else text


def _changes(write: Write, names: _Names) -> str:
    sets = [f"{names.name(name)} = {names.value(value)}" for name, value in write.sets.items()]
    adds = [f"{names.name(name)} {names.value(amount)}" for name, amount in write.adds.items()]
    removes = [names.name(name) for name in write.removes]
    parts = {"SET": sets, "ADD": adds, "REMOVE": removes}
    return " ".join(f"{word} {', '.join(terms)}" for word, terms in parts.items() if terms)


def encode_value(value: Any) -> dict[str, Any]:
    """A plain Python value as a DynamoDB attribute value. Raises TypeError for what a ledger cannot hold."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": str(value)}
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return {"N": repr(value)}
    if isinstance(value, Mapping):
        return {"M": encode(value)}
    if isinstance(value, list | tuple):
        return {"L": [encode_value(part) for part in value]}
    raise TypeError(f"the ledger cannot hold the {type(value).__name__} {value!r}")


def encode(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as DynamoDB attribute values."""
    return {name: encode_value(value) for name, value in item.items()}


def decode(raw: Mapping[str, Any]) -> Item:
    """DynamoDB attribute values as an item, without its keys. Whole numbers become int, others float."""
    return {name: _value(value) for name, value in raw.items() if name not in ("PK", "SK")}


def _value(raw: Mapping[str, Any]) -> Any:
    kind, value = next(iter(raw.items()))
    match kind:
        case "N":
            return _number(value)
        case "M":
            return {name: _value(part) for name, part in value.items()}
        case "L":
            return [_value(part) for part in value]
        case "NULL":
            return None
        case "S" | "BOOL":
            return value
    raise TypeError(f"the ledger never wrote a {kind}")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number
