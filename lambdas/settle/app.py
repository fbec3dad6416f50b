"""Opens a phase, and says after each fan-out what comes next."""

from typing import Any

from trueup.handling import wiring
from trueup.handling.logged import logged


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.settle."""
    return wiring.settling().handle(event)
