"""Does for every run what others should have done and did not."""

from typing import Any

from trueup.handling.logged import logged
from trueup.handling.wiring.sweep import sweeping


@logged
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """JSON in, JSON out; see trueup.handling.sweep."""
    return sweeping().handle(event)
