"""`accept`: how a launch ended, what that means, and what the machine does next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trueup.accepting import UNREGISTERED, Acceptance, Answer, Launch, over
from trueup.artifacts import Artifacts
from trueup.handling.ends import ended_of, of_stopped, told
from trueup.ledger import Ledger
from trueup.metrics import UNMEASURED, Metrics
from trueup.model.plan import Slice
from trueup.model.states import Phase
from trueup.platform import Ended, Endings


@dataclass(frozen=True, slots=True)
class Accepting:
    """Judges launches, and tells the trail how each ended."""

    ledger: Ledger
    artifacts: Artifacts
    acceptance: Acceptance
    endings: Endings
    metrics: Metrics = UNMEASURED

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Accept the launch of `{order, number, ended}`: what next and, where it is `again`, after how long.

        Raises StoreUnavailable, Stale.
        """
        launch = _launch(event)
        ended = self._asked(launch, event["order"]["job"], ended_of(event["ended"]))
        answer = self.acceptance.accept(launch, ended)
        if answer is not Answer.STOPPING:
            self._tell(launch, event["order"]["job"], ended, answer)
        pause = self.acceptance.pause(launch) if answer is Answer.AGAIN else 0
        return {"answer": answer.value, "seconds": pause}

    def _tell(self, launch: Launch, job: str, ended: Ended, answer: Answer) -> None:
        is_news = self.ledger.audit.launch_ended(
            launch.run_id,
            launch.launch,
            subject=subject(launch),
            how=told(ended),
            answer=answer.value,
        )
        if is_news:
            self.metrics.emit({"LaunchesEnded": 1}, job=job, phase=launch.phase.value, answer=answer.value)

    def _asked(self, launch: Launch, job: str, ended: Ended) -> Ended:
        """Where nobody told how the task ended (a timeout, a lost word), the platform is asked."""
        if not ended.is_unknown:
            return ended
        endings = list(self._endings(launch, job))
        for found in endings:
            # What we stopped ourselves says nothing: the silence before is what counts.
            if not (found.reason or "").startswith((over(launch), UNREGISTERED)):
                return of_stopped(found)
        # But for one whose container never ran: that was the platform's silence, and none of the task's.
        return endings[0] if endings and all(map(_never_ran, endings)) else ended

    def _endings(self, launch: Launch, job: str) -> Iterable[Ended]:
        """How the launch's task ended, where it has: the one that registered, else whichever was started."""
        known = self._tasks(launch)
        if not known:
            return self.endings.endings_of(launch.run_id, job, launch.launch)
        return filter(None, map(self.endings.ending, known))

    def _tasks(self, launch: Launch) -> set[str]:
        """The launch's task: as it registered or, where that was proved stopped already, as it took."""
        tasks = self.ledger.tasks.of_slice(launch.run_id, launch.phase, launch.slice.slice_id)
        registered = {task.task for task in tasks if task.launch == launch.launch}
        if registered:
            return registered
        ids = [part.id for part in self.artifacts.slice(launch.slice)]
        items = self.ledger.partitions.get_many(launch.run_id, launch.phase, ids).values()
        return {item.task for item in items if item.task and item.launch == launch.launch}


def _never_ran(ended: Ended) -> bool:
    """Whether a task that we stopped was still PROVISIONING, PENDING or ACTIVATING: no exit code is left."""
    return (ended.reason or "").startswith(UNREGISTERED) and ended.exit_code is None


def _launch(event: Mapping[str, Any]) -> Launch:
    order = event["order"]
    return Launch(
        run_id=order["runId"],
        generation=order["generation"],
        phase=Phase(order["phase"]),
        slice=Slice.model_validate(order["slice"]),
        launch=event["number"]["launch"],
    )


def subject(launch: Launch) -> str:
    """What the trail calls a launch."""
    return f"{launch.phase.value}: slice {launch.slice.slice_id}, launch {launch.launch}"
