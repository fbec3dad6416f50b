"""From a request to a run that can be worked: plan, store, create, lock, dispatch."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from trueup.artifacts import Artifacts, plan_key
from trueup.clock import Clock
from trueup.ledger import Ledger
from trueup.model.job import JobFile
from trueup.model.ledger import Run
from trueup.model.plan import CodeIdentity, Dispatch, Partition, Plan
from trueup.model.request import Request
from trueup.model.states import UNFINISHED, WRITING_PHASES, Phase
from trueup.planning import make_dispatch, make_plan, partitions


@dataclass(frozen=True, slots=True)
class Code:
    """The code that a run is pinned to: what reads, and what writes."""

    read: CodeIdentity
    write: CodeIdentity


def name_run(job: str, now: datetime, rng: random.Random) -> str:
    """`<job>-<UTC time>-<4 letters>`: sorts by time, and can be an execution's name."""
    letters = "".join(rng.choices(string.ascii_lowercase, k=4))
    return f"{job}-{now:%Y%m%dT%H%M%SZ}-{letters}"


class Starter:
    """Starts runs and hands out what is left of them."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Clock, rng: random.Random) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._clock = clock
        self._rng = rng

    def start(
        self,
        job: JobFile,
        request: Request,
        code: Code,
        *,
        listing: Iterable[tuple[str, int]] | None = None,
        named: Iterable[str | Partition] | None = None,
    ) -> tuple[Run, Plan]:
        """Plan a request and create its run; the same request id again gives the run that is there.

        Raises RequestError where the request does not fit the job; then nothing was created.
        """
        now = self._clock.now()
        plan, data = make_plan(
            job,
            request,
            partitions(job, request, listing=listing, named=named),
            run_id=name_run(job.name, now, self._rng),
            read_code=code.read,
            write_code=code.write,
            created_at=now,
        )
        self._artifacts.put_plan(plan, data)
        run = self._ledger.runs.create(_run(plan, request), why=request.comment)
        return run, self._artifacts.plan_of(run)

    def lock(self, run: Run) -> Run:
        """Hold the run's window of its target before anything is written. Raises LockHeld, RunClosed."""
        self._ledger.locks.take(run)
        return self._ledger.runs.get(run.run_id)

    def dispatch(self, run: Run, phase: Phase, number: int, first_slice: int) -> Dispatch:
        """Store and give the slices that are still to be worked in a phase."""
        plan = self._artifacts.plan_of(run)
        planned = self._artifacts.partitions(plan.partitions)
        items = self._ledger.partitions.get_many(run.run_id, phase, [part.id for part in planned])
        left = [one for one, item in items.items() if item.status in UNFINISHED]
        dispatch, data, slices = make_dispatch(
            plan, planned, phase=phase, number=number, unfinished=left, first_slice=first_slice
        )
        self._artifacts.put_dispatch(dispatch, data, slices)
        return dispatch


def first_phase(plan: Plan) -> Phase:
    """The phase that a backfill's plan goes to: a dry run only rehearses."""
    return Phase.REHEARSE if plan.dry_run else Phase.APPLY


def writes(phase: Phase) -> bool:
    """Whether a phase writes, and so needs the lock."""
    return phase in WRITING_PHASES


def _run(plan: Plan, request: Request) -> Run:
    return Run(
        run_id=plan.run_id,
        job=plan.job.name,
        request_id=request.request_id,
        requester=request.requester,
        created_at=plan.created_at,
        plan_key=plan_key(plan.run_id),
        plan_sha256=plan.sha256(),
        partitions=plan.partition_count,
        dry_run=plan.dry_run,
        params=plan.params,
        window=plan.window,
        target=plan.job.target.name,
        guard=plan.job.target.guard,
        limits=plan.job.limits,
    )
