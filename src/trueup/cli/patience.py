"""Asking again what may be asked twice, while the API does not answer or is asked by too many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from trueup.cli.output import duration, say
from trueup.errors import StoreUnavailable

T = TypeVar("T")

AT_ONCE = 10.0
"""Seconds of patience with what nothing was heard of yet: its address may be wrong."""
ON_THE_WAY = 300.0
"""Seconds of patience with an API that has answered before: the run goes on meanwhile."""
_QUIETLY = 3
"""So many failures are nobody's business; whoever waits longer is told why."""


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """What `ask` gives, for so many seconds at most; after the third failure it is told, once.

    Raises what `ask` raises, StoreUnavailable in the end.
    """
    import stamina

    # It tells of each attempt in the log, and without a handler that would be on standard error.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    again = stamina.retry_context(
        on=StoreUnavailable, attempts=None, timeout=seconds, wait_initial=0.5, wait_max=15.0
    )
    for attempt in again:
        with attempt:
            return _asked(ask, attempt.num, seconds)
    raise AssertionError("stamina gave up without raising")


def _asked(ask: Callable[[], T], number: int, seconds: float) -> T:
    try:
        return ask()
    except StoreUnavailable as error:
        if number == _QUIETLY:
            say(f"{error.what} trueup goes on asking, for {duration(seconds)} in all.", aside=True)
        raise
