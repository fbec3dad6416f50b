"""For `close`."""

from __future__ import annotations

from functools import cache

from trueup.handling.close import Closing
from trueup.handling.wiring.closing import settlement
from trueup.handling.wiring.parts import executions, ledger


@cache
def closing() -> Closing:
    """The handler of `close`."""
    return Closing(ledger(), settlement(), executions())
