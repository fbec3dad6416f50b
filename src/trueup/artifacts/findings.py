"""The objects of findings behind the parts that a partition's checkpoint names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from trueup.artifacts import Artifacts, findings_prefix
from trueup.artifacts.store import place
from trueup.model.base import sha256
from trueup.model.compared import FindingsObject
from trueup.model.reconcile_report import ObjectLine
from trueup.model.states import Phase

__all__ = ["STANDING", "lines_of", "objects_of", "part_names", "standing"]

STANDING = ("CONFIRMED", "KNOWN")
"""The states of what differs still after the second look."""


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
    for name in part_names(artifacts, prefix, parts):
        for line in artifacts.store.get(prefix + name).splitlines():
            yield json.loads(line)


def objects_of(artifacts: Artifacts, prefix: str, parts: Sequence[str]) -> Iterator[FindingsObject]:
    """The same objects, each with its hash and how many lines it has. Raises ArtifactMissing."""
    store = artifacts.store
    for name in part_names(artifacts, prefix, parts):
        location = store.location(prefix + name)
        yield FindingsObject(
            location=location,
            sha256=store.checksum(location) or sha256(store.get(prefix + name)),
            lines=int(name.rpartition("-")[2].removesuffix(".jsonl")),
        )


def standing(artifacts: Artifacts, one: ObjectLine) -> Iterator[dict[str, Any]]:
    """What stands in an object of the second look, if it is what its report names. Raises ArtifactError."""
    data = artifacts.check(place(one.location)[1], one.sha256)
    for found in map(json.loads, data.splitlines()):
        if found.get("state") in STANDING and not found.get("again"):
            yield found
