"""A plan's partitions, page by page: byte ranges of one object, in the plan's order."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.artifacts import Artifacts
from trueup.model.ledger import Run
from trueup.model.plan import Partition, Plan
from trueup.model.states import Phase
from trueup.planning import read_partitions

_CHUNK = 128 * 1024


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
