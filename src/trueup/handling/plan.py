"""`plan`: pins the code, makes and stores the plan, and says which phase comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trueup.errors import RequestError, RunClosed
from trueup.handling.ends import ended_of, told
from trueup.handling.moves import Move, enter, leave, name
from trueup.handling.tasks import Tasks
from trueup.jobfile import find
from trueup.ledger import Ledger
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Run
from trueup.model.naming import Brief, Named
from trueup.model.states import Phase, RunStatus
from trueup.naming import Naming, Tries
from trueup.platform import Definitions, Ended
from trueup.starting import Code, Starter

PLANNER = "trueup:plan"
Listing = Callable[[str], Iterable[tuple[str, int]]]
"""The objects under `s3://bucket/prefix`, each as its key and its size."""


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans runs. `stack` is the prefix of the task definitions' families."""

    ledger: Ledger
    starter: Starter
    naming: Naming
    definitions: Definitions
    jobs: Mapping[str, AnyJob]
    stack: str
    listing: Listing
    tasks: Tasks

    def handle(self, event: Mapping[str, Any]) -> Move:
        """Plan the run of `{runId, generation}`. Raises StoreUnavailable, Stale, TrueupError.

        `told` and `ended` in the event are this function's last answer, and how the task that it asked for
        ended. A run that cannot be planned is closed, and the first phase's settling ends it.
        """
        run = self.ledger.runs.get(event["runId"])
        if run.generation != event["generation"]:
            return leave(run)
        try:
            if run.status is RunStatus.RUNNING:
                return self._plan(run, find(self.jobs, run.job), event)
        except RequestError as wrong:
            with suppress(RunClosed):  # Closed or resumed meanwhile: settling reads it again.
                self.ledger.runs.stop(
                    run.run_id, RunStatus.FAILED, who=PLANNER, why=str(wrong), generation=run.generation
                )
        except RunClosed:
            pass  # Closed meanwhile: settling ends it.
        return enter(run, run.phases[0])

    def _plan(self, run: Run, job: AnyJob, event: Mapping[str, Any]) -> Move:
        if job.named_by_task and not run.is_planned and not run.undoes:
            return self._by_its_own_code(run, job, event)
        code = Code(read=self._latest(job, "read"), write=self._latest(job, "write"))
        listing = self.listing(job.partitions.prefix) if job.partitions.by == "s3-prefix" else None
        self.starter.plan(run, job, code, listing=listing)
        return enter(run, run.phases[0])

    def _by_its_own_code(self, run: Run, job: AnyJob, event: Mapping[str, Any]) -> Move:
        brief = self.naming.brief(run, self._brief(run, job))
        tries = Tries()
        before = (event.get("told") or {}).get("next", {})
        if before.get("do") == "name":
            named, tries = self._ended(run, before, ended_of(event["ended"]))
            if named is not None:
                return self._planned(run, brief, named)
        task = self.tasks.input(brief.job, brief.read_code)
        return name(self.naming.order(run, brief), task, tries)

    def _ended(self, run: Run, before: Mapping[str, Any], ended: Ended) -> tuple[Named | None, Tries]:
        """What the task that was asked for left, and the tries so far; its end is on the trail, once."""
        launch, tries = before["order"]["launch"], Tries.model_validate(before["tries"])
        try:
            named = self.naming.named(run, launch)
            tries = tries if named else tries.after(ended)
        except RequestError:
            self._tell(run, launch, ended, "failed")
            raise
        self._tell(run, launch, ended, "done" if named else "again")
        return named, tries

    def _tell(self, run: Run, launch: int, ended: Ended, answer: str) -> None:
        subject = f"{Phase.PLAN.value}: launch {launch}"
        self.ledger.audit.launch_ended(
            run.run_id, launch, subject=subject, how=told(ended), answer=answer, who=PLANNER
        )

    def _planned(self, run: Run, brief: Brief, named: Named) -> Move:
        code = Code(read=brief.read_code, write=brief.write_code)
        self.starter.plan(run, brief.job, code, named=named.partitions)
        return enter(run, run.phases[0])

    def _brief(self, run: Run, job: AnyJob) -> Brief:
        return Brief(
            job=job,
            params=run.params,
            window=run.window,
            read_code=self._latest(job, "read"),
            write_code=self._latest(job, "write"),
        )

    def _latest(self, job: AnyJob, mode: str) -> Any:
        return self.definitions.latest(f"{self.stack}-{job.name}-{mode}")
