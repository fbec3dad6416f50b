"""For `accept`."""

from __future__ import annotations

from functools import cache

from trueup.handling.accept import Accepting
from trueup.handling.wiring.judging import acceptance
from trueup.handling.wiring.parts import artifacts, ecs, ledger, metrics


@cache
def accepting() -> Accepting:
    """The handler of `accept`."""
    return Accepting(ledger(), artifacts(), acceptance(), ecs(), metrics())
