"""A plan's partitions, page by page: byte ranges of one object, in the plan's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trueup.artifacts import Artifacts
from trueup.ledger import Ledger
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import Partition, Plan
from trueup.model.states import Phase
from trueup.planning import read_partitions

_CHUNK = 128 * 1024
_BATCH = 100


class Placed(NamedTuple):
    """A partition as the ledger and, where it was read from there, the plan has it.

    `behind` is the offset behind it in the plan's object, `seen` how many come up to there.
    """

    item: PartitionItem
    behind: int = 0
    seen: int = 0
    planned: Partition | None = None


def planned_items(
    ledger: Ledger, artifacts: Artifacts, run: Run, phase: Phase, plan: Plan, offset: int = 0, seen: int = 0
) -> Iterator[Placed]:
    """Partitions in the plan's order, as the ledger has them; with the position behind each."""
    for page in planned_from(artifacts, run, phase, plan, offset, seen):
        for start in range(0, len(page), _BATCH):
            batch = page[start : start + _BATCH]
            items = ledger.partitions.get_many(run.run_id, phase, [part.id for part, _ in batch])
            for part, behind in batch:
                seen += 1
                yield Placed(items[part.id], behind, seen, part)


def planned_from(
    artifacts: Artifacts, run: Run, phase: Phase, plan: Plan, offset: int, seen: int
) -> Iterator[list[tuple[Partition, int]]]:
    """The partitions from a byte offset on, some at a time, each with the offset behind it.

    `seen` is how many come before: of a sample only the first are worked.
    """
    left = run.expected(phase) - seen
    while left > 0:
        data = artifacts.store.get_range(plan.partitions.key, offset, _CHUNK)
        whole = data[: data.rfind(b"\n") + 1]
        if not whole:
            return
        page = []
        for part, line in zip(read_partitions(whole), whole.splitlines(keepends=True), strict=True):
            offset += len(line)
            page.append((part, offset))
        yield page[:left]
        left -= len(page)
