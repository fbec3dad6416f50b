"""Partitioned backfills and reconciliations on AWS that can be stopped, resumed and trusted."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it, without the time that importing typing takes

if TYPE_CHECKING:
    from trueup.jobs import (
        Backfill,
        Batch,
        Context,
        Outcome,
        Output,
        Partition,
        Range,
        RangeOutcome,
        Reconcile,
        Reject,
        Skip,
        Superseded,
        Throttled,
        Transient,
        Window,
    )

__all__ = [
    "Backfill",
    "Batch",
    "Context",
    "Outcome",
    "Output",
    "Partition",
    "Range",
    "RangeOutcome",
    "Reconcile",
    "Reject",
    "Skip",
    "Superseded",
    "Throttled",
    "Transient",
    "Window",
]


def __getattr__(name: str) -> object:
    """What a job's code imports, when it does: the command line must not wait for it to hear Ctrl-C."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trueup import jobs

    return getattr(jobs, name)
