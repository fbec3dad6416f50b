"""The loop inside the container: a slice, partition by partition, and the result contract at the end.

It is a generator that pauses at each point that it passes, so that one process can step through a whole run,
and a test can end it anywhere. A container steps through it without pausing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace

from pydantic import ValidationError

from trueup.errors import (
    ArtifactError,
    ArtifactExists,
    GateRefused,
    LaunchTaken,
    LostOwnership,
    NotTakable,
    RunClosed,
    StoreUnavailable,
    Superseded,
    UsageError,
)
from trueup.exits import Exit
from trueup.jobs import Backfill, Reconcile, Settings
from trueup.ledger import Owner
from trueup.logs import about
from trueup.model.base import cut
from trueup.model.ledger import Run, TaskItem
from trueup.model.plan import Partition, Plan, TaskOrder
from trueup.model.result import (
    LARGEST_CONTRACT,
    LONGEST_WARNING,
    MOST_WARNINGS,
    PartitionResult,
    ResultContract,
    record_counts,
)
from trueup.model.states import WRITING_PHASES, Phase, ResultStatus, TaskStatus
from trueup.worker.heart import BeatThread, Heart
from trueup.worker.pace import BatchSize, Pace
from trueup.worker.partition import Bench, PartitionWork, Step
from trueup.worker.patience import Patience
from trueup.worker.stopping import Later, Stop, Stopped, Stopping
from trueup.worker.telling import told
from trueup.worker.tools import Tools

log = logging.getLogger("trueup.worker")

# The rest is room for one more entry and the warnings.
ROOM_FOR_ENTRIES = LARGEST_CONTRACT // 2


def leave_now(reason: str) -> None:
    """End the process at once: the loop hangs in somebody's code and will not listen."""
    log.error("leaving without progress: %s", reason)
    os._exit(Exit.FAULT)


class Worker:
    """One task. `exit` and `contract` say how it ended, once `steps` is through.

    `is_the_second`: another task works for the same launch, and alone may speak for it.
    """

    def __init__(
        self,
        job_class: type[Backfill] | type[Reconcile],
        order: TaskOrder,
        tools: Tools,
        *,
        no_progress: Callable[[str], None] = leave_now,
    ) -> None:
        self._job_class = job_class
        self._order = order
        self._tools = tools
        self._no_progress = no_progress
        self._started_at = tools.clock.now()
        self._entries: list[PartitionResult] = []
        self._entry_bytes = 0
        self._stop: Stop | None = None
        self._later: Stop | None = None
        self._planned: Plan | None = None
        self._warnings: list[str] = []
        self.heart: Heart | None = None
        self.contract: ResultContract | None = None
        self.exit: Exit = Exit.FAULT
        self.is_the_second = False

    def run(self) -> Exit:
        """Work the slice to its end and give the exit code. Raises nothing that it knows of."""
        for _ in self.steps(beats=True):
            pass
        return self.exit

    def steps(self, *, beats: bool = False) -> Iterator[Step]:
        """The slice, pausing at each point; `beats` runs the heart beside it, else the caller beats."""
        try:
            yield from self._steps(beats)
        except (RunClosed, LaunchTaken) as refused:
            log.info("not needed: %s", refused)
            self.exit = Exit.INTERRUPTED
            self.is_the_second = isinstance(refused, LaunchTaken)
        except LostOwnership as lost:
            log.warning("leaving: %s", lost)
            self.exit = Exit.INTERRUPTED
        except (Superseded, StoreUnavailable) as gone:
            # Either may last for ever (a lock freed by hand, a role without a permission): without anything
            # saved it counts as a fault, or the slice would be launched again without end.
            log.warning("leaving: %s", gone)
            self.exit = Exit.INTERRUPTED if self._tools.control.saved else Exit.FAULT
        except Stopped as stopped:
            log.warning("leaving before any partition: %s", stopped)
            self.exit = stopped.stop.exit
        except (UsageError, ArtifactError, GateRefused) as wrong:
            log.error("the input is wrong: %s", wrong)
            self._leave_word(wrong, Exit.BAD_INPUT)
        except (Exception, SystemExit) as error:  # An author's `sys.exit` is no exit code of ours.
            log.exception("a bug, or an error outside any partition")
            self._leave_word(error, Exit.FAULT)

    def _steps(self, beats: bool) -> Iterator[Step]:
        self._tools.control.progressed_at = self._tools.clock.monotonic()
        task = self._register()
        yield Step("registered")
        run = self._tools.ledger.runs.get(self._order.run_id)
        plan = self._planned = self._plan()
        self._check_approval(run, plan)
        bench = self._bench(run, plan)
        self.heart = self._heart(task, plan, bench)
        with BeatThread(self.heart, self._tools.beat_seconds) if beats else nullcontext():
            bench.patience.call("open", bench.job.open)
            try:
                yield from self._work(bench, self._tools.artifacts.slice(self._order.slice))
            except GeneratorExit:
                raise  # dropped where it stood, as a process is that gets SIGKILL: nothing is closed
            except BaseException:
                self._close(bench.job)
                raise
            self._close(bench.job)
        self.heart.beat_last()
        yield from self._store(plan)

    def _leave_word(self, error: BaseException, code: Exit) -> None:
        """Leave the reason where `accept` finds it, if there is a plan to name; the log has it anyway."""
        self.exit = code
        self._stop = Stop("error", f"{type(error).__name__}: {told(error)}", "outside", "any partition", code)
        if self._planned is not None:
            with suppress(StoreUnavailable, ArtifactExists):
                self._tools.artifacts.put_result(self._contract(self._planned))

    def _close(self, job: Backfill) -> None:
        try:
            job.close()
        except (Exception, SystemExit) as error:
            # The work is done and saved, or another error is on its way: neither is to be lost over this one.
            log.exception("close failed")
            self._warnings.append(f"close failed with {type(error).__name__}: {told(error)}")

    def _register(self) -> TaskItem:
        now = self._tools.clock.now()
        task = TaskItem(
            phase=self._order.phase,
            slice_id=self._order.slice.slice_id,
            launch=self._order.launch,
            generation=self._order.generation,
            dispatch=self._order.dispatch,
            task=self._tools.identity.task,
            registered_at=now,
            beat_at=now,
            launched_at=self._order.launched_at,
            work_left=self._order.slice.weight,
        )
        self._tools.ledger.tasks.register(self._order.run_id, task)
        return task

    def _plan(self) -> Plan:
        plan = self._tools.artifacts.plan(self._order.plan_key, self._order.plan_sha256)
        self._tools.identity.expect(plan.code(self._order.phase))
        return plan

    def _check_approval(self, run: Run, plan: Plan) -> None:
        """Whatever started this task: nothing is written that nobody approved. Raises NotApproved."""
        if self._order.phase is Phase.APPLY and plan.job.approval.required:
            self._tools.ledger.gates.check_passed(run, self._order.phase.value, self._order.plan_sha256)

    def _bench(self, run: Run, plan: Plan) -> Bench:
        order, tools = self._order, self._tools
        stopping = Stopping(tools.control, tools.clock, plan.job.task.minutes)
        pace = Pace(tools.ledger, run, stopping, tools.clock)
        size = BatchSize(plan.job.batch, pace)
        writes = order.phase in WRITING_PHASES
        return Bench(
            job=self._job(run, plan, stopping, Settings(plan.params, tools.secret, size)),
            plan=plan,
            owner=Owner(
                run.run_id, order.phase, order.launch, tools.identity.task, run.epoch if writes else 0
            ),
            dry=not writes,
            stopping=stopping,
            patience=Patience(stopping, tools.rng, on_throttle=lambda: _throttled(tools, pace)),
            pace=pace,
            size=size,
            tools=tools,
            warnings=self._warnings,
        )

    def _job(self, run: Run, plan: Plan, stopping: Stopping, settings: Settings) -> Backfill:
        if issubclass(self._job_class, Backfill):
            return make_job(self._job_class, settings)
        from trueup.worker.comparing import make_comparison  # with the comparer, which backfills never need

        hooks = self._job_class(settings)
        return make_comparison(run, plan, self._order.phase, hooks, self._tools, stopping, settings)

    def _heart(self, task: TaskItem, plan: Plan, bench: Bench) -> Heart:
        return Heart(
            self._tools.ledger,
            self._order.run_id,
            task,
            self._tools.control,
            self._tools.clock,
            no_progress_seconds=plan.job.task.no_progress_seconds,
            follow=bench.pace.follow,
            no_progress=self._no_progress,
            callback=self._tools.callback,
            callback_seconds=self._tools.callback_seconds,
        )

    def _work(self, bench: Bench, parts: list[Partition]) -> Iterator[Step]:
        control = self._tools.control
        control.work_left = sum(part.weight for part in parts)
        for part in parts:
            self._stop = self._stop or bench.stopping.ask() or self._full()
            if self._stop is not None:
                return
            yield from self._work_partition(bench, part)
            control.work_left -= part.weight
        self._stop = self._stop or self._later

    def _full(self) -> Stop | None:
        """The reason to leave the rest to another task: a contract that is too large is refused whole."""
        if self._entry_bytes < ROOM_FOR_ENTRIES:
            return None
        return Stop("contract", f"{self._entry_bytes:,} bytes", ">=", f"{ROOM_FOR_ENTRIES:,}")

    def _work_partition(self, bench: Bench, part: Partition) -> Iterator[Step]:
        work = make_work(bench, part)
        try:
            yield from work.steps()
        except NotTakable as done:
            with about(partition=part.id):
                log.info("nothing to do: %s", done)
            self._tools.control.progressed_at = self._tools.clock.monotonic()
        except Later as later:
            log.info("partition %s: %s", part.id, later)
            self._later = later.stop
        except Stopped as stopped:
            with about(partition=part.id):
                log.info("partition %s: %s", part.id, stopped)
            self._stop = stopped.stop
            if work.kept:
                self._stop = replace(stopped.stop, exit=Exit.FAULT)
        # In one go for the heart: the partition is either at work or counted as reported.
        self._tools.control.partition = None
        if work.entry is not None:
            self._entries.append(work.entry)
            self._entry_bytes += len(work.entry.model_dump_json(by_alias=True).encode())
            if work.entry.status is not ResultStatus.INTERRUPTED:
                self._tools.control.reported += 1
                self._tools.control.work_reported += part.weight

    def _store(self, plan: Plan) -> Iterator[Step]:
        if self._stop is not None and self._stop.signal == "ownership":
            self.exit = Exit.INTERRUPTED
            return
        self.contract = self._contract(plan)
        try:
            self._tools.artifacts.put_result(self.contract)
        except ArtifactExists as twice:
            log.warning("the result was stored before: %s", twice)
        self.exit = self._stop.exit if self._stop else Exit.DONE
        yield Step("stored")

    def _contract(self, plan: Plan) -> ResultContract:
        order, identity = self._order, self._tools.identity
        return ResultContract(
            job_id=plan.job.name,
            status=self._status(),
            started_at=self._started_at,
            finished_at=max(self._tools.clock.now(), self._started_at),
            warnings=self._told_warnings(),
            run_id=order.run_id,
            generation=order.generation,
            phase=order.phase,
            slice_id=order.slice.slice_id,
            launch=order.launch,
            plan_sha256=order.plan_sha256,
            task_arn=identity.task,
            task_definition=identity.code.task_definition,
            image_digest=identity.code.image_digest,
            partitions=self._entries,
            **record_counts(ResultContract.totals(self._entries)),
        )

    def _told_warnings(self) -> list[str]:
        stopped = [] if self._stop is None else [f"stopped early by {self._stop}"]
        warnings = [cut(one, LONGEST_WARNING) for one in [*stopped, *self._warnings]]
        if len(warnings) <= MOST_WARNINGS:
            return warnings
        kept = warnings[: MOST_WARNINGS - 1]
        return [*kept, f"and {len(warnings) - len(kept)} more warnings"]

    def _status(self) -> TaskStatus:
        if self._stop is not None:
            return TaskStatus.INTERRUPTED if self._stop.exit is Exit.INTERRUPTED else TaskStatus.FAILED
        good = all(entry.status is ResultStatus.SUCCEEDED for entry in self._entries)
        return TaskStatus.SUCCEEDED if good else TaskStatus.FAILED


def make_job(job_class: type[Backfill], settings: Settings) -> Backfill:
    """The job with its parameters and secrets. Raises UsageError where its `Params` do not take them."""
    try:
        return job_class(settings)
    except ValidationError as error:
        raise UsageError(f"The job's Params do not take the plan's parameters: {error}") from error


def make_work(bench: Bench, part: Partition) -> PartitionWork:
    """The work on one partition, by what the job is."""
    if bench.plan.job.kind == "backfill":
        return PartitionWork(bench, part)
    from trueup.worker.comparing import ComparisonWork

    return ComparisonWork(bench, part)


def _throttled(tools: Tools, pace: Pace) -> None:
    tools.control.throttled += 1
    tools.metrics.emit({"Throttled": 1})
    pace.slow_down()
