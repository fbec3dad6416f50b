"""The end of a run, read from the ledger and never from a fan-out's output."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum

from trueup.accepting import Acceptance
from trueup.artifacts import Artifacts
from trueup.errors import ArtifactError, RunClosed, StoreUnavailable
from trueup.judging import judge_reported
from trueup.ledger import Ledger
from trueup.metrics import UNMEASURED, Metrics
from trueup.model.ledger import Run
from trueup.model.states import RUN_ENDS, GateStatus, PartitionStatus, Phase, RunStatus

log = logging.getLogger("trueup.settle")

SETTLER = "trueup:settle"
_ALL_WELL = "every partition is accepted or skipped"


class Settled(StrEnum):
    """What settling found."""

    ENDED = "ended"
    PAUSED = "paused"
    STOPPING = "stopping"
    UNFINISHED = "unfinished"
    COMPLETE = "complete"


_SETTLED = {RunStatus.RUNNING: Settled.UNFINISHED, RunStatus.PAUSED: Settled.PAUSED}


class Settlement:
    """Settles runs. Safe to call at any time, and twice."""

    def __init__(
        self,
        ledger: Ledger,
        artifacts: Artifacts,
        acceptance: Acceptance,
        report: Callable[[str], object] = lambda run_id: None,
        verdict: Callable[[Run], str | None] = lambda run: None,
        is_through: Callable[[Run, Phase], bool] = lambda run, phase: phase is run.phases[-1],
        metrics: Metrics = UNMEASURED,
    ) -> None:
        """`report` is told the id of each run that ended, before it is let go; it may be told twice.

        `verdict` says what a reconciliation that is through comes to, and makes its report; `is_through`
        whether nothing follows a complete phase.
        """
        self._ledger = ledger
        self._artifacts = artifacts
        self._acceptance = acceptance
        self._report = report
        self._verdict = verdict
        self._is_through = is_through
        self._metrics = metrics

    def settle(self, run_id: str, phase: Phase) -> Settled:
        """Prove every task stopped, accept what is still REPORTED, and end a run whose partitions all ended.

        ENDED: the run has its end state and its lock is left. PAUSED: it keeps its lock, and can be resumed.
        STOPPING: tasks are not proved stopped yet. UNFINISHED: partitions are left to be worked.
        COMPLETE: all of this phase, or of its canary, were accepted, or it is a repair, and more follows:
        another phase, or the verification.
        Raises StoreUnavailable; Stale where something moved meanwhile: call it again.
        """
        run = self._ledger.runs.get(run_id)
        if not self._prove_and_judge(run, [phase]):
            return Settled.STOPPING
        run = self.ask_abort_rules(run)
        complete = run.status is RunStatus.RUNNING and self._is_complete(run, phase)
        after = self._end(run, phase) if complete else run
        self._put_away(after)
        if complete and after is run:
            return Settled.COMPLETE
        return _SETTLED.get(self._ledger.runs.get(run_id).status, Settled.ENDED)

    def close(self, run_id: str) -> Settled:
        """The same for a run that nobody works any more: it gets where it was going, in whatever phase it is.

        It is closed already: one that is still RUNNING is UNFINISHED. Raises as `settle` does.
        """
        run = self._ledger.runs.get(run_id)
        if not self._prove_and_judge(run, run.phases):
            return Settled.STOPPING
        self._put_away(run)
        return _SETTLED.get(self._ledger.runs.get(run_id).status, Settled.ENDED)

    def ask_abort_rules(self, run: Run) -> Run:
        """The run, closed where it breaks an abort rule of its job. Raises StoreUnavailable, Stale."""
        return self._acceptance.ask_abort_rules(run)

    def _prove_and_judge(self, run: Run, phases: Iterable[Phase]) -> bool:
        alive = self._acceptance.stop_and_prove(run.run_id, self._ledger.tasks.of(run.run_id))
        lost = self._acceptance.stop_unregistered(run)
        for phase in phases if run.is_planned else ():
            self._judge_left_over(run, phase)
        return not alive and not lost

    def _put_away(self, run: Run) -> None:
        """Write the end that a stopping run was meant for, leave the lock, and take it off the sweep's list.

        In this order, so that the sweep finds whatever a death in between has left.
        """
        if run.goal is not None:
            run = self._ledger.runs.finish(run.run_id, run.goal, who=SETTLER)
            self._measure(run)
        if run.status in RUN_ENDS:
            self._ledger.locks.leave(run)
            self._withdraw_gates(run)
            self._tell(run)
        # No need to ask for tasks: `finish` refuses while one is left, and a closed run takes no new ones.
        if run.status in RUN_ENDS or run.status is RunStatus.PAUSED:
            self._ledger.runs.settled(run.run_id)

    def _measure(self, run: Run) -> None:
        if run.status in RUN_ENDS:
            ended = {"RunsEnded": 1, "RunSeconds": run.open_seconds}
            self._metrics.emit(ended, job=run.job, status=run.status.value)

    def _withdraw_gates(self, run: Run) -> None:
        for gate in self._ledger.gates.of(run.run_id):
            if gate.status in (GateStatus.OPEN, GateStatus.APPROVED):
                why = f"the run is {run.status.value}"
                self._ledger.gates.end(gate, GateStatus.WITHDRAWN, who=SETTLER, why=why)

    def _tell(self, run: Run) -> None:
        try:
            self._report(run.run_id)
        except StoreUnavailable:
            raise  # The run stays on the sweep's list, and is told again.
        except Exception:
            # The run has ended and its lock is free: a fault of its report must not hold up either.
            log.exception("run %s has no report", run.run_id)

    def _judge_left_over(self, run: Run, phase: Phase) -> None:
        left = {
            item.partition_id: item
            for item in self._ledger.partitions.all(run.run_id, phase)
            if item.status is PartitionStatus.REPORTED
        }
        if not left:
            return
        try:
            plan = self._artifacts.plan_of(run)
        except ArtifactError as changed:
            # By a plan that was changed nothing is judged, and the run has to end nevertheless.
            log.error("run %s: what its tasks reported cannot be judged: %s", run.run_id, changed)
            return
        decisions = judge_reported(self._artifacts, run, plan, phase, None, left)
        self._ledger.verdicts.decide(run.run_id, phase, decisions, follow_failures=plan.job.follows_failures)

    def _is_complete(self, run: Run, phase: Phase) -> bool:
        ended = self._ledger.verdicts.counts(run.run_id, phase).tally().partitions
        return run.is_planned and ended >= run.to_be_worked(phase)

    def _end(self, run: Run, phase: Phase) -> Run:
        """The run after a complete phase: still open where all is well and another phase follows.

        A repair that failed is looked at before its run ends: what was done of it is done.
        """
        if phase is Phase.REPAIR:
            return run
        ending = (Phase.REPAIR, phase) if phase is Phase.VERIFY else (phase,)
        if missed := [why for one in ending if (why := self._missed(run, one))]:
            missed += self._found(run) if phase is Phase.VERIFY else []
            return self._stop(run, RunStatus.FAILED, "; ".join(missed))
        if not run.is_canary(phase) and self._is_through(run, phase) and not run.is_unverified:
            # Closed first, like every run: a task that registers late is refused, or seen and proved stopped.
            why = self._verdict(run) or _ALL_WELL
            why += f"; verified by {run.verification.job}: {run.verification}" if run.verification else ""
            return self._stop(run, RunStatus.SUCCEEDED, why)
        return run

    def _found(self, run: Run) -> list[str]:
        """What was seen of a repair that failed, or why that cannot be told."""
        try:
            found = self._verdict(run)
        except ArtifactError as changed:
            found = str(changed)
        return [found] if found else []

    def _missed(self, run: Run, phase: Phase) -> str | None:
        """How many partitions did not make it in a phase; None where all did."""
        counts, expected = self._ledger.verdicts.counts(run.run_id, phase), run.to_be_worked(phase)
        good = counts.tally(PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED).partitions
        if good >= expected:
            return None
        why = f"{expected - good} of {expected} partitions did not make it"
        if run.is_canary(phase):
            return f"{why} in the canary"
        is_named = run.kind == "reconcile" or phase is not run.phases[-1]
        return f"{why} in the phase {phase.value}" if is_named else why

    def _stop(self, run: Run, goal: RunStatus, why: str) -> Run:
        """The run as it then stands: what was counted is true of the generation that was read only."""
        with suppress(RunClosed):  # A person was faster, with another goal, or it was resumed meanwhile.
            return self._ledger.runs.stop(run.run_id, goal, who=SETTLER, why=why, generation=run.generation)
        return self._ledger.runs.get(run.run_id)
