"""For `settle`."""

from __future__ import annotations

from functools import cache

from trueup.artifacts.s3 import connect_s3, list_sizes
from trueup.artifacts.store import place
from trueup.handling.settle import Settling
from trueup.handling.wiring.closing import settlement
from trueup.handling.wiring.gates import gating
from trueup.handling.wiring.parts import artifacts, ledger
from trueup.handling.wiring.planning import starter, tasks


@cache
def settling() -> Settling:
    """The handler of `settle`."""
    return Settling(ledger(), artifacts(), settlement(), starter(), tasks(), gating(), _arrived)


def _arrived(location: str) -> bool:
    key = place(location)[1]
    return any(found == key for found, _ in list_sizes(connect_s3(), location))
