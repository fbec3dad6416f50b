"""For `start`."""

from __future__ import annotations

from functools import cache

from trueup.handling.start import Starting
from trueup.handling.wiring.parts import executions, ledger
from trueup.handling.wiring.planning import jobs, starter


@cache
def starting() -> Starting:
    """The handler of `start`."""
    return Starting(ledger(), starter(), executions(), jobs())
