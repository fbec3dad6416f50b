"""Heartbeats that stop when the loop stops, and carry back what the run wants now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from trueup.clock import Clock
from trueup.errors import LostOwnership, StoreUnavailable
from trueup.ledger import Ledger
from trueup.model.ledger import Run, TaskItem
from trueup.worker.callback import Callback
from trueup.worker.stopping import Control

log = logging.getLogger("trueup.worker")


class Heart:
    """Beats for one registered task.

    `follow` hears of the run as it is now; `no_progress` is called, once, when the loop made none for the
    declared time.
    """

    def __init__(
        self,
        ledger: Ledger,
        run_id: str,
        task: TaskItem,
        control: Control,
        clock: Clock,
        *,
        no_progress_seconds: float,
        follow: Callable[[Run], None],
        no_progress: Callable[[str], None],
        callback: Callback,
        callback_seconds: float,
    ) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._task = task
        self._control = control
        self._clock = clock
        self._limit = no_progress_seconds
        self._follow = follow
        self._no_progress = no_progress
        self._callback = callback
        self._callback_seconds = callback_seconds
        self._started = clock.monotonic()
        self._told: float | None = None

    def beat(self) -> bool:
        """Beat once, and say whether there is any sense in beating again."""
        idle = self._clock.monotonic() - self._control.progressed_at
        if idle > self._limit:
            self._no_progress(f"progress: {idle:.0f} s without a checkpoint > {self._limit:.0f} s")
            return False
        self._tell()
        try:
            self._ledger.tasks.beat(self._run_id, self._now())
            self._listen(self._ledger.runs.get(self._run_id))
        except LostOwnership as lost:
            self._control.lost = lost.what
            return False
        except StoreUnavailable as gone:
            # The loop finds out by itself, at its next checkpoint: no progress recorded, no progress made.
            log.warning("heartbeat not written: %s", gone)
        return True

    def beat_last(self) -> None:
        """Leave the last figures behind; whether they are heard changes nothing for the task."""
        try:
            self._ledger.tasks.beat(self._run_id, self._now())
        except (LostOwnership, StoreUnavailable) as gone:
            log.info("the last heartbeat was not written: %s", gone)

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if self._told is None or now - self._told >= self._callback_seconds:
            self._told = now
            self._callback.beat()

    def _now(self) -> TaskItem:
        seconds = max(1.0, self._clock.monotonic() - self._started)
        return self._task.model_copy(
            update={
                "beat_at": self._clock.now(),
                "partition": self._control.partition,
                "waiting": self._control.waiting,
                "records_per_second": round(self._control.records / seconds, 1),
                "records": self._control.records,
                "reported": self._control.reported,
                "work_reported": round(self._control.work_reported, 3),
                "work_left": round(max(0.0, self._control.work_left), 3),
                "throttled": self._control.throttled,
            }
        )

    def _listen(self, run: Run) -> None:
        self._follow(run)
        self._control.run_status = run.status
        if run.generation != self._task.generation:
            self._control.lost = f"generation {run.generation}"


class BeatThread:
    """Beats every so many seconds beside the loop, until the block is left."""

    def __init__(self, heart: Heart, seconds: float) -> None:
        self._heart = heart
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._seconds) and self._beat():
            pass

    def _beat(self) -> bool:
        try:
            return self._heart.beat()
        except Exception:
            # A bug in a beat must not end the watch over the loop, which goes on and is believed to be alive.
            log.exception("a heartbeat failed")
            return True
