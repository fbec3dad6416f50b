"""Conditional writes as values: what to change, on which named conditions.

A write is data, so one definition serves three ends: DynamoDB runs it (`dynamo.py`), memory runs it
(`memory.py`), and a refusal is explained by asking each clause about the item that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, cast

Item = dict[str, Any]
Key = tuple[str, str]
Op = Literal["=", "<", "<=", ">", "in", "absent", "present"]

_T = TypeVar("_T")

MAX_TRANSACTION = 100
MAX_IN = 100
MAX_ITEM = 400 * 1024


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition on one attribute, with a name that reads as a sentence.

    `or_absent`: an attribute (or item) that is not there satisfies it too.
    """

    name: str
    attribute: str
    op: Op
    value: Any = None
    or_absent: bool = False

    def __post_init__(self) -> None:
        """Refuse what DynamoDB would: an empty list, or one of more than 100."""
        if self.op == "in" and not 1 <= len(self.value) <= MAX_IN:
            raise ValueError(f"{self.name!r} names {len(self.value)} values; `in` takes 1 to {MAX_IN}")

    def holds(self, item: Item | None) -> bool:
        """Whether the item as it stands satisfies the clause, by DynamoDB's rules."""
        if item is None or self.attribute not in item:
            return self.or_absent or self.op == "absent"
        return _HOLDS[self.op](item[self.attribute], self.value)


def _alike(found: Any, wanted: Any) -> bool:
    """Whether two values are of one DynamoDB type. Those of two types are never equal, nor is one less."""
    return _kind(found) == _kind(wanted)


def _kind(value: Any) -> type:
    for kind in (bool, int, str):
        if isinstance(value, kind):
            return kind
    return int if isinstance(value, float) else type(value)


def _equal(found: Any, wanted: Any) -> bool:
    return _alike(found, wanted) and bool(found == wanted)


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "<": lambda found, wanted: _alike(found, wanted) and found < wanted,
    "<=": lambda found, wanted: _alike(found, wanted) and found <= wanted,
    ">": lambda found, wanted: _alike(found, wanted) and found > wanted,
    "in": lambda found, wanted: any(_equal(found, one) for one in wanted),
    "absent": lambda found, wanted: False,
    "present": lambda found, wanted: True,
}


def plain(value: _T) -> _T:
    """A copy of a value in the types that every table gives back. Raises TypeError for what none can hold."""
    copy: Any = _plain(value)
    return cast("_T", copy)


def _plain(value: object) -> object:
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    raise TypeError(f"the ledger cannot hold the {type(value).__name__} {value!r}")


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one item. With nothing to change it is a condition check, for transactions."""

    key: Key
    clauses: tuple[Clause, ...] = ()
    sets: Mapping[str, Any] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)
    removes: tuple[str, ...] = ()
    item: Item | None = None
    delete: bool = False

    def __post_init__(self) -> None:
        """Refuse what DynamoDB would: two ways of changing at once, or one attribute changed twice."""
        named = [*self.sets, *self.adds, *self.removes]
        if bool(named) + self.delete + (self.item is not None) > 1 or len(set(named)) < len(named):
            raise ValueError(f"a write of {self.key} changes something in two ways")

    @property
    def is_check(self) -> bool:
        """Whether it changes nothing."""
        return not (self.sets or self.adds or self.removes or self.delete or self.item is not None)

    def refused_by(self, item: Item | None) -> Clause | None:
        """The first clause that the item does not satisfy."""
        return next((clause for clause in self.clauses if not clause.holds(item)), None)

    def applied_to(self, item: Item | None) -> Item | None:
        """The item after the write. Sets and sums see the old item, as in DynamoDB."""
        if self.delete:
            return None
        if self.item is not None:
            return plain(self.item)
        new = dict(item or {})
        new.update(plain(self.sets))
        for name, amount in self.adds.items():
            new[name] = (item or {}).get(name, 0) + amount
        for name in self.removes:
            new.pop(name, None)
        return new


def check_size(write: Write, item: Item) -> None:
    """Refuse an item that DynamoDB would: of more than 400 KB. Raises ValueError."""
    size = item_size({"PK": write.key[0], "SK": write.key[1], **item})
    if size > MAX_ITEM:
        raise ValueError(f"the item {write.key} would have {size:,} bytes, and DynamoDB takes {MAX_ITEM:,}")


def item_size(value: object) -> int:
    """The bytes that DynamoDB counts for an item: names and text in UTF-8, and some for each level."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, Mapping):
        return 3 + sum(1 + item_size(name) + item_size(part) for name, part in value.items())
    if isinstance(value, list | tuple):
        return 3 + sum(1 + item_size(part) for part in value)
    return len(str(value)) // 2 + 2  # two digits a byte


def check_alone(write: Write) -> None:
    """Refuse a write that changes nothing: DynamoDB checks in transactions only. Raises ValueError."""
    if write.is_check:
        raise ValueError(f"a check of {write.key} changes nothing: it belongs into a transaction")


def check_together(writes: Sequence[Write]) -> None:
    """Refuse a transaction that DynamoDB would refuse. Raises ValueError."""
    if not 1 <= len(writes) <= MAX_TRANSACTION:
        raise ValueError(f"a transaction takes 1 to {MAX_TRANSACTION} writes, not {len(writes)}")
    if len({write.key for write in writes}) < len(writes):
        raise ValueError("a transaction may name an item only once")


class ConditionFailed(Exception):
    """A write was refused; `old` is the item as it stood, or None."""

    def __init__(self, write: Write, old: Item | None) -> None:
        clause = write.refused_by(old)
        super().__init__(clause.name if clause else "unknown clause")
        self.write = write
        self.old = old
        self.clause = clause


class TransactionFailed(Exception):
    """A transaction was refused whole; `refusals` holds each write that failed, with the item it found."""

    def __init__(self, refusals: Sequence[ConditionFailed]) -> None:
        super().__init__("; ".join(str(refusal) for refusal in refusals))
        self.refusals = list(refusals)

    def of(self, key: Key) -> ConditionFailed | None:
        """The refusal of one item, if it was refused."""
        return next((refusal for refusal in self.refusals if refusal.write.key == key), None)


class Table(Protocol):
    """A table that writes conditionally. All reads are consistent; what they give is the caller's own copy.

    All raise StoreUnavailable where the table did not answer, and ValueError for what DynamoDB would refuse.
    """

    def get(self, key: Key) -> Item | None:
        """The item, or None."""

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Those of the items that exist, for any number of keys."""

    def write(self, write: Write) -> Item | None:
        """Do one write and return the OLD item. Raises ConditionFailed."""

    def transact(self, writes: Sequence[Write]) -> None:
        """Do all of up to 100 writes, or none. Raises TransactionFailed."""

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        """Items of one partition key whose sort key begins with `prefix` and comes after `after`, in order.

        Each comes with its `SK`.
        """
