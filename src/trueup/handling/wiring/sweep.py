"""For `sweep`."""

from __future__ import annotations

from functools import cache

from trueup.handling.sweep import Sweeping
from trueup.handling.wiring.close import closing
from trueup.handling.wiring.closing import settlement
from trueup.handling.wiring.gates import gating
from trueup.handling.wiring.parts import executions, ledger


@cache
def sweeping() -> Sweeping:
    """The handler of `sweep`."""
    return Sweeping(ledger(), settlement(), executions(), closing(), gating())
