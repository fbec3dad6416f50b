"""How the command line exits. Scripts and schedulers read these numbers; they do not change."""

from __future__ import annotations

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


def of_run(status: str, *, at_gate: bool = False) -> int:
    """How to exit for a run that stands so; one that goes on is no failure, unless it waits at a gate."""
    return WAITS if at_gate else _OF_RUN.get(status, DONE)
