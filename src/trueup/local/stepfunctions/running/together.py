"""Coroutines side by side, of which the first failure ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from trueup.local.stepfunctions.running.visit import Strand, Visit

T = TypeVar("T")


class Failed(Exception):
    """One of several failed: which, and with what."""

    def __init__(self, index: int, error: BaseException) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error


def branches_again(visit: Visit) -> Sequence[Strand | None]:
    """The paths that a redriven Parallel or inline Map goes on with; none where it begins afresh.

    Where all had come to their end, what they came to was too much, and all run again
    (aws-facts section 1.4: States.DataLimitExceeded).
    """
    again = visit.take_again()
    if again is None or all(one is not None and one.output is not None for one in again.inner):
        return ()
    return again.inner


async def run_together(work: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """All results in their order. Raises Failed for the first failure, after the others have been cut off."""
    tasks = [asyncio.ensure_future(each) for each in work]
    if not tasks:
        return []
    order: list[asyncio.Future[T]] = []
    for task in tasks:
        task.add_done_callback(order.append)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = next((task for task in order if not task.cancelled() and task.exception()), None)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failed is not None:
        error = failed.exception()
        assert error is not None
        raise Failed(next(index for index, task in enumerate(tasks) if task is failed), error) from error
    return [task.result() for task in tasks]
