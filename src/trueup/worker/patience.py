"""Trying again inside the task: for a side that asks to slow down, and for errors that pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from trueup.errors import Throttled, Transient
from trueup.exits import Exit
from trueup.model.base import cut
from trueup.model.result import LONGEST_KIND
from trueup.worker.stopping import Stop, Stopped, Stopping
from trueup.worker.telling import told

T = TypeVar("T")

THROTTLE_ATTEMPTS = 8
TRANSIENT_ATTEMPTS = 5
LONGEST_WAIT = 30.0
_LONGEST_TEXT = 500  # of an author's error, in a reason to stop or to wait


class Patience:
    """Bounded retries with full jitter.

    Exhausted by throttling, the task is interrupted, which costs nothing; exhausted by passing errors, it
    leaves with a fault. `on_throttle` hears of each request to slow down.
    """

    def __init__(self, stopping: Stopping, rng: random.Random, on_throttle: Callable[[], None]) -> None:
        self._stopping = stopping
        self._rng = rng
        self._on_throttle = on_throttle

    def call(self, what: str, attempt: Callable[[], T]) -> T:
        """What `attempt` returns.

        Raises Stopped when patience or time is up, and what else `attempt` raises.
        """
        throttled = transient = 0
        while True:
            try:
                return attempt()
            except Throttled as asked:
                throttled += 1
                self._on_throttle()
                self._wait(what, asked, throttled, THROTTLE_ATTEMPTS, asked.retry_after)
            except Transient as passing:
                transient += 1
                self._wait(what, passing, transient, TRANSIENT_ATTEMPTS, 0.0)

    def _wait(
        self, what: str, error: Throttled | Transient, attempts: int, most: int, at_least: float
    ) -> None:
        kind, text = cut(type(error).__name__.lower(), LONGEST_KIND), told(error, _LONGEST_TEXT)
        if attempts >= most:
            code = Exit.INTERRUPTED if isinstance(error, Throttled) else Exit.FAULT
            raise Stopped(
                Stop(kind, f"{attempts} attempts of {what}", ">=", f"{most} ({text})", code)
            ) from error
        backoff = self._rng.uniform(0, min(LONGEST_WAIT, 0.5 * 2**attempts))
        parked = isinstance(error, Throttled)
        self._stopping.wait(max(at_least, backoff), f"{kind}: {text}", parked=parked)
