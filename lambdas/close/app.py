"""Closes a run whose execution ended without ending it."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.close import closing


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.close."""
    return closing().handle(event)
