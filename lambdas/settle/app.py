"""Opens a phase, and says after each fan-out what comes next."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.settle import settling


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.settle."""
    return settling().handle(event)
