"""Lets an execution wait at a gate, and tells people what waits."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.ask import asking


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.ask."""
    return asking().handle(event)
