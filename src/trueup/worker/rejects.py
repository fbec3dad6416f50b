"""Rejects, to their own object: a part for each checkpoint, stored before the cursor moves and named by it.

A kill between part and checkpoint leaves a part that no checkpoint names; a zombie's part has its own launch
in its name. So the parts that the ledger names hold every reject once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from trueup.artifacts import Artifacts, rejects_prefix
from trueup.ledger import Owner
from trueup.worker.telling import describe

# Each name lies in the partition's item, and an item holds 400 KB: more parts than these become one.
MOST_PARTS = 200


class Rejects:
    """The rejects of one partition since its last checkpoint."""

    def __init__(self, artifacts: Artifacts, owner: Owner, partition_id: str) -> None:
        self._artifacts = artifacts
        self._owner = owner
        self._partition_id = partition_id
        self._lines: list[bytes] = []

    @property
    def are_many(self) -> bool:
        """Whether they should not be held any longer: a job's own limit bounds them."""
        return False

    def add(self, rejects: Iterable[dict[str, Any]]) -> None:
        """Keep rejects until the next checkpoint."""
        self._lines += map(_line, rejects)

    def store(self, seq: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Store what was added, and give the parts that the checkpoint `seq` has to name.

        Raises StoreUnavailable.
        """
        if not self._lines:
            return parts
        kept, before = (parts, b"") if len(parts) < MOST_PARTS else ((), self._joined(parts))
        name = f"part-{seq:08d}-{self._owner.launch}.jsonl"
        self._put(name, before + b"".join(self._lines))
        self._lines = []
        return (*kept, name)

    def gather(self, parts: tuple[str, ...]) -> str | None:
        """Put the parts together into one object and give its location; None where there are none.

        Raises ArtifactMissing, StoreUnavailable.
        """
        return self._put(f"rejects-{self._owner.launch}.jsonl", self._joined(parts)) if parts else None

    def _joined(self, parts: tuple[str, ...]) -> bytes:
        prefix = rejects_prefix(self._owner.run_id, self._owner.phase, self._partition_id)
        return b"".join(self._artifacts.store.get(prefix + name) for name in parts)

    def _put(self, name: str, data: bytes) -> str:
        owner = self._owner
        return self._artifacts.put_rejects(owner.run_id, owner.phase, self._partition_id, name, data)


def _line(reject: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(reject, default=str, allow_nan=False)
    except Exception:
        # A record may be anything, and a bad one is no reason to lose it: what JSON cannot say is told as
        # Python does.
        text = json.dumps({name: _plainly(value) for name, value in reject.items()})
    return text.encode() + b"\n"


def _plainly(value: object) -> str:
    return value if isinstance(value, str) else describe(value)
