"""The objects of findings: behind the parts that a checkpoint names, and behind a partition's list."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from trueup.artifacts import Artifacts, findings_prefix
from trueup.artifacts.store import place
from trueup.artifacts.together import together
from trueup.model.base import sha256
from trueup.model.compared import Compared, FindingsObject
from trueup.model.ledger import PartitionItem
from trueup.model.reconcile_report import ObjectList
from trueup.model.repair import outcomes
from trueup.model.states import PartitionStatus, Phase

__all__ = [
    "STANDING",
    "is_told",
    "left_by",
    "lines_in",
    "lines_of",
    "listed",
    "objects_of",
    "part_names",
    "repaired",
    "reported",
    "standing",
]

STANDING = ("CONFIRMED", "KNOWN")
"""The states of what differs still after the second look."""
READ_AT_ONCE = 4
"""Objects that are read ahead: one may have some MiB (`trueup.worker.findings`), and all are held."""


def part_names(artifacts: Artifacts, prefix: str, parts: Sequence[str]) -> Iterator[str]:
    """The names of the objects of findings behind the parts that a checkpoint names, in their order."""
    for part in parts:
        if part.startswith("index-"):
            yield from part_names(artifacts, prefix, json.loads(artifacts.store.get(prefix + part)))
        else:
            yield part


def lines_of(
    artifacts: Artifacts, run_id: str, phase: Phase, partition_id: str, parts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The findings behind the parts that a checkpoint names, one by one. Raises ArtifactMissing."""
    prefix = findings_prefix(run_id, phase, partition_id)
    keys = (prefix + name for name in part_names(artifacts, prefix, parts))
    for data in together(artifacts.store.get, keys, READ_AT_ONCE):
        yield from map(json.loads, data.splitlines())


def objects_of(artifacts: Artifacts, prefix: str, parts: Sequence[str]) -> Iterator[FindingsObject]:
    """The same objects, each with its hash and how many lines it has. Raises ArtifactMissing."""
    store = artifacts.store

    def found(name: str) -> FindingsObject:
        location = store.location(prefix + name)
        return FindingsObject(
            location=location,
            sha256=store.checksum(location) or sha256(store.get(prefix + name)),
            lines=int(name.rpartition("-")[2].removesuffix(".jsonl")),
        )

    yield from together(found, part_names(artifacts, prefix, parts))


def left_by(artifacts: Artifacts, phase: Phase, location: str, expected_sha256: str) -> bytes:
    """What a task of a phase stored, if it is still that. Raises ArtifactMissing, ArtifactError."""
    known = f"as the phase {phase.value} left it"
    return artifacts.check(place(location)[1], expected_sha256, known, "It was changed: compare again.")


def reported(artifacts: Artifacts, phase: Phase, item: PartitionItem) -> Compared | None:
    """How a partition ended, as its task reported it; None where none did. Raises as `left_by` does."""
    if item.entry is None or not item.entry.outputs:
        return None
    output = item.entry.outputs[0]
    return Compared.model_validate_json(left_by(artifacts, phase, output.location, output.sha256))


def is_told(item: PartitionItem) -> bool:
    """Whether what its task reported of a partition of a repair is all that it did there."""
    return item.status is PartitionStatus.ACCEPTED or not item.reject_parts


def repaired(artifacts: Artifacts, run_id: str, phase: Phase, item: PartitionItem) -> Compared | None:
    """What a partition of a repair, or of its verification, came to; None where it left nothing.

    Of one that did not get to its end it is what its checkpoints name: what it did is done, can be looked at
    again, and can be undone. Raises ArtifactError.
    """
    if is_told(item):
        return reported(artifacts, phase, item)
    assert item.updated_at is not None  # a checkpoint named its parts
    of = (run_id, phase, item.partition_id)
    return Compared(
        partition_id=item.partition_id,
        phase=phase,
        finished_at=item.updated_at,
        states=_states(phase, lines_of(artifacts, *of, item.reject_parts)),
        objects=list(objects_of(artifacts, findings_prefix(*of), item.reject_parts)),
    )


def _states(phase: Phase, lines: Iterator[dict[str, Any]]) -> dict[str, int]:
    if phase is Phase.REPAIR:
        return dict(Counter(f"{one['outcome']} {one['action']}" for one in outcomes(lines)))
    ended = (one for one in lines if not one.get("again"))
    return dict(Counter(f"{one['verification']} {one['action']}" for one in ended))


def listed(artifacts: Artifacts, one: ObjectList) -> list[FindingsObject]:
    """The objects that a list names, if it is what its report says. Raises as `left_by` does."""
    return Compared.model_validate_json(left_by(artifacts, one.phase, one.location, one.sha256)).objects


def lines_in(artifacts: Artifacts, phase: Phase, one: FindingsObject) -> Iterator[dict[str, Any]]:
    """The lines of an object of a phase, if it is what its list says. Raises as `left_by` does."""
    yield from map(json.loads, left_by(artifacts, phase, one.location, one.sha256).splitlines())


def standing(artifacts: Artifacts, one: FindingsObject) -> Iterator[dict[str, Any]]:
    """What stands in an object of the second look. Raises ArtifactMissing, ArtifactError."""
    for found in lines_in(artifacts, Phase.CONFIRM, one):
        if found.get("state") in STANDING and not found.get("again"):
            yield found
