"""Partitions named by the job's own code: what its task is told, and what became of it."""

from __future__ import annotations

from trueup.artifacts import Artifacts, brief_key
from trueup.errors import RequestError
from trueup.exits import Exit
from trueup.ledger import Ledger
from trueup.model.base import Count, Value, canonical, sha256
from trueup.model.ledger import Run
from trueup.model.naming import Brief, Named, NamingOrder
from trueup.platform import Ended

LAUNCHES = 10
FAULTS = 2


class Tries(Value):
    """Launches so far, and those of them that ended by their own fault."""

    launches: Count = 0
    faults: Count = 0

    def after(self, ended: Ended) -> Tries:
        """With one more launch. Raises RequestError where another one would not help."""
        faults = self.faults + (0 if ended.from_outside else 1)
        tries = Tries(launches=self.launches + 1, faults=faults)
        hopeless = ended.exit_code == Exit.BAD_INPUT
        if hopeless or tries.faults >= FAULTS or tries.launches >= LAUNCHES:
            raise RequestError(
                f"No task could name the partitions in {tries.launches} launches; the last one: {ended}.",
                remedy="The task's log says why; start the run again when that is mended.",
                field="partitions",
            )
        return tries


class Naming:
    """Hands out the task that names the partitions of a run, and reads what it left."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def brief(self, run: Run, brief: Brief) -> Brief:
        """The brief of a run: this one, or the one that an earlier call stored."""
        return self._artifacts.put_brief(run.run_id, brief)

    def order(self, run: Run, brief: Brief) -> NamingOrder:
        """What the next task is told, under a launch number of its own. Raises RunClosed."""
        return NamingOrder(
            run_id=run.run_id,
            job=run.job,
            generation=run.generation,
            launch=self._ledger.runs.next_launch(run.run_id, run.generation),
            brief_key=brief_key(run.run_id),
            brief_sha256=sha256(canonical(brief.document())),
        )

    def named(self, run: Run, launch: int) -> Named | None:
        """What a launch that is over left behind; a task of it that begins only now is refused.

        Raises RequestError with the error of the job's code.
        """
        self._ledger.tasks.end_launch(run.run_id, launch)
        named = self._artifacts.named(run.run_id, launch)
        if named is not None and named.error is not None:
            raise RequestError(
                f"the job's partitions(window) failed: {named.error}.",
                remedy="Mend the hook, deploy, and start the run again.",
                field="partitions",
            )
        return named
