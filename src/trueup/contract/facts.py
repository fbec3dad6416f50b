"""What a contract is judged against: what the run, the ledger and the store say. The caller gathers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trueup.model.ledger import PartitionItem
from trueup.model.plan import CodeIdentity
from trueup.model.result import LARGEST_CONTRACT, PartitionResult
from trueup.model.states import Phase


@dataclass(frozen=True)
class Facts:
    """The other side of every invariant.

    `items` are the ledger's items of the slice's partitions; a partition without one is PENDING.
    `objects` has, for each location of `locations`, the SHA-256 that S3 itself computed, "" where it was
    stored without; None or absent means that there is no such object. `max_bytes` bounds the document, so
    that nobody can fill a handler's memory.
    """

    run_id: str
    job: str
    generation: int
    phase: Phase
    slice_id: int
    launch: int
    task: str
    plan_sha256: str
    code: CodeIdentity
    empty_allowed: bool
    reject_limit: int
    dry_run: bool
    items: Mapping[str, PartitionItem]
    slice_partitions: frozenset[str]
    objects: Mapping[str, str | None]
    max_bytes: int = LARGEST_CONTRACT

    @property
    def rehearsal(self) -> bool:
        """Whether nothing may be written: a dry run, or the rehearsal of one that will write."""
        return self.dry_run or self.phase is Phase.REHEARSE

    def item(self, partition_id: str) -> PartitionItem:
        """The ledger's item; a partition that the ledger does not know is PENDING."""
        return self.items.get(partition_id) or PartitionItem(partition_id=partition_id)

    def has(self, location: str) -> bool:
        """Whether the object is there."""
        return self.objects.get(location) is not None


def locations(*entries: PartitionResult) -> frozenset[str]:
    """The objects that entries speak of: what the caller looks up in S3 for `Facts.objects`.

    What is no S3 location at all is left out, and so there is no such object.
    """
    named = {output.location for entry in entries for output in entry.outputs}
    named |= {entry.rejects for entry in entries if entry.rejects is not None}
    return frozenset(location for location in named if re.fullmatch(r"s3://[^/]+/.+", location))
