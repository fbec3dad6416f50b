"""Waiting for the first of two, and leaving nothing behind on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


def soon(awaited: Awaitable[T]) -> asyncio.Task[T]:
    """Begin to await something."""

    async def wait() -> T:
        return await awaited

    return asyncio.create_task(wait())


async def first(wanted: asyncio.Task[Any], other: asyncio.Task[Any]) -> None:
    """Return when either has ended; the other one is cancelled where it is not the wanted one."""
    try:
        await asyncio.wait([wanted, other], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(other)


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel, and wait until they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio complains that nobody did
