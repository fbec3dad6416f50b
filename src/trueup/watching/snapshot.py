"""The counters of a run and its tasks as of one moment, though they are read one after the other.

The transaction that forgets a task moves what it reported into the counters. Read before it and after it,
that would be in neither of them, or in both: progress would jump, and fall back with the next look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trueup.ledger import Ledger
from trueup.model.ledger import Counts, LaunchTimes, TaskItem
from trueup.model.states import Phase

_SPARE = 3
"""Items that a look may read besides: it reads the run, its counters twice, and two for each task."""

CountsByPhase = Mapping[Phase, Counts]


class Snapshots:
    """Reads them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def of(self, run_id: str) -> tuple[CountsByPhase, list[TaskItem]]:
        """The counters by phase, and the tasks that are not in them. Raises StoreUnavailable."""
        before = self._ledger.verdicts.counts_by_phase(run_id)
        tasks = list(self._ledger.tasks.of(run_id))
        after = self._ledger.verdicts.counts_by_phase(run_id)
        moved = launches_of(after).stopped - launches_of(before).stopped
        return after, self._without_forgotten(run_id, tasks, moved) if moved > 0 else tasks

    def _without_forgotten(self, run_id: str, tasks: Sequence[TaskItem], most: int) -> list[TaskItem]:
        """The tasks but for those, so many at most, that are in the counters by now.

        Those were silent longest, and mostly between partitions: no more are asked about than the look has
        items left, having read no partition for them.
        """
        room = sum(task.partition is None for task in tasks) + _SPARE
        asked = sorted(tasks, key=lambda task: (task.partition is not None, task.beat_at))[:room]
        gone = self._ledger.tasks.forgotten(run_id, asked)
        moved = {task.launch for task in [one for one in asked if one.launch in gone][:most]}
        return [task for task in tasks if task.launch not in moved]


def launches_of(counts: CountsByPhase) -> LaunchTimes:
    """What the launches of a run took, which the counters of each phase say."""
    return next(iter(counts.values())).launches if counts else LaunchTimes()
