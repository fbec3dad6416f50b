"""`sweep`: every five minutes, for every run on the list, what others should have done and did not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.clock import Clock
from trueup.errors import TrueupError
from trueup.gating import Gating
from trueup.handling.close import Closing
from trueup.handling.start import start_execution
from trueup.ledger import Ledger
from trueup.logs import about
from trueup.metrics import UNMEASURED, Metrics
from trueup.model.states import RunStatus
from trueup.platform import OVER, Machines
from trueup.settling import Settlement

log = logging.getLogger("trueup.sweep")


@dataclass(frozen=True, slots=True)
class Sweeping:
    """Starts what is missing, closes what was missed or breaks an abort rule, ends what is proved."""

    ledger: Ledger
    settlement: Settlement
    executions: Machines
    closing: Closing
    gating: Gating
    clock: Clock
    metrics: Metrics = UNMEASURED

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Look after every run on the list; `did` says what was found of each, `failed` what went wrong.

        One run that cannot be looked after, for whatever reason, keeps none of the others from it. Raises
        StoreUnavailable where the list itself cannot be read.
        """
        did: dict[str, str] = {}
        failed: dict[str, str] = {}
        for run_id in self.ledger.runs.unsettled():
            with about(run=run_id):
                try:
                    did[run_id] = self._look_after(run_id)
                except TrueupError as error:
                    log.warning("not looked after: %s", error)
                    failed[run_id] = str(error)
                except Exception as fault:  # An item that cannot be read, or a bug that one run finds.
                    log.exception("not looked after")
                    failed[run_id] = f"{type(fault).__name__}: {fault}"
        self._measure(len(did) + len(failed), len(failed))
        return {"did": did, "failed": failed}

    def _measure(self, runs: int, failed: int) -> None:
        """What nobody would count if no sweep did; of gates, those of which nothing is decided."""
        now = self.clock.now()
        waits = [(now - gate.opened_at).total_seconds() for gate in self.ledger.gates.waiting()]
        self.metrics.emit(
            {
                "RunsUnsettled": runs,
                "RunsNotLookedAfter": failed,
                "GatesWaiting": len(waits),
                "GateWaitingSeconds": max([0.0, *waits]),
            }
        )

    def _look_after(self, run_id: str) -> str:
        run = self.ledger.runs.get(run_id)
        self.gating.wake_all(run)
        if run.status is not RunStatus.RUNNING:
            return self.settlement.close(run_id).value
        status = self.executions[run.kind].status(run.execution) if run.execution else "none"
        if status is None:
            start_execution(run, self.executions)
            return "started"
        if status in OVER:
            return self.closing.close(run, f"its execution {run.execution} is {status}").value
        if self.settlement.ask_abort_rules(run).status is not RunStatus.RUNNING:
            return self.settlement.close(run_id).value
        return "running"
