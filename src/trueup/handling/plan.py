"""`plan`: pins the code, makes and stores the plan, and says which phase comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trueup.errors import RequestError
from trueup.handling.moves import Move, beginning, enter, leave, settle
from trueup.jobfile import find
from trueup.ledger import Ledger
from trueup.model.job import JobFile
from trueup.model.ledger import Run
from trueup.model.plan import Plan
from trueup.model.states import RunStatus
from trueup.platform import Definitions
from trueup.starting import Code, Starter

PLANNER = "trueup:plan"
Listing = Callable[[str], Iterable[tuple[str, int]]]
"""The objects under `s3://bucket/prefix`, each as its key and its size."""


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans runs. `stack` is the prefix of the task definitions' families."""

    ledger: Ledger
    starter: Starter
    definitions: Definitions
    jobs: Mapping[str, JobFile]
    stack: str
    listing: Listing

    def handle(self, event: Mapping[str, Any]) -> Move:
        """Plan the run of `{runId, generation}`. Raises StoreUnavailable, Stale, TrueupError.

        A run that cannot be planned is closed, and the first phase's settling ends it.
        """
        run = self.ledger.runs.get(event["runId"])
        if run.generation != event["generation"]:
            return leave(run)
        first = run.phases[0]
        if run.status is not RunStatus.RUNNING:
            return settle(beginning(run, first))
        try:
            plan = self._plan(run)
        except RequestError as wrong:
            self.ledger.runs.stop(run.run_id, RunStatus.FAILED, who=PLANNER, why=str(wrong))
            return settle(beginning(run, first))
        return enter(run, plan, first)

    def _plan(self, run: Run) -> Plan:
        job = find(self.jobs, run.job)
        if job.partitions.by == "job":
            raise RequestError(
                f"{job.name} names its partitions by its own code, which only a task can run.",
                remedy="Declare the partitions in job.yaml.",
                field="job",
            )
        code = Code(read=self._latest(job, "read"), write=self._latest(job, "write"))
        listing = self.listing(job.partitions.prefix) if job.partitions.by == "s3-prefix" else None
        return self.starter.plan(run, job, code, listing=listing)

    def _latest(self, job: JobFile, mode: str) -> Any:
        return self.definitions.latest(f"{self.stack}-{job.name}-{mode}")
