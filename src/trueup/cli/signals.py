"""What long commands do when they are told to end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def leave_on_sigterm() -> None:
    """Make SIGTERM an orderly end, as Ctrl-C is: by itself it would end us where we stand."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM is an orderly end while something has to be cleaned up, and what it was before afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    leave_on_sigterm()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
