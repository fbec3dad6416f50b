"""What a task measures, under one namespace, in CloudWatch's embedded metric format."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Protocol, TextIO

from trueup.clock import Clock

NAMESPACE = "trueup"

# Name -> (unit, what it says). docs/metrics.md lists these.
METRICS: Mapping[str, tuple[str, str]] = {
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


class Metrics(Protocol):
    """Where measurements go."""

    def emit(self, values: Mapping[str, float]) -> None:
        """Send some of METRICS at once, by name."""


class NoMetrics:
    """Measurements that nobody wants."""

    def emit(self, values: Mapping[str, float]) -> None:
        """Nothing happens."""


class EmbeddedMetrics:
    """One JSON line per call on a stream that CloudWatch Logs reads; `dimensions` are on each of them."""

    def __init__(self, dimensions: Mapping[str, str], clock: Clock, stream: TextIO | None = None) -> None:
        self._dimensions = dict(dimensions)
        self._clock = clock
        self._stream = stream or sys.stdout

    def emit(self, values: Mapping[str, float]) -> None:
        """Write one line. Raises KeyError for a name that METRICS does not list."""
        named = [{"Name": name, "Unit": METRICS[name][0]} for name in values]
        directive = {"Namespace": NAMESPACE, "Dimensions": [list(self._dimensions)], "Metrics": named}
        at = int(self._clock.now().timestamp() * 1000)
        line = {"_aws": {"Timestamp": at, "CloudWatchMetrics": [directive]}, **self._dimensions, **values}
        print(json.dumps(line), file=self._stream, flush=True)
