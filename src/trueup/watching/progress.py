"""How far a phase is, how fast it goes and when it will be through. Pure: everything was read before.

Work is what the plan estimated for a partition, in seconds. Estimates may be wrong by any factor: the time
that tasks took for the work done so far says by which, and that goes for what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from trueup.model.ledger import Counts, LaunchTimes, PartitionItem, TaskItem
from trueup.model.states import PartitionStatus
from trueup.model.view import Eta, Progress
from trueup.watching.arrival import SETTLE_SECONDS, Lags, Spans, lags, seconds_to_the_last

LEAST_MEASURED = 3
"""Partitions that must be through before a pace is believed."""
STRAGGLES = 3.0
"""So many times longer than expected at one partition is worth a look."""
SILENT_SECONDS = 60
LEAST_STRAGGLING = 60
LONGEST_QUIET = 15.0
"""Seconds between two heartbeats, and a little: whoever is silent for longer may do nothing."""
LONGEST_OPENING = 60.0
"""Seconds: what took longer than that waited for something."""
_ALMOST = 0.95
_A_SLIVER = 0.05
"""Of a usual partition: less than this is what rounding left."""
_A_SLICE_AND_A_BIT = 0.1
_UNTIL_BELIEVED = 0.25
"""Of a slice: for so much of it the run's pace stands in, so that a task's beginning does not decide."""
_HELD = frozenset({PartitionStatus.RUNNING, PartitionStatus.REPORTED})


@dataclass(frozen=True)
class Standing:
    """A phase as it was read: what ended, which tasks run, and the partitions that these hold.

    `before` sums up what ended in earlier phases, whose task time is in `task_seconds` too; `launches` is of
    all phases. So many tasks run `at_once`, and the plan has `slices` of which each is one task's. The run is
    open since `opened_at`.
    """

    counts: Counts
    before: Counts
    task_seconds: float
    tasks: Sequence[TaskItem]
    held: Mapping[str, PartitionItem]
    partitions: int
    total_work: float
    now: datetime
    launches: LaunchTimes = field(default_factory=LaunchTimes)
    at_once: int = 1
    slices: int = 1
    opened_at: datetime | None = None

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
        return self.task_seconds - self.launches.ending / 1000 - sum(map(self._quiet, self.tasks))

    def _quiet(self, task: TaskItem) -> float:
        """Seconds since a task's last heartbeat: it goes on working, and nothing is known of it yet.

        Of one that is through all of them, since it only waits to be accepted.
        """
        silent = max(0.0, (self.now - task.beat_at).total_seconds())
        return silent if task.is_through else min(LONGEST_QUIET, silent)

    @cached_property
    def _lags(self) -> Lags:
        """What launches of this run take beside their work."""
        known = [task for task in self.tasks if task.launched_at is not None]
        starts = [(task.registered_at - (task.launched_at or self.now)).total_seconds() for task in known]
        waiting = [self._quiet(task) for task in self.tasks if task.is_through]
        before = self.launches
        return lags(
            Spans(before.started, before.starting / 1000).plus([max(0.0, one) for one in starts]),
            Spans(before.ended, before.ending / 1000),
            waiting,
            self._opening(known),
        )

    def _opening(self, launched: Sequence[TaskItem]) -> float:
        """The seconds from when the run was opened until the first of these tasks was launched."""
        if self.opened_at is None or not launched:
            return 0.0
        first = min(task.launched_at or self.now for task in launched)
        return min(LONGEST_OPENING, max(0.0, (first - self.opened_at).total_seconds()))

    @cached_property
    def _to_come(self) -> list[float]:
        """The work of each slice that no task has yet, as far as it can be known: slices are about equal."""
        left = self.work_left - sum(max(0.0, task.work_left - self._partly(task)) for task in self.tasks)
        if left <= _A_SLIVER * self.total_work / self.partitions:
            return []
        usual = self.total_work / self.slices
        number = max(1, math.ceil(left / usual - _A_SLICE_AND_A_BIT))
        return [left / number] * number

    def progress(self) -> tuple[Progress, Progress]:
        """By partitions, and by work."""
        total = self.work_done + self.work_left
        return _progress(self.done, self.partitions), _progress(round(self.work_done, 3), round(total, 3))

    def eta(self) -> Eta:
        """When the phase will have ended, with what comes after the work: acceptance, and settling."""
        if not self.partitions:
            return Eta(basis="measuring: the run is not planned yet")
        if self.ended >= self.partitions:
            return self._in(SETTLE_SECONDS, "all partitions ended, and what follows is being settled")
        if self.pace is None:
            at_work = f"{self.done:,} of {self.partitions:,} partitions are through"
            return Eta(basis=f"measuring: {at_work if self.tasks else 'no task is at work now'}")
        seconds = self._until_accepted(self.pace) + SETTLE_SECONDS
        if not self.work_left:
            return self._in(seconds, "all is worked, and what was reported is being accepted")
        return self._in(seconds, self._basis(self.pace))

    def _in(self, seconds: float, basis: str) -> Eta:
        left = max(1, round(seconds))
        return Eta(seconds=left, at=self.now + timedelta(seconds=left), basis=basis)

    def _until_accepted(self, pace: float) -> float:
        at_work = [self._seconds_left(task, pace) for task in self.tasks]
        to_come = [work * pace for work in self._to_come]
        return seconds_to_the_last(at_work, to_come, self.at_once, self._lags, self._starting)

    @property
    def _starting(self) -> float:
        """Since when tasks are on their way that did not register yet, in seconds.

        In the first round since the launch of those that did; later, half of what a start takes is as good a
        guess as any.
        """
        launched = [task.launched_at for task in self.tasks if task.launched_at is not None]
        if self.launches.stopped or not launched:
            return self._lags.start / 2
        return max(0.0, (self.now - min(launched)).total_seconds())

    def _basis(self, pace: float) -> str:
        to_come = f", {len(self._to_come):,} slices to come" if self._to_come else ""
        start, end = self._lags.start, self._lags.end
        return (
            f"{pace:.3g} task seconds for a second of estimated work, measured over {self.done:,} of "
            f"{self.partitions:,} partitions; {self.work_left:,.0f} s of it left, {len(self.tasks)} tasks at "
            f"work{to_come}; {start:.0f} s to start a task and {end:.0f} s to accept one"
        )

    def _seconds_left(self, task: TaskItem, pace: float) -> float:
        """What a task still needs for its slice, by its own pace as far as it has one: hosts and data differ.

        Below 0 where it is through, and waits to be accepted since so long.
        """
        partly, quiet = self._partly(task), self._quiet(task)
        if task.is_through:
            return -quiet
        done = task.work_reported + partly
        lived = max(0.0, (self.now - task.registered_at).total_seconds() - quiet)
        lent = max(_UNTIL_BELIEVED * (task.work_reported + task.work_left), self.total_work / self.partitions)
        return max(0.0, (task.work_left - partly) * (lived + lent * pace) / (done + lent) - quiet)

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
