"""What tasks and functions measure, under one namespace, in CloudWatch's embedded metric format."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Protocol, TextIO

from trueup.clock import Clock

NAMESPACE = "trueup"

# Name -> (unit, what it says). docs/metrics.md lists these.
TASK_METRICS: Mapping[str, tuple[str, str]] = {
    "RecordsRead": ("Count", "records that a checkpoint added to what was read"),
    "RecordsWritten": ("Count", "rows that a checkpoint added to what was written"),
    "RecordsRejected": ("Count", "records rejected or refused by the sink, added by a checkpoint"),
    "CheckpointSeconds": ("Seconds", "how long a checkpoint's conditional write took"),
    "BatchSeconds": (
        "Seconds",
        "how long a batch took from transform to write, waits for the sink not counted",
    ),
    "Throttled": ("Count", "requests of a sink or source to slow down"),
    "PartitionsReported": ("Count", "partitions that the task reported, good or bad"),
}
# Name -> (unit, by which dimensions, what it says).
FUNCTION_METRICS: Mapping[str, tuple[str, str, str]] = {
    "RunsStarted": ("Count", "job", "runs that were created"),
    "RunsEnded": ("Count", "job, status", "runs whose end was written"),
    "RunSeconds": (
        "Seconds",
        "job, status",
        "how long a run was open when its end was written, waits for people not counted",
    ),
    "LaunchesEnded": (
        "Count",
        "job, phase, answer",
        "launches that were judged, by what follows: done, again, failed or closed",
    ),
    "GatesDecided": ("Count", "job, status", "words of people at gates"),
    "GateDecidedSeconds": ("Seconds", "job, status", "how old a gate was when somebody decided"),
    "GatesWaiting": ("Count", "none", "gates at which a run waits for a person, counted by each sweep"),
    "GateWaitingSeconds": (
        "Seconds",
        "none",
        "how long the oldest of them has been waiting; 0 where none does",
    ),
    "RunsUnsettled": ("Count", "none", "runs that a sweep looked after, since they have not ended"),
    "RunsNotLookedAfter": ("Count", "none", "of those, the ones that a fault kept it from"),
}
_UNITS = {name: told[0] for name, told in (*TASK_METRICS.items(), *FUNCTION_METRICS.items())}


class Metrics(Protocol):
    """Where measurements go."""

    def emit(self, values: Mapping[str, float], **dimensions: str) -> None:
        """Send some of TASK_METRICS or FUNCTION_METRICS at once, by name, under these dimensions too."""


class NoMetrics:
    """Measurements that nobody wants."""

    def emit(self, values: Mapping[str, float], **dimensions: str) -> None:
        """Nothing happens."""


UNMEASURED = NoMetrics()


class EmbeddedMetrics:
    """One JSON line per call on a stream that CloudWatch Logs reads; `dimensions` are on each of them."""

    def __init__(self, dimensions: Mapping[str, str], clock: Clock, stream: TextIO | None = None) -> None:
        self._dimensions = dict(dimensions)
        self._clock = clock
        self._stream = stream

    def emit(self, values: Mapping[str, float], **dimensions: str) -> None:
        """Write one line. Raises KeyError for a name that is not listed."""
        named = [{"Name": name, "Unit": _UNITS[name]} for name in values]
        known = self._dimensions | dimensions
        directive = {"Namespace": NAMESPACE, "Dimensions": [list(known)], "Metrics": named}
        at = int(self._clock.now().timestamp() * 1000)
        line = {"_aws": {"Timestamp": at, "CloudWatchMetrics": [directive]}, **known, **values}
        print(json.dumps(line), file=self._stream or sys.stdout, flush=True)
