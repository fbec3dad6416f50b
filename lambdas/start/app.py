"""A request or a schedule becomes a run, once, and the run its execution."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.start import starting


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.start."""
    return starting().handle(event)
