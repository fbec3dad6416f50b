"""A whole run in one process, over stores in memory, that can be stepped, interrupted, killed and frozen."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trueup.accepting import Acceptance, Answer, Launch
from trueup.artifacts import Artifacts, Store
from trueup.artifacts.store import MemoryStore
from trueup.clock import Clock
from trueup.errors import JobError, RunClosed, TrueupError
from trueup.gating import before_repair
from trueup.handling.accept import subject
from trueup.handling.ends import told
from trueup.jobs import Backfill, Reconcile
from trueup.ledger import Ledger
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Table
from trueup.model.counters import Counters
from trueup.model.job import Approval, Job
from trueup.model.jobs import AnyJob
from trueup.model.ledger import PartitionItem, Run
from trueup.model.naming import Brief
from trueup.model.plan import CodeIdentity, Partition, Plan, Slice
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.repair import RepairReport
from trueup.model.request import Request
from trueup.model.states import GateStatus, PartitionStatus, Phase
from trueup.planning import window
from trueup.platform import Ended, TaskState
from trueup.reporting.comparison import Comparisons
from trueup.reporting.repairs import Repairs
from trueup.settling import Settled, Settlement
from trueup.starting import Code, Starter, writes
from trueup.testing.clocks import ManualClock
from trueup.testing.local_tasks import LocalPlatform, LocalTask
from trueup.testing.rows import rows_opener
from trueup.worker import Control, Identity, Step, Tools, Worker
from trueup.worker.naming import hook_names, namer_of

CODE = CodeIdentity(
    task_definition="arn:aws:ecs:local:000000000000:task-definition/local:1",
    image_digest="sha256:" + "0" * 64,
)


class LocalRun:
    """A run of a job in one process.

    `job` is the class, `job_file` its job.yaml (a path) or a AnyJob. The window is `start` (included) to
    `end` (not included), or `keys`. Stores are in memory unless `table` or `store` are given. `seed` decides
    which of `concurrency` tasks is stepped next. `checkpoint_seconds` 0 makes a checkpoint after each batch;
    `batch_size`, instead of the job file's, makes several batches of a little data.

    Of a reconciliation `job` is its hooks, or `trueup.Reconcile`; `rows` are those of its `truth` and
    `target` in memory, instead of what its file names, and `comparison` is its report.

    Nobody is asked for an approval, whatever the job file says; but nothing is repaired unless there is an
    `approver`, who approves the report as soon as it is there. `undoes` is a run, in the same stores,
    whose repairs are taken back. A backfill is not verified, whatever its job file says.

    Nothing happens before `plan`, `step` or `run` is called.
    """

    def __init__(
        self,
        job: type[Backfill] | type[Reconcile],
        job_file: str | Path | AnyJob,
        *,
        start: str | None = None,
        end: str | None = None,
        keys: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        secrets: Mapping[str, str] | None = None,
        listing: Iterable[tuple[str, int]] | None = None,
        concurrency: int = 1,
        checkpoint_seconds: float = 0,
        batch_size: int | None = None,
        seed: int = 0,
        table: Table | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
        rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        approver: str | None = None,
        undoes: LocalRun | None = None,
    ) -> None:
        self.job_class = job
        self._rows = rows
        declared = job_file if isinstance(job_file, Job) else _load(job_file)
        declared = declared.model_copy(update={"approval": Approval()})  # nobody is here to be asked
        if declared.kind == "backfill":
            declared = declared.model_copy(update={"verify": None})  # the run of another job
        elif approver is None:
            declared = declared.model_copy(update={"repair": None})
        self._approver = approver
        self._undoes = undoes
        self.job = declared if batch_size is None else _in_batches(declared, batch_size)
        self.clock: Clock = clock or (ManualClock() if undoes is None else undoes.clock)
        self.ledger: Ledger = Ledger(table or MemoryTable(), self.clock) if undoes is None else undoes.ledger
        self.artifacts: Artifacts = Artifacts(store or MemoryStore()) if undoes is None else undoes.artifacts
        self.platform = LocalPlatform()
        self._rng = random.Random(seed)
        self._window = (start, end, None if keys is None else tuple(keys))
        self._params = dict(params or {})
        self._dry_run = dry_run
        self._secrets = dict(secrets or {})
        self._listing = listing
        self._concurrency = concurrency
        self._checkpoint_seconds = checkpoint_seconds
        self._run: Run | None = None
        self._plan: Plan | None = None
        self._waiting: list[tuple[float, Slice]] = []
        self._active: list[LocalTask] = []
        self._over = False
        self._phase: Phase | None = None
        self._dispatches = 0
        self.tasks: list[LocalTask] = []

    # What a test does.

    def plan(self) -> Plan:
        """Plan, create the run, take the lock and dispatch, once. Raises RequestError, LockHeld."""
        if self._plan is None:
            starter = Starter(self.ledger, self.artifacts, self.clock, self._rng)
            named = self._named_partitions()
            run, plan = starter.start(
                self.job, self._request(), Code(CODE, CODE), listing=self._listing, named=named
            )
            phase = run.phases[0]
            self._run, self._plan = run, plan
            if run.undoes:
                self._approve()
            self._run = starter.lock(run) if writes(phase) else run
            self._enter(phase)
        return self._plan

    def _enter(self, phase: Phase) -> None:
        """Hand out a phase."""
        self._phase = phase
        self._dispatches += 1
        run = self.ledger.runs.get(self.run_id)
        starter = Starter(self.ledger, self.artifacts, self.clock, self._rng)
        first = (self._dispatches - 1) * 100_000
        self._waiting = [(0.0, one) for one in starter.dispatch(run, phase, self._dispatches, first).slices]

    def step(self) -> Step | None:
        """One task to its next point; tasks that left are judged and, where work is left, launched again.

        What the state machine would wait between two launches passes on the clock, once nobody is at work.
        None: the run is over.
        """
        self.plan()
        while not self._over:
            self._launch_waiting()
            if not self._active:
                self._settle()
                continue
            task = self._rng.choice(self._active)
            if step := task.step():
                return step
            self._end(task, Ended(exit_code=task.worker.exit, stop_code="EssentialContainerExited"))
        return None

    def run(self) -> Run:
        """Step until the run is over, and give it as it then stands."""
        while self.step() is not None:
            pass
        return self.ledger.runs.get(self.run_id)

    def interrupt(self, signal: str = "SIGTERM") -> None:
        """Ask every task to stop, as ECS does; they leave at their next batch with their progress saved."""
        for task in self._active:
            task.control.signal = signal

    def kill(self, *, exit_code: int = 137, stop_code: str = "SpotInterruption") -> None:
        """End every task where it stands: nothing is saved on the way out."""
        for task in list(self._active):
            task.loop = iter(())
            self._end(task, Ended(exit_code=exit_code, stop_code=stop_code))

    def freeze(self) -> list[LocalTask]:
        """Take the tasks out of the run alive, while the platform calls them stopped.

        Stepping one wakes a zombie.
        """
        zombies = list(self._active)
        for task in zombies:
            self._end(task, Ended(stop_code="InfrastructureHealth"))
        return zombies

    # What a test asks.

    @property
    def run_id(self) -> str:
        """The run's id."""
        self.plan()
        assert self._run is not None
        return self._run.run_id

    @property
    def phase(self) -> Phase:
        """The phase at work: apply, or rehearse in a dry run; of a reconciliation compare, then confirm."""
        self.plan()
        return self._phase or self.ledger.runs.get(self.run_id).phases[0]

    @property
    def planned(self) -> int:
        """Partitions in the plan."""
        return self.plan().partition_count

    @property
    def accepted(self) -> int:
        """Partitions that were accepted."""
        return self.count(PartitionStatus.ACCEPTED)

    @property
    def records(self) -> Counters:
        """The records of all partitions that ended."""
        return self.ledger.verdicts.counts(self.run_id).tally().records

    @property
    def replayed(self) -> int:
        """About how many records were worked again after kills: those of the first checkpoint after each.

        With `checkpoint_seconds` 0 it is at most this many; by the clock, a slower successor repeats more.
        """
        return self.ledger.verdicts.counts(self.run_id).tally().replayed

    def count(self, *states: PartitionStatus) -> int:
        """Partitions in some end states."""
        return self.ledger.verdicts.counts(self.run_id).tally(*states).partitions

    def partition(self, partition_id: str) -> PartitionItem:
        """A partition as the ledger has it."""
        return self.ledger.partitions.get(self.run_id, self.phase, partition_id)

    def secret(self, name: str) -> str:
        """The secret of that name that the test gave. Raises JobError as a task does."""
        try:
            return self._secrets[name]
        except KeyError:
            raise JobError(
                f"Secret {name!r} is not there.", remedy="Give it to LocalRun in `secrets`."
            ) from None

    # How it works.

    def _request(self) -> Request:
        start, end, keys = self._window
        return Request(
            job=self.job.name,
            request_id=f"local-{self._rng.randrange(2**32)}",
            requester="local",
            start=start,
            end=end,
            keys=keys,
            params=self._params,
            dry_run=self._dry_run,
            undo=None if self._undoes is None else self._undoes.run_id,
        )

    def _named_partitions(self) -> list[Partition | str] | None:
        if not self.job.named_by_task:
            return None
        covered = window(self.job, self._request())
        brief = Brief(job=self.job, params=self._params, window=covered, read_code=CODE, write_code=CODE)
        namer = namer_of(self.job_class, brief, self._tools("naming", Control()))
        return list(hook_names(namer, covered))

    def _launch_waiting(self) -> None:
        now = self._now_or_when_the_first_is_due()
        due = [one for one in self._waiting if one[0] <= now]
        for one in due[: max(0, self._concurrency - len(self._active))]:
            self._waiting.remove(one)
            try:
                self._launch(one[1])
            except RunClosed:
                self._waiting.clear()  # As the state machine's children do: the gate is shut, leave.
                return

    def _now_or_when_the_first_is_due(self) -> float:
        """The clock's time; where nobody is at work, not before the first slice may be launched."""
        now = self.clock.monotonic()
        first = min((after for after, _ in self._waiting), default=now)
        if self._active or first <= now:
            return now
        self.clock.sleep(first - now)
        return max(first, self.clock.monotonic())

    def _launch(self, slice_: Slice) -> None:
        run = self.ledger.runs.get(self.run_id)
        number = self.ledger.runs.next_launch(run.run_id, run.generation)
        launch = Launch(run.run_id, run.generation, self.phase, slice_, number)
        arn = f"arn:aws:ecs:local:000000000000:task/local/{number:032x}"
        control = Control()
        worker = Worker(
            self.job_class,
            launch.order(run).model_copy(update={"launched_at": self.clock.now()}),
            self._tools(arn, control),
            no_progress=lambda reason: task.hang(reason),  # noqa: PLW0108 - the task is made below
        )
        self.platform.set(arn, TaskState.ALIVE)
        task = LocalTask(arn, launch, worker, control, worker.steps())
        self.tasks.append(task)
        self._active.append(task)

    def _tools(self, arn: str, control: Control) -> Tools:
        return Tools(
            ledger=self.ledger,
            artifacts=self.artifacts,
            identity=Identity(arn, CODE),
            clock=self.clock,
            control=control,
            rng=random.Random(self._rng.random()),
            secret=self.secret,
            sources=None if self._rows is None else rows_opener(self._rows),
            checkpoint_seconds=self._checkpoint_seconds,
        )

    def _end(self, task: LocalTask, ended: Ended) -> None:
        self._active.remove(task)
        self.platform.set(task.arn, TaskState.STOPPED)
        acceptance = self._acceptance()
        answer = acceptance.accept(task.launch, ended)
        self.ledger.audit.launch_ended(
            self.run_id,
            task.launch.launch,
            subject=subject(task.launch),
            how=told(ended),
            answer=answer.value,
        )
        if answer is Answer.AGAIN:
            after = self.clock.monotonic() + acceptance.pause(task.launch)
            self._waiting.insert(0, (after, task.launch.slice))

    def _acceptance(self) -> Acceptance:
        return Acceptance(self.ledger, self.artifacts, self.platform, self.clock)

    def _settle(self) -> None:
        made = Comparisons(self.ledger, self.artifacts)
        settlement = Settlement(
            self.ledger,
            self.artifacts,
            self._acceptance(),
            verdict=made.verdict,
            is_through=made.is_through,
        )
        settled = settlement.settle(self.run_id, self.phase)
        if settled is Settled.COMPLETE:
            run = self.ledger.runs.get(self.run_id)
            phase = run.phases[run.phases.index(self.phase) + 1]
            if phase is Phase.REPAIR:
                self._approve()
            else:
                self._wait_for_the_lag()
            self._enter(phase)
            return
        if settled is Settled.UNFINISHED:
            raise TrueupError(
                f"Run {self.run_id} has partitions that no slice is left for.", remedy="This is a bug."
            )
        self._over = True

    def _approve(self) -> None:
        """The word of the approver, and the lock."""
        run = self.ledger.runs.get(self.run_id)
        assert self._approver is not None  # without one the job repairs nothing
        asked = before_repair(self.artifacts, self.ledger, run, self.plan())
        sha256 = asked.subject.sha256
        self.ledger.gates.open(run, asked)
        self.ledger.gates.decide(
            run.run_id, asked.name, GateStatus.APPROVED, who=self._approver, sha256=sha256
        )
        self.ledger.gates.spend(run, asked.name, sha256, asked.roles)
        Starter(self.ledger, self.artifacts, self.clock, self._rng).lock(self.ledger.runs.get(run.run_id))

    def _wait_for_the_lag(self) -> None:
        """As the state machine does, between a comparison and the second look."""
        job = self.plan().job
        if job.kind == "reconcile":
            self.clock.sleep(job.lag)

    @property
    def comparison(self) -> ReconcileReport:
        """The report of a reconciliation. Raises TrueupError before it is through."""
        report = Comparisons(self.ledger, self.artifacts).of(self.ledger.runs.get(self.run_id))
        if report is None:
            raise TrueupError(f"Run {self.run_id} is not through.", remedy="Call `run` first.")
        return report

    @property
    def repaired(self) -> RepairReport:
        """What a repair came to. Raises TrueupError where nothing was repaired."""
        report = Repairs(self.ledger, self.artifacts).of(self.ledger.runs.get(self.run_id))
        if report is None:
            raise TrueupError(f"Run {self.run_id} repaired nothing.", remedy="Give it an `approver`.")
        return report


def _in_batches(job: AnyJob, size: int) -> AnyJob:
    return job.model_copy(update={"batch": job.batch.model_copy(update={"size": size})})


def _load(job_file: str | Path) -> AnyJob:
    from trueup.jobfile import load  # a YAML reader, which nobody needs who gives a job file

    return load(Path(job_file))
