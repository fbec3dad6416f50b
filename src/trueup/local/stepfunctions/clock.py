"""Time for machines: the wall clock, with waits that can be shortened.

A scale of 0.1 makes every wait, retry delay, timeout and heartbeat last a tenth of what it says.
All by the same factor, so that which of two comes first does not change; timestamps stay those of the wall.
Where tasks do real work in real time, `timeouts` keeps limits apart from waits: `Clock(0.01, timeouts=1)`.
"""

from __future__ import annotations

import asyncio
import time


class Clock:
    """The time that machines see. On an event loop whose time is virtual, `epoch` makes it so altogether."""

    def __init__(
        self, scale: float = 1.0, *, timeouts: float | None = None, epoch: float | None = None
    ) -> None:
        self.scale = scale
        self.timeouts = scale if timeouts is None else timeouts
        self._epoch = epoch

    def now(self) -> float:
        """Seconds since 1970, in whole milliseconds: finer times AWS does not tell."""
        epoch = self._epoch
        seconds = time.time() if epoch is None else epoch + asyncio.get_running_loop().time()
        # As round(seconds, 3), in a third of its time: every event of every execution asks.
        return int(seconds * 1000 + 0.5) / 1000

    async def sleep(self, seconds: float) -> None:
        """Wait that many of the machine's seconds."""
        await asyncio.sleep(max(0.0, seconds) * self.scale)

    def deadline(self, seconds: float) -> float:
        """The event loop's time at which a limit that starts now is reached."""
        return asyncio.get_running_loop().time() + seconds * self.timeouts
