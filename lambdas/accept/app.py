"""Decides what the end of a launch means."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.accept import accepting


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.accept."""
    return accepting().handle(event)
