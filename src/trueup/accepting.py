"""What happens after a launch: the one place that decides what its end means (design, section 4).

It reads the ledger, the stored contract and the cause, writes end states, and answers with what to do next.
Called twice it changes nothing more; called late, it leaves alone what later launches work on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import ceil

from trueup.aborting import AbortRules
from trueup.artifacts import Artifacts, result_key_of
from trueup.clock import Clock
from trueup.errors import Stale
from trueup.exits import Exit
from trueup.judging import judge_reported, warnings_of
from trueup.ledger import Decision, Ledger
from trueup.model.base import cut
from trueup.model.ledger import PartitionItem, Run, TaskItem
from trueup.model.plan import Plan, Slice, TaskOrder
from trueup.model.result import PartitionError
from trueup.model.states import UNFINISHED, PartitionStatus, Phase, RunStatus
from trueup.platform import Ended, Platform, TaskState

# ECS forgets a stopped task after about an hour, and does not know a new one for a moment.
MISSING_MEANS_STOPPED = timedelta(hours=1)
TAKES_WITHOUT_PROGRESS = 2
LAUNCHES_WITHOUT_TAKE = 2
STUCK_IN_A_ROW = 3
# From the end of a launch to the next one of its slice: at first, and where nothing moved for long.
SHORTEST_PAUSE = 3
LONGEST_PAUSE = 600
# The reason for stopping a task that nobody knows, as `over` is for those that registered.
UNREGISTERED = "it did not register, and its launch is over"
_ATTEMPTS = 20
_LONGEST_TOLD = 2_000


class Answer(StrEnum):
    """What the state machine does next."""

    DONE = "done"
    FAILED = "failed"
    CLOSED = "closed"
    AGAIN = "again"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one slice."""

    run_id: str
    generation: int
    phase: Phase
    slice: Slice
    launch: int

    def order(self, run: Run) -> TaskOrder:
        """What the task of this launch is told."""
        return TaskOrder(
            run_id=run.run_id,
            job=run.job,
            generation=self.generation,
            phase=self.phase,
            launch=self.launch,
            slice=self.slice,
            plan_key=run.plan_key,
            plan_sha256=run.plan_sha256,
        )


class Acceptance:
    """Judges what launches left behind."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, platform: Platform, clock: Clock) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._platform = platform
        self._clock = clock
        self._rules = AbortRules(ledger, clock)

    def accept(self, launch: Launch, ended: Ended) -> Answer:
        """Judge what is reported, bound the faults, ask the abort rules, and say what to do next.

        Raises StoreUnavailable; Stale where partitions keep moving.
        """
        for _ in range(_ATTEMPTS):
            try:
                return self._accept(launch, ended)
            except Stale:
                continue  # A partition moved between reading and writing: read again and decide again.
        return self._accept(launch, ended)

    def _accept(self, launch: Launch, ended: Ended) -> Answer:
        # First, so that a task that begins only now is either seen below or refused.
        decided = self._ledger.tasks.end_launch(launch.run_id, launch.launch)
        run = self._ledger.runs.get(launch.run_id)
        tasks = list(self._ledger.tasks.of_slice(run.run_id, launch.phase, launch.slice.slice_id))
        alive = self.stop_and_prove(run.run_id, tasks, last=launch.launch)
        began = next((task.task for task in tasks if task.launch == launch.launch), None)
        lost = began is None and ended.is_unknown and self.stop_lost(run, launch.launch)
        plan = self._artifacts.plan_of(run)
        items = self._judge(launch, run, plan)
        # Where the slice is finished nothing of it will be launched again: the proof may be left to `settle`.
        if (alive or lost) and _unfinished(items):
            return Answer.STOPPING
        # Decided once: called again when its slice went on, it would find none that this launch had taken.
        if _unfinished(items) and not decided:
            items = self._bound(launch, ended, run, plan, items, began)
        current = run.generation == launch.generation
        run = self._rules.ask(run, plan.job) if current else run
        if not _unfinished(items):
            return _finished(items)
        return Answer.AGAIN if current and run.status is RunStatus.RUNNING else Answer.CLOSED

    def pause(self, launch: Launch) -> int:
        """Seconds from a launch that is to be repeated to the next one of its slice.

        Doubled with each launch in a row that moved nothing, whoever ended it, up to ten minutes: a sink that
        throttles for days is asked now and then, and costs no fault. Raises StoreUnavailable.
        """
        ids = [part.id for part in self._artifacts.slice(launch.slice)]
        idle = max((item.idle for item in _unfinished(self._items(launch, ids))), default=0)
        pause = min(LONGEST_PAUSE, SHORTEST_PAUSE << min(max(0, idle - 1), 16))
        return max(pause, self._lag(launch))

    def _lag(self, launch: Launch) -> int:
        """Before a second look, the lag of the job: who comes sooner has to leave again."""
        if launch.phase not in (Phase.CONFIRM, Phase.VERIFY):
            return 0
        job = self._artifacts.plan_of(self._ledger.runs.get(launch.run_id)).job
        return ceil(job.lag) if job.kind == "reconcile" else 0

    def ask_abort_rules(self, run: Run) -> Run:
        """The run, closed where it breaks an abort rule of its job. Raises Stale, StoreUnavailable."""
        if not run.is_planned or run.status is not RunStatus.RUNNING:
            return run
        return self._rules.ask(run, self._artifacts.plan_of(run).job)

    def stop_and_prove(
        self, run_id: str, tasks: Iterable[TaskItem], *, last: int | None = None
    ) -> list[TaskItem]:
        """Ask tasks that still run to stop, forget those proved stopped, and give those that are not.

        `last`: tasks of launches after this one are not asked to stop.
        """
        alive = []
        for task in tasks:
            state = self._platform.state(task.task)
            if state is TaskState.ALIVE and (last is None or task.launch <= last):
                self._platform.stop(task.task, _over(task.slice_id, task.launch))
                state = self._platform.state(task.task)
            if state is TaskState.STOPPED or (state is TaskState.MISSING and self._is_old(task)):
                self._ledger.tasks.proved_stopped(run_id, task)
            else:
                alive.append(task)
        return alive

    def stop_unregistered(self, run: Run) -> bool:
        """Whether tasks of a run stay alive without a TASK item; they are asked to stop.

        One that hangs before it registers does no harm but is billed, and nobody else would ever find it.
        """
        return any(self._platform.state(task) is TaskState.ALIVE for task in self.stop_lost(run))

    def stop_lost(self, run: Run, launch: int | None = None) -> list[str]:
        """The tasks of a run, or of one launch, that were alive without a TASK item; they are asked to stop.

        Who judges the launch asks again: only a task's end says whether it hung, or had not been started yet.
        """
        known = {task.task for task in self._ledger.tasks.of(run.run_id)}
        found = self._platform.alive_of(run.run_id, run.job).items()
        lost = [task for task, its in found if task not in known and launch in (None, its)]
        for task in lost:
            self._platform.stop(task, UNREGISTERED)
        return lost

    def _is_old(self, task: TaskItem) -> bool:
        return self._clock.now() - task.beat_at >= MISSING_MEANS_STOPPED

    def _judge(self, launch: Launch, run: Run, plan: Plan) -> list[PartitionItem]:
        ids = [part.id for part in self._artifacts.slice(launch.slice)]
        items = self._ledger.partitions.get_many(run.run_id, launch.phase, ids)
        decisions = judge_reported(self._artifacts, run, plan, launch.phase, launch.slice.slice_id, items)
        if not decisions:
            return list(items.values())
        self._decide(launch, plan, decisions)
        return self._items(launch, ids)

    def _decide(self, launch: Launch, plan: Plan, decisions: Iterable[Decision]) -> None:
        self._ledger.verdicts.decide(
            launch.run_id, launch.phase, decisions, follow_failures=plan.job.follows_failures
        )

    def _items(self, launch: Launch, ids: Sequence[str]) -> list[PartitionItem]:
        return list(self._ledger.partitions.get_many(launch.run_id, launch.phase, ids).values())

    def _bound(
        self,
        launch: Launch,
        ended: Ended,
        run: Run,
        plan: Plan,
        items: list[PartitionItem],
        began: str | None,
    ) -> list[PartitionItem]:
        """What an unfinished slice's launch costs it: nothing, or a fault. Gives the items after that.

        `began` is the launch's task, where one registered.
        """
        self._forgive(launch, ended, items)
        if run.generation == launch.generation:
            known = [item for item in items if item.launch <= launch.launch]
            took = next((item.task for item in known if item.launch == launch.launch), None)
            self._bound_faults(launch, ended, plan, known, took or began)
        return self._items(launch, [item.partition_id for item in items])

    def _forgive(self, launch: Launch, ended: Ended, items: list[PartitionItem]) -> None:
        """What was interrupted from outside costs no take: this launch's own, and no earlier one's."""
        if not ended.from_outside:
            return
        for item in items:
            if item.status is PartitionStatus.RUNNING and item.launch == launch.launch:
                self._ledger.partitions.forgive(launch.run_id, launch.phase, item)

    def _bound_faults(
        self, launch: Launch, ended: Ended, plan: Plan, items: list[PartitionItem], task: str | None
    ) -> None:
        left = _unfinished(items)
        taken = any(item.launch == launch.launch for item in items)
        if ended.from_outside:
            if left and not taken and not ended.launch_refused:
                first = left[0].partition_id
                self._ledger.partitions.idled(launch.run_id, launch.phase, first, launch.launch)
            return
        told = self._told(launch, ended, task)
        if ended.exit_code == Exit.BAD_INPUT:
            why = f"the task refused its input: {told}"
            self._fail(launch, plan, left, PartitionStatus.FAILED, "BadInput", why)
        elif taken:
            self._end_stuck(launch, plan, items, told)
        elif left:
            self._count_launch(launch, plan, left, told)

    def _end_stuck(self, launch: Launch, plan: Plan, items: list[PartitionItem], told: str) -> None:
        """One partition that makes no progress never stops its slice-mates; three in a row do.

        Then it is not theirs: without this, a sink that is dead would cost two launches for each partition.
        """
        running = [item for item in items if item.status is PartitionStatus.RUNNING]
        stuck = [item for item in running if item.takes >= TAKES_WITHOUT_PROGRESS]
        why = f"taken {TAKES_WITHOUT_PROGRESS} times in a row without a checkpoint; the last time: {told}"
        self._fail(launch, plan, stuck, PartitionStatus.STUCK, "NoProgress", why)
        now = self._items(launch, [item.partition_id for item in items])
        row = _last_worked(now)[-STUCK_IN_A_ROW:]
        if [item.status for item in row] == [PartitionStatus.STUCK] * STUCK_IN_A_ROW:
            named = ", ".join(item.partition_id for item in row)
            why = f"{STUCK_IN_A_ROW} partitions of its slice got stuck in a row, {named}; lastly: {told}"
            self._fail(launch, plan, _unfinished(now), PartitionStatus.FAILED, "SliceStuck", why)

    def _told(self, launch: Launch, ended: Ended, task: str | None) -> str:
        """How a launch ended and, in the words of its task, why: where it lived to store a result."""
        if task is None:
            return str(ended)
        key = result_key_of(launch.run_id, launch.phase, launch.slice.slice_id, launch.launch, task)
        return cut("; ".join([str(ended), *warnings_of(self._artifacts, key)]), _LONGEST_TOLD)

    def _count_launch(self, launch: Launch, plan: Plan, left: list[PartitionItem], told: str) -> None:
        first = left[0].partition_id
        faults = self._ledger.partitions.fault(launch.run_id, launch.phase, first, launch.launch)
        if faults >= LAUNCHES_WITHOUT_TAKE:
            why = f"{faults} launches ended before any partition was taken; the last one: {told}"
            now = self._items(launch, [item.partition_id for item in left])
            # The first one keeps the count, so it goes last: who dies half-way finds it, called again.
            last_first = list(reversed(_unfinished(now)))
            self._fail(launch, plan, last_first, PartitionStatus.FAILED, "NeverStarted", why)

    def _fail(
        self,
        launch: Launch,
        plan: Plan,
        items: list[PartitionItem],
        status: PartitionStatus,
        kind: str,
        why: str,
    ) -> None:
        error = PartitionError(kind=kind, message=why)
        self._decide(launch, plan, [Decision(item, status, error) for item in items])


def over(launch: Launch) -> str:
    """The reason that the platform is given, and gives back, for stopping the task of a launch."""
    return _over(launch.slice.slice_id, launch.launch)


def _over(slice_id: int, launch: int) -> str:
    return f"launch {launch} of slice {slice_id} is over"


def _last_worked(items: Iterable[PartitionItem]) -> list[PartitionItem]:
    """Those that a task ever took, in the order in which they were taken last."""
    return sorted((item for item in items if item.launch), key=lambda item: item.launch)


def _unfinished(items: Iterable[PartitionItem]) -> list[PartitionItem]:
    return [item for item in items if item.status in UNFINISHED]


def _finished(items: Iterable[PartitionItem]) -> Answer:
    good = {PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED}
    return Answer.DONE if all(item.status in good for item in items) else Answer.FAILED
