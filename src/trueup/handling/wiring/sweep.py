"""For `sweep`."""

from __future__ import annotations

from functools import cache

from trueup.clock import SystemClock
from trueup.handling.sweep import Sweeping
from trueup.handling.wiring.close import closing
from trueup.handling.wiring.closing import settlement
from trueup.handling.wiring.gates import gating
from trueup.handling.wiring.parts import executions, ledger, metrics


@cache
def sweeping() -> Sweeping:
    """The handler of `sweep`."""
    clock = SystemClock()
    return Sweeping(ledger(), settlement(), executions(), closing(), gating(), clock, metrics())
