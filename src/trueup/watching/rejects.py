"""The rejects of a partition, line by line, from where a reader left off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trueup.artifacts import Artifacts, findings_prefix, rejects_prefix
from trueup.artifacts.findings import part_names
from trueup.artifacts.store import place
from trueup.compare.findings import DRIFT
from trueup.errors import ArtifactMissing
from trueup.model.ledger import PartitionItem
from trueup.model.repair import RepairOutcome
from trueup.model.states import Phase
from trueup.watching.room import LONGEST_LINE

_CHUNK = 256 * 1024
COMPARISONS = frozenset({Phase.COMPARE, Phase.CONFIRM, Phase.REPAIR, Phase.VERIFY})


def lines_from(
    artifacts: Artifacts, run_id: str, phase: Phase, item: PartitionItem, number: int, byte: int
) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Each reject from a byte of one of the partition's objects on, with the position behind it.

    An object that is not there any more is passed over. Of a line that no answer holds it is told where it
    is.
    """
    objects = _objects(artifacts, run_id, phase, item)
    for at in range(number, len(objects)):
        for line, behind in _lines(artifacts, objects[at], byte if at == number else 0):
            found = json.loads(line)
            if phase not in COMPARISONS or _is_reject(found):
                fits = len(line) <= LONGEST_LINE
                yield found if fits else _where(artifacts, objects[at], line, behind), at, behind


def _where(artifacts: Artifacts, key: str, line: bytes, behind: int) -> dict[str, Any]:
    """What is told of a line that no answer holds."""
    place = f"{artifacts.store.location(key)} from byte {behind - len(line):,} on"
    return {"tooLarge": f"{len(line):,} bytes, more than an answer holds: they are in {place}"}


def _is_reject(line: Mapping[str, Any]) -> bool:
    """Of a comparison: a finding that could not be compared. Of a repair: a row that was not taken."""
    return line["kind"] not in DRIFT if "kind" in line else line.get("outcome") == RepairOutcome.FAILED


def _objects(artifacts: Artifacts, run_id: str, phase: Phase, item: PartitionItem) -> list[str]:
    """The one object that a report names, else the parts that checkpoints name.

    Of a comparison they hold findings of every kind; those that could not be compared are its rejects.
    """
    if phase in COMPARISONS:
        prefix = findings_prefix(run_id, phase, item.partition_id)
        return [prefix + name for name in part_names(artifacts, prefix, item.reject_parts)]
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
