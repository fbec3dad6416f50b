"""What reads gates, and wakes what waits at them."""

from __future__ import annotations

from functools import cache

from trueup.aws import connect
from trueup.aws.people import TaskTokens
from trueup.clock import SystemClock
from trueup.gating import Gating
from trueup.handling.wiring.parts import artifacts, ledger


def gating() -> Gating:
    """Whoever reads and wakes gates."""
    return Gating(ledger(), artifacts(), SystemClock(), waiting())


@cache
def waiting() -> TaskTokens:
    """The executions that wait for a person."""
    return TaskTokens(connect("stepfunctions"))
