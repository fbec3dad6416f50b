"""Does for every run what others should have done and did not."""

from typing import Any

from trueup.handling import wiring


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.sweep."""
    return wiring.sweeping().handle(event)
