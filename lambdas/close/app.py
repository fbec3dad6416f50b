"""Closes a run whose execution ended without ending it."""

from typing import Any

from trueup.handling import wiring
from trueup.handling.logged import logged


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.close."""
    return wiring.closing().handle(event)
