"""From a request to a run that can be worked: plan, store, create, lock, dispatch."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trueup.artifacts import Artifacts, plan_key
from trueup.clock import Clock
from trueup.errors import ArtifactExists
from trueup.history import earlier_of
from trueup.knowing import Knowing
from trueup.ledger import Ledger
from trueup.ledger.table import Key
from trueup.metrics import UNMEASURED, Metrics
from trueup.model.base import sha256
from trueup.model.jobs import AnyJob
from trueup.model.ledger import PartitionItem, Run
from trueup.model.plan import CodeIdentity, Dispatch, Partition, Plan
from trueup.model.reconcile_job import Reconciliation
from trueup.model.request import Request
from trueup.model.states import UNFINISHED, WRITING_PHASES, Phase
from trueup.model.verification import VerifiedBy
from trueup.planning import (
    check_params,
    dispatch_partitions_key,
    limited,
    make_dispatch,
    make_plan,
    partitions,
    window,
)
from trueup.planning.forecast import forecast

STARTER = "trueup:dispatch"
NO_CANDIDATES = "nothing differed"
NOT_REPAIRED = "nothing was repaired"


def _produced(item: PartitionItem) -> bool:
    return item.counters.produced > 0


def _may_have_written(item: PartitionItem) -> bool:
    return item.may_have_written


# What has to be true of a partition in which phase, for it to be worked in the one after it.
_BEFORE: Mapping[Phase, tuple[Phase, Callable[[PartitionItem], bool], str]] = {
    Phase.CONFIRM: (Phase.COMPARE, _produced, NO_CANDIDATES),
    Phase.REPAIR: (Phase.CONFIRM, _produced, "nothing is confirmed"),
    Phase.VERIFY: (Phase.REPAIR, _may_have_written, NOT_REPAIRED),
}


@dataclass(frozen=True, slots=True)
class Code:
    """The code that a run is pinned to: what reads, and what writes."""

    read: CodeIdentity
    write: CodeIdentity


def name_run(job: str, now: datetime, rng: random.Random) -> str:
    """`<job>-<UTC time>-<4 letters>`: sorts by time, and can be an execution's name."""
    letters = "".join(rng.choices(string.ascii_lowercase, k=4))
    return f"{job}-{now:%Y%m%dT%H%M%SZ}-{letters}"


def execution_name(run_id: str, generation: int) -> str:
    """Which execution serves a run: one a generation, so that starting it twice starts one."""
    return f"{run_id}-{generation}"


class Starter:
    """Starts runs and hands out what is left of them."""

    def __init__(
        self,
        ledger: Ledger,
        artifacts: Artifacts,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics = UNMEASURED,
    ) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._clock = clock
        self._rng = rng
        self._metrics = metrics

    def start(
        self,
        job: AnyJob,
        request: Request,
        code: Code,
        *,
        listing: Iterable[tuple[str, int]] | None = None,
        named: Iterable[str | Partition] | None = None,
    ) -> tuple[Run, Plan]:
        """Create a request's run and plan it; the same request id again gives the run that is there.

        Raises RequestError where the request does not fit the job; then nothing was created. A run that was
        created and turns out to have nothing to do raises it too.
        """
        run = self.create(job, request)
        plan = self.plan(run, job, code, listing=listing, named=named)
        return self._ledger.runs.get(run.run_id), plan

    def create(
        self,
        job: AnyJob,
        request: Request,
        *,
        run_id: str | None = None,
        asked: Key | None = None,
        verifies: str | None = None,
    ) -> Run:
        """The run of a request, open and not yet planned; asked again, the one that is there.

        `run_id` and `asked` are for schedules, whose runs are named and remembered by their time; `verifies`
        names the backfill that a reconciliation is started by.
        Raises RequestError where the request does not fit the job; then nothing was created.
        """
        known = self._ledger.runs.of_request(request.request_id, asked)
        undone = self._undoable(job, request.undo) if request.undo and not known else None
        now = self._clock.now()
        run_id = run_id or name_run(job.name, now, self._rng)
        run = Run(
            run_id=run_id,
            job=job.name,
            kind=job.kind,
            request_id=request.request_id,
            requester=request.requester,
            created_at=now,
            dry_run=request.dry_run,
            canary=0 if request.dry_run else limited(job, request).approval.canary,
            params=check_params(job, request.params),
            window=window(job, request),
            target=job.writes_to.name,
            guard=job.writes_to.guard,
            limits=limited(job, request).limits,
            repairs=job.kind == "reconcile" and job.repair is not None and not request.undo,
            undoes=request.undo,
            verification=_verification(job, request),
            verifies=verifies,
            request=request,
            execution=execution_name(run_id, 1),
            execution_input={"runId": run_id, "generation": 1},
        )
        made = self._ledger.runs.create(run, why=request.comment, asked=asked, undone=undone)
        if made is run:
            self._metrics.emit({"RunsStarted": 1}, job=run.job)
        return made

    def _undoable(self, job: AnyJob, undo: str) -> Run:
        from trueup.undos import Undos  # which most calls need not load

        return Undos(self._ledger, self._artifacts).undoable(job, undo)

    def plan(
        self,
        run: Run,
        job: AnyJob,
        code: Code,
        *,
        listing: Iterable[tuple[str, int]] | None = None,
        named: Iterable[str | Partition] | None = None,
    ) -> Plan:
        """Plan a run, store the plan and pin it; called again, the plan that is there.

        Raises RequestError where there is nothing to do, RunClosed; Stale where two plan at once.
        """
        if run.is_planned:
            return self._artifacts.plan_of(run)
        assert run.request is not None  # whoever creates a run stores what was asked for
        if run.undoes:
            # As it was repaired, whatever the job file says by now: its rows are stored in that form.
            undone = self._artifacts.plan_of(self._ledger.runs.get(run.undoes))
            job, parts = undone.job, self._artifacts.partitions(undone.partitions)
        else:
            parts = list(partitions(job, run.request, listing=listing, named=named))
        plan, data = make_plan(
            job,
            run.request,
            parts,
            run_id=run.run_id,
            read_code=code.read,
            write_code=code.write,
            created_at=run.created_at,
            **self._recalled(run, job),
        )
        plan = self._stored(plan, data)
        self._artifacts.put_estimate(run.run_id, forecast(plan, parts))
        self._ledger.runs.pin(run, plan_key(run.run_id), plan.sha256(), plan.partition_count)
        return plan

    def _recalled(self, run: Run, job: AnyJob) -> dict[str, Any]:
        """What a reconciliation takes over from those before it."""
        if run.undoes:
            from trueup.undos import Undos  # as above

            return {"earlier": tuple(Undos(self._ledger, self._artifacts).earlier(run))}
        if not isinstance(job, Reconciliation):
            return {}
        known = Knowing(self._ledger, self._artifacts, self._clock).pin(run, job)
        return {"earlier": tuple(earlier_of(self._ledger, self._artifacts, run, job)), "known": known}

    def _stored(self, plan: Plan, data: bytes) -> Plan:
        """The plan as it is stored: an earlier call that died before it pinned its own stands."""
        # Named by its hash: an earlier call may have listed other partitions, and not got as far as the plan.
        ref = plan.partitions.model_copy(
            update={"key": f"runs/{plan.run_id}/partitions-{plan.partitions.sha256[:12]}.jsonl"}
        )
        plan = plan.model_copy(update={"partitions": ref})
        try:
            self._artifacts.put_plan(plan, data)
        except ArtifactExists:
            return self._artifacts.unpinned_plan(plan.run_id)
        return plan

    def open_for(self, run: Run) -> float:
        """The seconds that a run has been open by now."""
        return run.open_for(self._clock.now())

    def lock(self, run: Run) -> Run:
        """Hold the run's window of its target before anything is written. Raises LockHeld, RunClosed."""
        self._ledger.locks.take(run)
        return self._ledger.runs.get(run.run_id)

    def dispatch(self, run: Run, phase: Phase, number: int, first_slice: int) -> Dispatch:
        """Store and give the slices that are still to be worked in a phase.

        Called again for a number, it gives what was stored first: what was finished since is found finished.
        """
        plan = self._artifacts.plan_of(run)
        planned = self._artifacts.partitions(plan.partitions)[: run.to_be_worked(phase)]
        self._leave_out_the_settled(run, phase, [part.id for part in planned])
        items = self._ledger.partitions.get_many(run.run_id, phase, [part.id for part in planned])
        left = [one for one, item in items.items() if item.status in UNFINISHED]
        name = sha256("\n".join(left).encode())[:12]
        key = dispatch_partitions_key(run.run_id, phase, number).replace(".jsonl", f"-{name}.jsonl")
        dispatch, data, slices = make_dispatch(
            plan, planned, phase=phase, number=number, unfinished=left, first_slice=first_slice, key=key
        )
        try:
            self._artifacts.put_dispatch(dispatch, data, slices)
        except ArtifactExists:
            return dispatch.model_copy(update={"slices": self._artifacts.slices(dispatch.slices_key)})
        return dispatch

    def _leave_out_the_settled(self, run: Run, phase: Phase, ids: Sequence[str]) -> None:
        """Of a reconciliation only partitions are looked at again, or repaired, where something was found."""
        if phase not in _BEFORE:
            return
        of, (earlier, is_worked, why) = run.run_id, _BEFORE[phase]
        if run.undoes and phase is Phase.REPAIR:
            of, (earlier, is_worked, why) = run.undoes, _BEFORE[Phase.VERIFY]
        before = self._ledger.partitions.get_many(of, earlier, ids)
        done = [one for one, item in before.items() if not is_worked(item)]
        if done:
            self._ledger.verdicts.skip(run.run_id, phase, done, who=STARTER, why=why)


def _verification(job: AnyJob, request: Request) -> VerifiedBy | None:
    """What a run has to wait for before it has succeeded; of a rehearsal there is nothing to verify."""
    if job.kind != "backfill" or job.verify is None or request.dry_run:
        return None
    return VerifiedBy(job=job.verify.job)


def first_phase(plan: Plan) -> Phase:
    """The phase that a plan goes to: a dry run only rehearses, a reconciliation compares."""
    if plan.job.kind == "reconcile":
        return Phase.COMPARE
    return Phase.REHEARSE if plan.dry_run else Phase.APPLY


def writes(phase: Phase) -> bool:
    """Whether a phase writes, and so needs the lock."""
    return phase in WRITING_PHASES
