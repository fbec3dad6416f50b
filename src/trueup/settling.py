"""The end of a run, read from the ledger and never from a fan-out's output."""

from __future__ import annotations

from enum import StrEnum

from trueup.accepting import Acceptance
from trueup.artifacts import Artifacts
from trueup.judging import judge_reported
from trueup.ledger import Ledger
from trueup.model.ledger import Run
from trueup.model.states import RUN_ENDS, WRITING_PHASES, PartitionStatus, Phase, RunStatus

SETTLER = "trueup:settle"


class Settled(StrEnum):
    """What settling found."""

    ENDED = "ended"
    PAUSED = "paused"
    STOPPING = "stopping"
    UNFINISHED = "unfinished"


_SETTLED = {RunStatus.RUNNING: Settled.UNFINISHED, RunStatus.PAUSED: Settled.PAUSED}


class Settlement:
    """Settles runs. Safe to call at any time, and twice."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, acceptance: Acceptance) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._acceptance = acceptance

    def settle(self, run_id: str, phase: Phase) -> Settled:
        """Prove every task stopped, accept what is still REPORTED, and end a run whose partitions all ended.

        ENDED: the run has its end state and its lock is left. PAUSED: it keeps its lock, and can be resumed.
        STOPPING: tasks are not proved stopped yet. UNFINISHED: partitions are left to be worked.
        Raises StoreUnavailable; Stale where something moved meanwhile: call it again.
        """
        run = self._ledger.runs.get(run_id)
        alive = self._acceptance.stop_and_prove(run_id, self._ledger.tasks.of(run_id))
        self._judge_left_over(run, phase)
        if alive:
            return Settled.STOPPING
        if run.status is RunStatus.RUNNING:
            run = self._end_if_complete(run, phase)
        elif run.goal is not None:
            run = self._ledger.runs.finish(run_id, run.goal, who=SETTLER)
        if run.status in RUN_ENDS and phase in WRITING_PHASES:
            self._ledger.locks.leave(run)
        return _SETTLED.get(run.status, Settled.ENDED)

    def _judge_left_over(self, run: Run, phase: Phase) -> None:
        plan = self._artifacts.plan_of(run)
        left = {
            item.partition_id: item
            for item in self._ledger.partitions.all(run.run_id, phase)
            if item.status is PartitionStatus.REPORTED
        }
        decisions = judge_reported(self._artifacts, run, plan, phase, None, left)
        self._ledger.verdicts.decide(run.run_id, phase, decisions)

    def _end_if_complete(self, run: Run, phase: Phase) -> Run:
        counts = self._ledger.verdicts.counts(run.run_id, phase)
        if counts.tally().partitions < run.partitions:
            return run
        good = counts.tally(PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED).partitions
        if good == run.partitions:
            return self._ledger.runs.finish(run.run_id, RunStatus.SUCCEEDED, who=SETTLER)
        why = f"{run.partitions - good} of {run.partitions} partitions did not make it"
        self._ledger.runs.stop(run.run_id, RunStatus.FAILED, who=SETTLER, why=why)
        return self._ledger.runs.finish(run.run_id, RunStatus.FAILED, who=SETTLER, why=why)
