"""Does for every run what others should have done and did not."""

from typing import Any

from trueup.handling import wiring
from trueup.handling.logged import logged


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.sweep."""
    return wiring.sweeping().handle(event)
