"""`ask`: an execution waits at a gate; what wakes it is remembered, and people are told what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.errors import Refused
from trueup.ledger import Ledger
from trueup.model.gate import Gate
from trueup.model.ledger import Run
from trueup.model.states import RunStatus
from trueup.platform import Notices, Waiting

SHOWN = 8
"""So many characters of a hash tell it from others, and are what a person types."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Lets executions wait, and tells people."""

    ledger: Ledger
    waiting: Waiting
    notices: Notices

    def handle(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Remember the token of `{runId, generation, gate, sha256, token}`. Raises StoreUnavailable.

        Where there is nothing to wait for (it was decided a moment ago, the run was closed, a later
        generation waits), the execution is woken at once, and finds out by itself.
        """
        run = self.ledger.runs.get(event["runId"])
        asked = run.model_copy(update={"generation": event["generation"]})
        try:
            gate = self.ledger.gates.wait(asked, event["gate"], event["sha256"], event["token"])
        except Refused:
            return self._go_on(event["token"])
        # Read after the token was stored: whoever closes the run later finds the token, and wakes it.
        run = self.ledger.runs.get(run.run_id)
        if run.status is not RunStatus.RUNNING or run.generation != event["generation"]:
            return self._go_on(event["token"])
        self.notices.tell(*notice(run, gate))
        return {"did": "asked"}

    def _go_on(self, token: str) -> dict[str, str]:
        self.waiting.wake(token)
        return {"did": "woken"}


def notice(run: Run, gate: Gate) -> tuple[str, str]:
    """The title and the text that people get: what waits, until when, and which command to run."""
    lines = [
        f"Run {run.run_id} of {run.job} ({run.window}) waits at its gate {gate.name} for a person.",
        f"{run.requester} asked for it; it writes {run.target}.",
        f"Asked about: its {gate.kind.value}, SHA-256 {gate.sha256}.",
        f"Who may decide: {', '.join(gate.roles) or 'everybody but the requester'}.",
        f"Until: {gate.expires_at:%Y-%m-%d %H:%M:%S} UTC; after that the run ends.",
        "",
        "Look at it and decide:",
        f"  trueup gates {run.run_id}",
        f"  trueup approve {run.run_id} {gate.name}",
        f"  trueup reject {run.run_id} {gate.name} --reason WHY",
    ]
    return f"trueup: {run.job} waits for an approval", "\n".join(lines)
