"""Answers the HTTP API: starts runs, and shows them."""

from typing import Any

from trueup.handling import wiring
from trueup.handling.logged import logged


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Payload format 2.0 in, its answer out; see trueup.handling.api."""
    return wiring.api().handle(event)
