"""The rejects of a partition, line by line, from where a reader left off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trueup.artifacts import Artifacts, rejects_prefix
from trueup.artifacts.store import place
from trueup.errors import ArtifactMissing
from trueup.model.ledger import PartitionItem
from trueup.model.states import Phase

_CHUNK = 256 * 1024


def lines_from(
    artifacts: Artifacts, run_id: str, phase: Phase, item: PartitionItem, number: int, byte: int
) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Each reject from a byte of one of the partition's objects on, with the position behind it.

    An object that is not there any more is passed over.
    """
    objects = _objects(run_id, phase, item)
    for at in range(number, len(objects)):
        for line, behind in _lines(artifacts, objects[at], byte if at == number else 0):
            yield json.loads(line), at, behind


def _objects(run_id: str, phase: Phase, item: PartitionItem) -> list[str]:
    """The one object that a report names, else the parts that checkpoints name."""
    if item.entry is not None and item.entry.rejects:
        return [place(item.entry.rejects)[1]]
    return [rejects_prefix(run_id, phase, item.partition_id) + name for name in item.reject_parts]


def _lines(artifacts: Artifacts, key: str, byte: int) -> Iterator[tuple[bytes, int]]:
    length = _CHUNK
    while True:
        try:
            data = artifacts.store.get_range(key, byte, length)
        except ArtifactMissing:
            return
        end = data.rfind(b"\n") + 1
        if not end and len(data) < length:
            return
        length = _CHUNK if end else length * 2  # a line longer than what was read: read more of it
        for line in data[:end].splitlines(keepends=True):
            byte += len(line)
            yield line, byte
