"""Findings, to their own objects: one for each checkpoint, stored before the cursor moves and named by it.

A kill between object and checkpoint leaves an object that no checkpoint names; a zombie's has its own launch
in its name. So the objects that the ledger names hold every finding once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from trueup.artifacts import Artifacts, findings_prefix
from trueup.artifacts.findings import objects_of
from trueup.ledger import Owner
from trueup.model.base import canonical, sha256
from trueup.model.compared import Compared
from trueup.model.result import Output

# The names lie in the partition's item, and an item holds 400 KB: more than these become one index.
MOST_PARTS = 200
# More than this is stored at the next step, whatever the clock says, so that a reader can hold an object.
MOST_BYTES = 4 * 2**20


class Findings:
    """The findings of one partition since its last checkpoint."""

    def __init__(self, artifacts: Artifacts, owner: Owner, partition_id: str) -> None:
        self._artifacts = artifacts
        self._owner = owner
        self._prefix = findings_prefix(owner.run_id, owner.phase, partition_id)
        self._lines: list[bytes] = []
        self._bytes = 0

    @property
    def are_many(self) -> bool:
        """Whether they should not be held any longer."""
        return self._bytes >= MOST_BYTES

    def add(self, findings: Iterable[dict[str, Any]], /) -> None:
        """Keep findings until the next checkpoint."""
        for one in findings:
            text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
            self._lines.append(text.encode("utf-8", "backslashreplace") + b"\n")
            self._bytes += len(self._lines[-1])

    def store(self, seq: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Store what was added, and give the parts that the checkpoint `seq` has to name.

        Raises StoreUnavailable.
        """
        if not self._lines:
            return parts
        launch = self._owner.launch
        if len(parts) >= MOST_PARTS:
            index = f"index-{seq:08d}-{launch}.json"
            self._put(index, canonical(list(parts)))
            parts = (index,)
        name = f"findings-{seq:08d}-{launch}-{len(self._lines)}.jsonl"
        self._put(name, b"".join(self._lines))
        self._lines, self._bytes = [], 0
        return (*parts, name)

    def gather(self, parts: tuple[str, ...]) -> str | None:
        """Nothing: `close` lists the objects, and they stay as they are."""
        return None

    def close(self, compared: Compared, parts: tuple[str, ...]) -> Output:
        """Store how the comparison ended, with all its objects, and give it as an output of the partition."""
        objects = list(objects_of(self._artifacts, self._prefix, parts))
        data = canonical(compared.model_copy(update={"objects": objects}).document())
        name = f"compared-{self._owner.launch}.json"
        self._put(name, data)
        location = self._artifacts.store.location(self._prefix + name)
        return Output(location=location, sha256=sha256(data), records=sum(one.lines for one in objects))

    def _put(self, name: str, data: bytes) -> None:
        self._artifacts.store.put_once(self._prefix + name, data)
