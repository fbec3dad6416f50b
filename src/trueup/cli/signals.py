"""What long commands do when they are told to end."""

from __future__ import annotations

import signal
import sys


def leave_on_sigterm() -> None:
    """Make SIGTERM an orderly end, as Ctrl-C is: by itself it would end us where we stand."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
