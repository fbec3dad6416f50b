"""How far a phase is, how fast it goes and when it will be through. Pure: everything was read before.

Work is what the plan estimated for a partition, in seconds. Estimates may be wrong by any factor: the time
that tasks took for the work done so far says by which, and that goes for what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from trueup.model.ledger import Counts, PartitionItem, TaskItem
from trueup.model.states import PartitionStatus
from trueup.model.view import Eta, Progress

LEAST_MEASURED = 3
"""Partitions that must be through before a pace is believed."""
STRAGGLES = 3.0
"""So many times longer than expected at one partition is worth a look."""
SILENT_SECONDS = 60
LEAST_STRAGGLING = 60
LONGEST_QUIET = 15.0
"""Seconds between two heartbeats, and a little: whoever is silent for longer may do nothing."""
_ALMOST = 0.95
_HELD = frozenset({PartitionStatus.RUNNING, PartitionStatus.REPORTED})


@dataclass(frozen=True)
class Standing:
    """A phase as it was read: what ended, which tasks run, and the partitions that these hold.

    `before` sums up what ended in earlier phases, whose task time is in `task_seconds` too.
    """

    counts: Counts
    before: Counts
    task_seconds: float
    tasks: Sequence[TaskItem]
    held: Mapping[str, PartitionItem]
    partitions: int
    total_work: float
    now: datetime

    @cached_property
    def ended(self) -> int:
        """Partitions that ended, good or bad."""
        return self.counts.tally().partitions

    @cached_property
    def done(self) -> int:
        """Partitions that ended, or that tasks reported, whether or not these still run."""
        unjudged = self.counts.reported + sum(task.reported for task in self.tasks)
        return min(self.partitions, self.ended + max(0, unjudged))

    @cached_property
    def finished_work(self) -> float:
        """The work of those partitions."""
        return self.counts.tally().work / 1000 + max(0.0, self.counts.reported_work / 1000 + self._at_hand)

    @property
    def _at_hand(self) -> float:
        """The work that running tasks reported."""
        return sum(task.work_reported for task in self.tasks)

    @cached_property
    def records_for_work(self) -> float | None:
        """Records for a second of work, over what is finished and known; None where nothing is."""
        records = self.counts.tally().records.read + sum(map(self._records_reported, self.tasks))
        work = self.counts.tally().work / 1000 + self._at_hand
        return records / work if records and work else None

    def _held(self, task: TaskItem) -> PartitionItem | None:
        """The partition that a task is at, and has not counted as reported; None between two of them."""
        held = self.held.get(task.partition or "")
        return held if held is not None and held.launch == task.launch and held.status in _HELD else None

    def _records_reported(self, task: TaskItem) -> int:
        held = self._held(task)
        return max(0, task.records - (held.counters.read if held else 0))

    def share(self, task: TaskItem) -> float | None:
        """How much of a task's partition is done, as far as records can tell."""
        held = self._held(task)
        if held is not None and held.status is PartitionStatus.REPORTED:
            return 1.0  # since the task's last heartbeat
        if held is None or not held.work or not self.records_for_work:
            return None
        return min(_ALMOST, held.counters.read / (held.work / 1000 * self.records_for_work))

    def _partly(self, task: TaskItem) -> float:
        held = self._held(task)
        return (self.share(task) or 0.0) * held.work / 1000 if held else 0.0

    @cached_property
    def work_done(self) -> float:
        """Finished work, and what is done of the partitions at work."""
        done = self.finished_work + sum(map(self._partly, self.tasks))
        return min(done, self.total_work)

    @property
    def work_left(self) -> float:
        """What is not done; nothing where all partitions ended, whatever their estimates were."""
        return 0.0 if self.ended >= self.partitions else max(0.0, self.total_work - self.work_done)

    @cached_property
    def pace(self) -> float | None:
        """Task seconds for a second of estimated work; None until enough was measured."""
        work = self.work_done + self.before.tally().work / 1000
        if self.done < min(LEAST_MEASURED, self.partitions) or not work or self._measured_seconds <= 0:
            return None
        return self._measured_seconds / work

    @property
    def _measured_seconds(self) -> float:
        """The task seconds that the known work took: until the last heartbeat of each task."""
        return self.task_seconds - sum(map(self._quiet, self.tasks))

    def _quiet(self, task: TaskItem) -> float:
        """Seconds since a task's last heartbeat: it goes on working, and nothing is known of it yet."""
        return min(LONGEST_QUIET, max(0.0, (self.now - task.beat_at).total_seconds()))

    def progress(self) -> tuple[Progress, Progress]:
        """By partitions, and by work."""
        total = self.work_done + self.work_left
        return _progress(self.done, self.partitions), _progress(round(self.work_done, 3), round(total, 3))

    def eta(self) -> Eta:
        """When all is done: the work left over the tasks at work, and no sooner than the longest of them."""
        if not self.partitions:
            return Eta(basis="measuring: the run is not planned yet")
        if not self.work_left and self.ended < self.partitions:
            return Eta(basis="all is worked, and what was reported is being accepted")
        if not self.work_left:
            return Eta(seconds=0, at=self.now, basis="nothing is left to be worked")
        if not self.tasks:
            return Eta(basis="measuring: no task is at work now")
        if self.pace is None:
            return Eta(basis=f"measuring: {self.done:,} of {self.partitions:,} partitions are through")
        shared = (self.work_left * self.pace - sum(map(self._quiet, self.tasks))) / len(self.tasks)
        longest = max(self._seconds_left(task, self.pace) for task in self.tasks)
        seconds = round(max(shared, longest, 1.0))
        basis = (
            f"{self.pace:.3g} task seconds for a second of estimated work, measured over {self.done:,} of "
            f"{self.partitions:,} partitions; {self.work_left:,.0f} s of it left, "
            f"{len(self.tasks)} tasks at work"
        )
        return Eta(seconds=seconds, at=self.now + timedelta(seconds=seconds), basis=basis)

    def _seconds_left(self, task: TaskItem, pace: float) -> float:
        """What a task still needs for its slice, by its own pace as far as it has one: hosts and data differ.

        The run's pace stands in for one more partition, so that a task's first ones do not decide alone.
        """
        partly = self._partly(task)
        done, quiet = task.work_reported + partly, self._quiet(task)
        lived = max(0.0, (self.now - task.registered_at).total_seconds() - quiet)
        usual = self.total_work / self.partitions
        return (task.work_left - partly) * (lived + usual * pace) / (done + usual) - quiet

    def straggler(self, task: TaskItem) -> str | None:
        """Why a task should be looked at; None where nothing is strange about it."""
        silent = (self.now - task.beat_at).total_seconds()
        if silent > SILENT_SECONDS:
            return f"silent: no heartbeat for {silent:.0f} s"
        held = self._held(task)
        if held is None or held.taken_at is None or self.pace is None:
            return None
        taken = (self.now - held.taken_at).total_seconds()
        expected = self.pace * held.work / 1000
        if taken > max(LEAST_STRAGGLING, STRAGGLES * expected):
            return f"slow: {taken:.0f} s at {held.partition_id}, expected {expected:.0f} s"
        return None


def _progress(done: float, total: float) -> Progress:
    return Progress(done=done, total=total, share=round(done / total, 4) if total else 0.0)
