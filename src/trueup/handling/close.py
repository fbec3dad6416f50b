"""`close`: an execution ended without having ended its run; the run is closed and its tasks are stopped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trueup.errors import RunClosed, TrueupError
from trueup.ledger import Ledger
from trueup.model.ledger import Run
from trueup.model.states import RUN_ENDS, RunStatus
from trueup.platform import UNSUCCESSFUL, Machines
from trueup.settling import Settled, Settlement

CLOSER = "trueup:close"


@dataclass(frozen=True, slots=True)
class Closing:
    """Closes runs whose execution is gone."""

    ledger: Ledger
    settlement: Settlement
    executions: Machines

    def handle(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Act on EventBridge's word of an ended execution. Raises StoreUnavailable, Stale: it comes again.

        Only for the execution that serves the run now, and only while Step Functions still says that it is
        over: an event may be late, and the execution redriven meanwhile.
        """
        name = str(event["detail"]["name"])
        run = self._run_of(name)
        if run is None or run.execution != name or run.status in (*RUN_ENDS, RunStatus.PAUSED):
            return {"did": "nothing"}
        status = self.executions[run.kind].status(name)
        if status not in UNSUCCESSFUL:
            return {"did": "nothing"}
        return {"did": self.close(run, f"its execution {name} is {status}").value}

    def close(self, run: Run, why: str) -> Settled:
        """Close the run, then stop its tasks and prove it; the sweep goes on where that takes longer."""
        with suppress(RunClosed):  # It is on its way to another end, which it then gets, or was resumed.
            self.ledger.runs.stop(
                run.run_id, RunStatus.ABORTED, who=CLOSER, why=why, generation=run.generation
            )
        return self.settlement.close(run.run_id)

    def _run_of(self, name: str) -> Run | None:
        try:
            return self.ledger.runs.get(name.rpartition("-")[0])
        except TrueupError:
            return None  # An execution that somebody started by hand serves no run.
