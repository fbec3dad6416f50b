"""Pins code and partitions before anything is launched."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.plan import planning


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.plan."""
    return planning().handle(event)
