"""Pins code and partitions before anything is launched."""

from typing import Any

from trueup.handling import wiring


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.plan."""
    return wiring.planning().handle(event)
