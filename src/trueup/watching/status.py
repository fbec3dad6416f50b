"""How one run stands: the run, its 8 counter items, its tasks and the partitions that these hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from trueup.artifacts import Artifacts, comparison_key, repair_key
from trueup.clock import Clock
from trueup.errors import ArtifactError, ArtifactMissing
from trueup.ledger import Ledger
from trueup.model.ledger import Counts, PartitionItem, Run, TaskItem
from trueup.model.plan import Plan
from trueup.model.states import RETRYABLE, Phase, RunStatus
from trueup.model.view import Eta, GateView, RunDetail, RunView, Spending, TaskView
from trueup.planning.estimate import spent
from trueup.planning.packing import slice_count
from trueup.watching.gates import GateViews
from trueup.watching.progress import Standing
from trueup.watching.snapshot import Snapshots, launches_of


def view(run: Run) -> RunView:
    """A run as lists show it."""
    return RunView(
        run_id=run.run_id,
        job=run.job,
        kind=run.kind,
        status=run.status,
        goal=run.goal,
        reason=run.reason,
        requester=run.requester,
        created_at=run.created_at,
        window=str(run.window),
        dry_run=run.dry_run,
        partitions=run.partitions if run.is_planned else None,
        generation=run.generation,
        launches=run.launches,
        target=run.target,
        guard=run.guard,
        comment=run.request.comment if run.request else "",
        waits_at=run.waits_at if run.status is RunStatus.RUNNING else None,
        undoes=run.undoes,
        verifies=run.verifies,
    )


class Watch:
    """Looks at runs."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Clock) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._clock = clock
        self._gates = GateViews(ledger, artifacts)
        self._snapshots = Snapshots(ledger)

    def status(self, run_id: str) -> RunDetail:
        """How a run stands. Raises NotFound, StoreUnavailable."""
        run = self._ledger.runs.get(run_id)
        counts, tasks = self._snapshots.of(run_id)
        phase = current_phase(run, counts)
        plan = self._plan(run)
        standing = self._standing(run, plan, phase, counts, tasks)
        by_partitions, by_work = standing.progress()
        gate = self._gates.waited_at(run) if run.status is RunStatus.RUNNING else None
        here = standing.counts
        return RunDetail(
            run=view(run),
            phase=phase,
            partitions=by_partitions,
            work=by_work,
            by_state={status: tally.partitions for status, tally in here.by_state.items()},
            records=here.tally().records,
            replayed=here.tally().replayed,
            records_per_second=round(sum(task.records_per_second for task in tasks), 1),
            eta=_no_eta(run) if run.status is not RunStatus.RUNNING or gate else _eta(run, phase, standing),
            tasks=[_task(task, standing) for task in tasks],
            waits_for=_waits_for(run, tasks, gate),
            gate=gate,
            spending=self._spending(run, plan, standing),
            plan_sha256=run.plan_sha256,
            verdict=self._verdict(run),
            verification=run.verification,
        )

    def _plan(self, run: Run) -> Plan | None:
        """The plan, where there is one that is what was hashed: a run without it has a state nevertheless."""
        with suppress(ArtifactError):
            return self._artifacts.plan_of(run)
        return None

    def _verdict(self, run: Run) -> str | None:
        """What the report of a repair says, or of a reconciliation, once it is made; or the verification."""
        if run.kind != "reconcile":
            # What it found says something of a run that applied all it should have, and of no other.
            found = run.verification if run.status is RunStatus.SUCCEEDED else None
            return found.verdict if found else None
        for key in (repair_key(run.run_id), comparison_key(run.run_id, "json")):
            with suppress(ArtifactMissing):
                return str(json.loads(self._artifacts.store.get(key))["verdict"])
        return None

    def _standing(
        self,
        run: Run,
        plan: Plan | None,
        phase: Phase,
        counts: Mapping[Phase, Counts],
        tasks: list[TaskItem],
    ) -> Standing:
        now = self._clock.now()
        alive = sum((now - task.registered_at).total_seconds() for task in tasks)
        stopped = next(iter(counts.values())).task_seconds if counts else 0
        here = [task for task in tasks if task.phase is phase]
        expected = run.expected(phase)
        return Standing(
            counts=counts.get(phase, Counts()),
            before=Counts.together(counts[one] for one in counts if one is not phase),
            task_seconds=stopped + alive,
            tasks=here,
            held=self._held(run, phase, here),
            partitions=expected,
            # Of a sample only the number is known: its partitions count as average ones.
            total_work=plan.total_weight * expected / plan.partition_count if plan else 0.0,
            now=now,
            launches=launches_of(counts),
            at_once=run.limits.max_concurrency,
            slices=_slices(plan) if plan else 1,
            opened_at=run.opened_at or run.created_at,
        )

    def _held(self, run: Run, phase: Phase, tasks: list[TaskItem]) -> dict[str, PartitionItem]:
        ids = [task.partition for task in tasks if task.partition]
        return self._ledger.partitions.get_many(run.run_id, phase, ids) if ids else {}

    def _spending(self, run: Run, plan: Plan | None, standing: Standing) -> Spending:
        if plan is None:
            return Spending(dollars=0.0, basis="nothing was launched yet")
        estimate = self._artifacts.estimate(run.run_id)
        dollars = spent(plan.job.task, run.launches, round(standing.task_seconds))
        return Spending(
            dollars=round(dollars, 4),
            estimated=estimate.dollars if estimate else None,
            basis=f"{run.launches:,} launches and {standing.task_seconds:,.0f} s of tasks, at list prices",
        )


def current_phase(run: Run, counts: Mapping[Phase, Counts]) -> Phase:
    """The first phase that is not complete; of a run that is through, that of a failure, or the last."""
    for phase in run.phases:
        if not run.is_planned or counts.get(phase, Counts()).tally().partitions < run.expected(phase):
            return phase
    return troubled_phase(run, counts) or run.phases[-1]


def troubled_phase(run: Run, counts: Mapping[Phase, Counts]) -> Phase | None:
    """The first phase in which a partition did not make it; a repair is followed by one all the same."""
    bad = (phase for phase in run.phases if counts.get(phase, Counts()).tally(*RETRYABLE).partitions)
    return next(bad, None)


def _task(task: TaskItem, standing: Standing) -> TaskView:
    share = standing.share(task) if task in standing.tasks else None
    return TaskView(
        phase=task.phase,
        slice_id=task.slice_id,
        launch=task.launch,
        task=task.task,
        registered_at=task.registered_at,
        beat_at=task.beat_at,
        partition=task.partition,
        share=None if share is None else round(share, 3),
        reported=task.reported,
        records_per_second=task.records_per_second,
        waiting=task.waiting,
        straggler=standing.straggler(task),
    )


def _waits_for(run: Run, tasks: list[TaskItem], gate: GateView | None) -> str | None:
    if gate is not None:
        return f"a person at gate {gate.name}: trueup approve {run.run_id} {gate.name}"
    if run.status is RunStatus.PAUSED:
        return f"a person to resume it; it keeps its window of {run.target}"
    if run.status is RunStatus.STOPPING:
        return f"{len(tasks)} tasks to be proved stopped" if tasks else "its end to be written"
    if run.status is RunStatus.RUNNING and run.verification and run.verification.run_id:
        return f"its verification by {run.verification.run_id}"
    if run.status is RunStatus.RUNNING and not tasks:
        return "tasks to start" if run.is_planned else "its plan"
    return None


def _eta(run: Run, phase: Phase, standing: Standing) -> Eta:
    """When the run will have ended or, where phases follow of which nothing can be known, this one."""
    eta, last = standing.eta(), run.phases[-1]
    if eta.seconds is None or phase is last:
        return eta
    return eta.model_copy(update={"basis": f"until the end of {phase.value}, not of the run: {eta.basis}"})


def _no_eta(run: Run) -> Eta:
    if run.status is RunStatus.RUNNING:
        return Eta(basis="the run waits for a person")
    return Eta(basis=f"the run is {run.status.value}")


def _slices(plan: Plan) -> int:
    """How many slices all of a plan is cut into."""
    target, at_once = plan.job.task.minutes * 60, plan.job.limits.max_concurrency
    return max(1, slice_count(plan.partition_count, plan.total_weight, target, at_once))
