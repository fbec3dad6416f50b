"""`sweep`: every five minutes, for every run on the list, what others should have done and did not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.errors import TrueupError
from trueup.gating import Gating
from trueup.handling.close import Closing
from trueup.handling.start import start_execution
from trueup.ledger import Ledger
from trueup.logs import about
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

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Look after every run on the list; `did` says what was found of each, `failed` what went wrong.

        One run that cannot be looked after keeps none of the others from it. Raises StoreUnavailable where
        the list itself cannot be read.
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
        return {"did": did, "failed": failed}

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
