"""Answers the HTTP API: starts runs, and shows them."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.api import api


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Payload format 2.0 in, its answer out; see trueup.handling.api."""
    return api().handle(event)
