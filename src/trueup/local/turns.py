"""Calls of the stack's own functions take turns.

The emulator gives a process of its own to each call that finds no idle one. When a dozen tasks end together,
a dozen processes would import the same modules on the few cores of a laptop, and the last would be ready long
after the first could have answered them all.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from typing import Any

from trueup.local.stepfunctions import Answer, Calls


class TakingTurns:
    """Passes calls on; of each function whose name begins so, as many at once as there are cores."""

    def __init__(self, calls: Calls, prefix: str, cores: int | None = None) -> None:
        self._calls = calls
        self._prefix = prefix
        self._turns = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(cores or os.cpu_count() or 1)
        )

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        """Call an operation. Raises ServiceFailure."""
        name = str(parameters.get("FunctionName")).rpartition(":")[2]
        if (service, action) != ("lambda", "invoke") or not name.startswith(self._prefix):
            return await self._calls.call(service, action, parameters)
        async with self._turns[name]:
            return await self._calls.call(service, action, parameters)
