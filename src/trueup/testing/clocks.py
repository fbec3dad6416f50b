"""A clock that moves only when it is told to."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Time that passes by `sleep` and `pass_`, at once and for everyone who holds this clock."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The instant."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.pass_(seconds)

    def pass_(self, seconds: float) -> None:
        """Let that many seconds pass."""
        with self._lock:
            self._passed += seconds
