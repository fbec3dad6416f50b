"""Partitioned backfills and reconciliations on AWS that can be stopped, resumed and trusted."""

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
