"""How the command line exits. Scripts and schedulers read these numbers; they do not change."""

from __future__ import annotations

from trueup.errors import NotFound, TrueupError, UsageError

DONE = 0
FAILED = 1
"""The run failed, drift was found, or the command could not do what it was asked."""
USAGE = 2
"""The input is wrong; nothing was created."""
WAITS = 3
"""The run waits for a person."""
INCOMPLETE = 4
"""Not everything was done or could be compared."""
INTERRUPTED = 130
"""Ctrl-C."""

_OF_RUN = {"FAILED": FAILED, "ABORTED": FAILED, "PAUSED": WAITS, "CANCELLED": INCOMPLETE}
_OF_VERDICT = {
    "CLEAN": DONE,
    "REPAIRED": DONE,
    "UNDONE": DONE,
    "DRIFT": FAILED,
    "REAPPEARED": FAILED,
    "UNREPAIRED": FAILED,
    "PARTIAL": INCOMPLETE,
    "INCOMPLETE": INCOMPLETE,
    "ERROR": INCOMPLETE,
}


def of_error(error: TrueupError) -> int:
    """How to exit for an error."""
    return USAGE if isinstance(error, UsageError | NotFound) else FAILED


def of_run(status: str, verdict: str | None = None, *, at_gate: bool = False) -> int:
    """How to exit for a run that stands so; one that goes on is no failure, unless it waits at a gate.

    What a reconciliation came to says more than that its run failed or not.
    """
    if at_gate:
        return WAITS
    if verdict is not None and status != "PAUSED":
        return of_verdict(verdict)
    return _OF_RUN.get(status, DONE)


def of_verdict(verdict: str) -> int:
    """How to exit for what a reconciliation came to."""
    return _OF_VERDICT.get(verdict, INCOMPLETE)
