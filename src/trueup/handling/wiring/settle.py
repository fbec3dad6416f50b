"""For `settle`."""

from __future__ import annotations

from functools import cache

from trueup.artifacts.s3 import connect_s3, list_sizes
from trueup.artifacts.store import place
from trueup.handling.settle import Settling
from trueup.handling.verify import Verifying
from trueup.handling.wiring.closing import settlement
from trueup.handling.wiring.gates import gating
from trueup.handling.wiring.parts import artifacts, executions, ledger
from trueup.handling.wiring.planning import jobs, starter, tasks


@cache
def settling() -> Settling:
    """The handler of `settle`."""
    verifying = Verifying(ledger(), artifacts(), starter(), executions(), jobs)
    return Settling(ledger(), artifacts(), settlement(), starter(), tasks(), gating(), verifying, _arrived)


def _arrived(location: str) -> bool:
    key = place(location)[1]
    return any(found == key for found, _ in list_sizes(connect_s3(), location))
