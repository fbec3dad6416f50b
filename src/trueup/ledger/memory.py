"""The table in memory: the same writes, under one lock. For tests and for runs in one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from trueup.ledger.table import (
    ConditionFailed,
    Item,
    Key,
    TransactionFailed,
    Write,
    check_alone,
    check_size,
    check_together,
    plain,
)


class MemoryTable:
    """A Table in a dictionary."""

    def __init__(self) -> None:
        self._items: dict[Key, Item] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        with self._lock:
            return plain(self._items.get(key))

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Those of the items that exist."""
        with self._lock:
            return {key: plain(self._items[key]) for key in keys if key in self._items}

    def write(self, write: Write) -> Item | None:
        """Do one write and return the old item. Raises ConditionFailed; ValueError for too large an item."""
        check_alone(write)
        with self._lock:
            old = self._items.get(write.key)
            if write.refused_by(old):
                raise ConditionFailed(write, plain(old))
            self._put(write, self._made(write))
            return plain(old)

    def transact(self, writes: Sequence[Write]) -> None:
        """Do all writes or none. Raises TransactionFailed; ValueError for too large an item."""
        check_together(writes)
        with self._lock:
            refusals = [
                ConditionFailed(write, plain(self._items.get(write.key)))
                for write in writes
                if write.refused_by(self._items.get(write.key))
            ]
            if refusals:
                raise TransactionFailed(refusals)
            made = [self._made(write) for write in writes]
            for write, new in zip(writes, made, strict=True):
                self._put(write, new)

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        """Items of one partition key, in the order of their sort keys."""
        with self._lock:
            keys = sorted(
                key for key in self._items if key[0] == pk and key[1].startswith(prefix) and key[1] > after
            )
            found = [{**plain(self._items[key]), "SK": key[1]} for key in keys]
        yield from found

    def _made(self, write: Write) -> Item | None:
        new = write.applied_to(self._items.get(write.key))
        if new is not None and not write.is_check:
            check_size(write, new)
        return new

    def _put(self, write: Write, new: Item | None) -> None:
        if write.is_check:
            return
        if new is None:
            self._items.pop(write.key, None)
        else:
            self._items[write.key] = new
