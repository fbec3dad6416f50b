"""What settles phases and closes runs, with their reports."""

from __future__ import annotations

from trueup.handling.wiring.judging import acceptance
from trueup.handling.wiring.parts import artifacts, ledger, metrics
from trueup.reporting import Reports
from trueup.reporting.comparison import Comparisons
from trueup.settling import Settlement


def settlement() -> Settlement:
    """Whoever settles phases, and has reports made of runs that are over."""
    made = Comparisons(ledger(), artifacts())
    report, measured = reports().leave, metrics()
    return Settlement(ledger(), artifacts(), acceptance(), report, made.verdict, made.is_through, measured)


def reports() -> Reports:
    """The reports of runs."""
    return Reports(ledger(), artifacts())
