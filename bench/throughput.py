"""A million small records through the worker's loop, beside the same hooks called in a plain loop.

`python -m bench.throughput RECORDS` works so many in a process of its own and prints its peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.figures import MIB, Figure, in_own_process, peak_bytes
from trueup import Backfill, Batch, Context, Outcome, Partition
from trueup.clock import SystemClock
from trueup.model.job import JobFile
from trueup.testing import LocalRun
from trueup.worker.tools import CHECKPOINT_SECONDS

RECORDS = 1_000_000
ROUNDS = 5
BATCH = 1_000
LEAST_SHARE = 0.7
# Both sides take turns many times a round, so that what else the machine does meets both alike.
TURNS = 20

FIELDS = ("id", "day", "carrier", "origin", "delay")
PART = Partition(partition_id="item=all")
JOB_FILE = JobFile.model_validate(
    {
        "name": "throughput",
        "class": "bench.throughput:Delays",
        "partitions": {"by": "list", "key": "item", "items": ["all"]},
        "target": {"name": "nowhere", "guard": "none"},
        "batch": {"size": BATCH},
        "limits": {"maxConcurrency": 1},
    }
)


class Delays(Backfill):
    """Builds a dict from a line of text for each record and a smaller one from that, and counts its rows."""

    records = RECORDS
    lines = tuple(f"{n},2013-01-05,UA,EWR,{n % 90}" for n in range(BATCH))

    def read(self, part: Partition, after: str | None) -> Iterator[Batch]:
        """The same lines again and again: text that had to be fetched or made first would hide the loop."""
        for low in range(int(after[3:]) if after else 0, self.records, BATCH):
            lines = self.lines[: self.records - low]
            rows = [dict(zip(FIELDS, line.split(","), strict=True)) for line in lines]
            yield Batch(rows, f"v1:{low + len(rows)}")

    def transform(self, record: dict[str, str]) -> dict[str, Any]:
        """One small dict for another."""
        return {"flight": record["carrier"] + record["id"], "delay": int(record["delay"])}

    def write(self, rows: Any, ctx: Context | None) -> Outcome:
        """A sink that takes no time."""
        return Outcome(written=len(rows))


@dataclass(frozen=True, slots=True)
class Round:
    """The records a second of both sides in one round."""

    worker: float
    loop: float

    @property
    def share(self) -> float:
        """How much of the plain loop's speed the worker keeps."""
        return self.worker / self.loop


def measure(records: int = RECORDS, rounds: int = ROUNDS) -> Iterator[Figure]:
    """Speed and memory of the loop. `rounds` is odd."""
    job = type("Job", (Delays,), {"records": records})
    yield speed(sorted((play(job, first=n % 2) for n in range(rounds)), key=lambda one: one.share))
    yield memory(records)


def speed(rounds: list[Round]) -> Figure:
    """The round of the median share, which so is the quotient of the two figures shown."""
    median = rounds[len(rounds) // 2]
    return Figure(
        "throughput",
        round(median.worker),
        "records/s",
        "write(combine([transform(r) for r in batch])) over the same read",
        round(median.loop),
        f"at least {LEAST_SHARE:.0%} of it",
        median.share >= LEAST_SHARE,
    )


def memory(records: int) -> Figure:
    """The peak of a whole run, beside that of a tenth of it."""
    few, all_ = (in_own_process("throughput", number)["peak"] / MIB for number in (records // 10, records))
    most = few + max(few / 10, 8)
    return Figure(
        "throughput memory",
        round(all_, 1),
        "MiB",
        f"peak of a run of {records // 10:,} records instead of {records:,}",
        round(few, 1),
        "10 % or 8 MiB above it",
        all_ <= most,
    )


def play(job: type[Delays], first: int = 0) -> Round:
    """One round: both sides work all records, in turns; `first` 1 lets the plain loop begin."""
    sides = [_Side(_worked(job)), _Side(_looped(job))]
    pauses = max(1, job.records // BATCH // TURNS)
    while any(side.left for side in sides):
        for side in (sides[first], sides[1 - first]):
            side.go(pauses)
    worker, loop = (job.records / side.seconds for side in sides)
    return Round(worker, loop)


class _Side:
    """Work that can be paused, and the seconds that it took so far."""

    def __init__(self, work: Iterator[object]) -> None:
        self._work = work
        self.left = True
        self.seconds = 0.0

    def go(self, batches: int) -> None:
        """So many batches more."""
        started = time.perf_counter()
        while self.left and batches > 0:
            self.left = next(self._work, None) is not None
            batches -= 1
        self.seconds += time.perf_counter() - started


def _worked(job: type[Delays]) -> Iterator[object]:
    """From planning to accepting, pausing after each batch."""
    run = LocalRun(job, JOB_FILE, clock=SystemClock(), checkpoint_seconds=CHECKPOINT_SECONDS)
    while (step := run.step()) is not None:
        if step.name == "written":
            yield step
    if (run.accepted, run.records.written) != (1, job.records):
        raise RuntimeError(f"the run accepted {run.accepted} partitions and wrote {run.records.written} rows")


def _looped(job: type[Delays]) -> Iterator[object]:
    """What an author would write without trueup."""
    hooks = job()
    for batch in hooks.read(PART, None):
        yield hooks.write(hooks.combine([hooks.transform(r) for r in batch.records]), None)


def main(records: int) -> None:
    """Work so many records and print the peak."""
    for _ in _worked(type("Job", (Delays,), {"records": records})):
        pass
    print(json.dumps({"peak": peak_bytes()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
