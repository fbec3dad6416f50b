"""`settle`: opens a phase, and after each fan-out says from the ledger what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trueup.artifacts import Artifacts
from trueup.artifacts.store import place
from trueup.errors import ArtifactError, LockHeld, RunClosed
from trueup.gating import OPEN, Gating, before, before_repair, behind_canary
from trueup.handling import moves
from trueup.handling.moves import DISPATCHES, Move, Position
from trueup.handling.tasks import Tasks
from trueup.handling.verify import Verifying
from trueup.ledger import Ledger
from trueup.model.gate import Asked
from trueup.model.ledger import Run
from trueup.model.plan import Dispatch
from trueup.model.states import WRITING_PHASES, Phase, RunStatus
from trueup.reporting.comparison import Comparisons
from trueup.settling import SETTLER, Settled, Settlement
from trueup.starting import Starter

# One may not have run at all: redriven before its first checkpoint, or never started.
IDLE_DISPATCHES = 2
# Between two looks for an input that is late, or for the end of the backfill that holds the target.
POLL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Settling:
    """Settles phases and hands out what is left."""

    ledger: Ledger
    artifacts: Artifacts
    settlement: Settlement
    starter: Starter
    tasks: Tasks
    gating: Gating
    verifying: Verifying
    arrived: Callable[[str], bool] = lambda location: True

    def handle(self, event: Mapping[str, Any]) -> Move:
        """Settle the phase of `{runId, generation, at}`. Raises StoreUnavailable, Stale: call it again."""
        run = self.ledger.runs.get(event["runId"])
        if run.generation != event["generation"]:
            return moves.leave(run)  # A redriven execution of an earlier generation: others serve the run.
        at = Position.model_validate(event["at"])
        try:
            return self._settle(run, at)
        except ArtifactError as changed:  # What was approved, or planned, is not what is there now.
            return self._fail(run, at, str(changed))

    def _settle(self, run: Run, at: Position) -> Move:
        # Before tasks are looked for: children that somebody redrives must not slip in between.
        with suppress(RunClosed):
            self.ledger.runs.next_dispatch(run.run_id, run.generation)
        settled = self.settlement.settle(run.run_id, at.phase)
        generation, run = run.generation, self.ledger.runs.get(run.run_id)
        if run.generation != generation:
            return moves.leave(run)  # It was resumed meanwhile: this position is an earlier generation's.
        if settled is Settled.STOPPING:
            return moves.wait(at)
        if settled is Settled.UNFINISHED and run.is_planned:
            asked = self._gate_before(run, at)
            return self._at_gate(run, at, asked) or self._hand_out(run, at)
        if settled is Settled.COMPLETE and run.is_canary(at.phase):
            asked = behind_canary(self.artifacts, self.ledger, run, self.artifacts.plan_of(run))
            return self._at_gate(run, at, asked) or moves.settle(at)
        if settled is Settled.COMPLETE and at.phase is run.phases[-1]:
            return self._verify(run, at)
        if settled is Settled.COMPLETE:
            return self._enter(run, _after(run, at.phase))
        self._supersede_older(run, at)
        return moves.leave(run)

    def _supersede_older(self, run: Run, at: Position) -> None:
        """Of a run that ends with its report, since nothing of it is repaired: no gate says that it is new.

        What could not be compared says nothing about what was found before.
        """
        if at.phase is not Phase.CONFIRM or run.status is not RunStatus.SUCCEEDED:
            return
        report = Comparisons(self.ledger, self.artifacts).stored(run)
        if report is not None and report.verdict in ("CLEAN", "DRIFT") and report.finished_at is not None:
            self.gating.supersede_older(run, report.finished_at)

    def _gate_before(self, run: Run, at: Position) -> Asked | None:
        plan = self.artifacts.plan_of(run)
        if at.phase is not Phase.REPAIR:
            return before(run, plan, at.phase)
        # All of it until this execution has begun the phase; afterwards tasks look at what is left for them.
        return before_repair(self.artifacts, self.ledger, run, plan, whole=at.mark is None)

    def _at_gate(self, run: Run, at: Position, asked: Asked | None) -> Move | None:
        """What to do at a gate; None where it is open, or there is none."""
        passage = self.gating.through(run, asked) if asked else OPEN
        if asked and passage.waits is not None:
            return moves.approve(at, asked, passage.waits)
        return None if passage.is_open else self._settle(run, at)

    def _verify(self, run: Run, at: Position) -> Move:
        seconds = self.verifying.look(run)
        return self._settle(run, at) if seconds is None else moves.verify(at, seconds)

    def _enter(self, run: Run, phase: Phase) -> Move:
        """Into a phase. Another look comes after the lag, if there is anything to look at."""
        if phase not in (Phase.CONFIRM, Phase.VERIFY):
            return moves.enter(run, phase)
        plan = self.artifacts.plan_of(run)
        assert plan.job.kind == "reconcile"  # no other kind looks twice
        seconds = plan.job.lag if self._is_anything_to_look_at(run, phase) else 0
        return moves.later(moves.beginning(run, phase), seconds)

    def _is_anything_to_look_at(self, run: Run, phase: Phase) -> bool:
        if phase is Phase.CONFIRM:
            return self.ledger.verdicts.counts(run.run_id, Phase.COMPARE).tally().records.produced > 0
        return any(item.may_have_written for item in self.ledger.partitions.all(run.run_id, Phase.REPAIR))

    def _hand_out(self, run: Run, at: Position) -> Move:
        mark = self._mark(run, at.phase)
        idle = at.idle + 1 if mark == at.mark else 0
        if idle >= IDLE_DISPATCHES:
            last = f"dispatches {_number(run, at) - idle + 1} to {_number(run, at)} of {at.phase.value}"
            return self._fail(run, at, f"{last} moved nothing")
        if late := self._awaited(run, at):
            return late
        try:
            if at.phase in WRITING_PHASES:
                self.starter.lock(run)
        except LockHeld as held:
            if run.verifies in (held.found or {}).get("holders", {}):
                return moves.later(at, POLL_SECONDS)  # The backfill has the verdict, and is about to end.
            return self._fail(run, at, str(held))
        except RunClosed:
            return moves.settle(at)  # It was closed meanwhile: settling again ends it.
        return self._work(run, at, mark, idle)

    def _awaited(self, run: Run, at: Position) -> Move | None:
        """What to do while the object that a comparison waits for is not there; None once it is."""
        job = self.artifacts.plan_of(run).job
        if at.phase is not Phase.COMPARE or at.mark is not None or job.kind != "reconcile":
            return None
        wanted = job.filled(run.params).wait_for
        if wanted is None or self.arrived(wanted.location):
            return None
        if self.starter.open_for(run) >= wanted.minutes * 60:
            return self._fail(run, at, f"{wanted.location} did not arrive within {wanted.minutes:g} minutes")
        return moves.later(at, POLL_SECONDS)

    def _work(self, run: Run, at: Position, mark: int, idle: int) -> Move:
        dispatch = self.starter.dispatch(run, at.phase, at.dispatch + 1, at.first_slice)
        last = max((one.slice_id for one in dispatch.slices), default=at.first_slice - 1)
        changes = {"dispatch": dispatch.number, "first_slice": last + 1, "mark": mark, "idle": idle}
        now = at.model_copy(update=changes)
        if not dispatch.slices:
            return moves.settle(now)  # The last partitions ended while this was decided.
        name = f"{run.execution}-{at.phase.value}-{_number(run, now)}"
        return {"do": "work", "at": now.document(), "name": name, "input": self._input(run, dispatch)}

    def _input(self, run: Run, dispatch: Dispatch) -> dict[str, Any]:
        """What the fan-out is started with: ids, pointers and numbers."""
        plan, store = self.artifacts.plan_of(run), self.artifacts.store
        bucket, key = place(store.location(dispatch.slices_key))
        return {
            "order": {
                "runId": run.run_id,
                "generation": run.generation,
                "job": run.job,
                "phase": dispatch.phase.value,
                "planKey": run.plan_key,
                "planSha256": run.plan_sha256,
                "dispatch": run.dispatches,
            },
            "task": self.tasks.input(plan.job, plan.code(dispatch.phase)),
            "dispatch": {"bucket": bucket, "key": key, "versionId": store.version(dispatch.slices_key)},
            "results": {"bucket": bucket, "prefix": f"runs/{run.run_id}/{dispatch.phase.value}/map"},
            "maxConcurrency": run.limits.max_concurrency,
        }

    def _mark(self, run: Run, phase: Phase) -> int:
        """How far a phase got: grows with every checkpoint, report and verdict."""
        return sum(item.seq for item in self.ledger.partitions.all(run.run_id, phase))

    def _fail(self, run: Run, at: Position, why: str) -> Move:
        try:
            self.ledger.runs.stop(
                run.run_id, RunStatus.FAILED, who=SETTLER, why=why, generation=run.generation
            )
        except RunClosed:
            now = self.ledger.runs.get(run.run_id)
            if now.generation != run.generation:
                return moves.leave(now)  # What is wrong with it, its next execution finds.
            # Else it is on its way to another end, which settling gives it.
        return self._settle(run, at)


def _after(run: Run, phase: Phase) -> Phase:
    return run.phases[run.phases.index(phase) + 1]


def _number(run: Run, at: Position) -> int:
    return at.dispatch - (run.generation - 1) * DISPATCHES
