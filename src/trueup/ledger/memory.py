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
        """Do one write and return the old item. Raises ConditionFailed."""
        check_alone(write)
        with self._lock:
            old = self._items.get(write.key)
            if write.refused_by(old):
                raise ConditionFailed(write, plain(old))
            self._apply(write)
            return plain(old)

    def transact(self, writes: Sequence[Write]) -> None:
        """Do all writes or none. Raises TransactionFailed."""
        check_together(writes)
        with self._lock:
            refusals = [
                ConditionFailed(write, plain(self._items.get(write.key)))
                for write in writes
                if write.refused_by(self._items.get(write.key))
            ]
            if refusals:
                raise TransactionFailed(refusals)
            for write in writes:
                self._apply(write)

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        """Items of one partition key, in the order of their sort keys."""
        with self._lock:
            keys = sorted(
                key for key in self._items if key[0] == pk and key[1].startswith(prefix) and key[1] > after
            )
            found = [{**plain(self._items[key]), "SK": key[1]} for key in keys]
        yield from found

    def _apply(self, write: Write) -> None:
        if write.is_check:
            return
        new = write.applied_to(self._items.get(write.key))
        if new is None:
            self._items.pop(write.key, None)
        else:
            self._items[write.key] = new
