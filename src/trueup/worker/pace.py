"""How fast, and how much at once: the run's rate shared, less where the sink asks, and batches that fit."""

from __future__ import annotations

from trueup.clock import Clock
from trueup.ledger import Ledger
from trueup.ledger.rates import WINDOW_SECONDS
from trueup.model.job import BatchSettings
from trueup.model.ledger import Run
from trueup.worker.stopping import Stopping

LEAST_SHARE = 0.05
RECOVERY = 0.1


class Pace:
    """Reserves records from the run's rate before they are worked.

    A sink that throttles halves this task's own share of time; each quiet batch gives a tenth back (AIMD).
    """

    def __init__(self, ledger: Ledger, run: Run, stopping: Stopping, clock: Clock) -> None:
        self._ledger = ledger
        self._stopping = stopping
        self._clock = clock
        self._run = run
        self._share = 1.0
        self._worked = 0.0
        self._owed = 0
        self._quiet = True

    def follow(self, run: Run) -> None:
        """Take over the limits of the run as it is now."""
        self._run = run

    def slow_down(self) -> None:
        """The sink asked: work half as much of the time, and never less than a twentieth."""
        self._quiet = False
        self._share = max(LEAST_SHARE, self._share / 2)

    @property
    def limit(self) -> float | None:
        """Records a second of the whole run; None where it may go as fast as it can."""
        return self._run.limits.records_per_second

    @property
    def share(self) -> float:
        """The part of the time that is worked, 0.05 to 1."""
        return self._share

    def wait(self, records: int) -> None:
        """Return when this many records, and those that are owed, may be worked.

        Raises Stopped, StoreUnavailable.
        """
        if self._share < 1.0:
            self._stopping.wait(self._worked * (1 / self._share - 1), "the sink asked to slow down")
        self._owed += records
        while self._owed and (limit := self.limit):
            self._reserve_some(limit)
        self._owed = 0

    def worked(self, seconds: float, *, unannounced: int = 0) -> None:
        """A batch went through.

        `unannounced` records, of which nobody knew before, are reserved with the next one.
        """
        self._worked = seconds
        self._owed = unannounced
        if self._quiet:
            self._share = min(1.0, self._share + RECOVERY)
        self._quiet = True

    def _reserve_some(self, limit: float) -> None:
        # A batch may be larger than a window: reserved at once it would be let through whole, above the rate.
        some = min(self._owed, max(1, int(limit * WINDOW_SECONDS)))
        now = self._clock.now().timestamp()
        seconds = self._ledger.rates.reserve(self._run.run_id, some, limit, now)
        if seconds > 0:
            self._stopping.wait(seconds, f"the run's rate of {limit:g} records a second")
        else:
            self._owed -= some


class BatchSize:
    """How many records the next batch should have, to take the seconds that the job file asks for."""

    def __init__(self, settings: BatchSettings, pace: Pace) -> None:
        self._settings = settings
        self._pace = pace
        self._size = settings.size
        self._warned = False

    def __call__(self) -> int:
        """The size wanted now: at most the job file's and what the run's rate lets through, at least 1."""
        limit = self._pace.limit
        return (
            self._size
            if limit is None
            else max(1, min(self._size, int(limit * self._settings.target_seconds)))
        )

    def took(self, records: int, seconds: float) -> str | None:
        """Learn from a batch. Gives a warning, once, where one took longer than a batch may."""
        target, most = self._settings.target_seconds, self._settings.maximum_seconds
        if seconds > target and records > 1:
            self._size = max(1, min(self._size, int(records * target / seconds)))
        else:
            self._size = min(self._settings.size, self._size + max(1, self._settings.size // 10))
        if seconds <= most or self._warned:
            return None
        self._warned = True
        return (
            f"a batch of {records} records took {seconds:.0f} s, "
            f"longer than batch.maximumSeconds ({most:g}): make batches smaller, "
            "or tasks are killed half-way through one when they are asked to stop"
        )
