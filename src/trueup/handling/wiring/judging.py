"""What judges the ends of launches."""

from __future__ import annotations

from trueup.accepting import Acceptance
from trueup.clock import SystemClock
from trueup.handling.wiring.parts import artifacts, ecs, ledger


def acceptance() -> Acceptance:
    """Whoever judges launches."""
    return Acceptance(ledger(), artifacts(), ecs(), SystemClock())
