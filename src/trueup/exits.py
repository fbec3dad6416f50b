"""Exit codes of a task: public, read by `accept` and by people."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a task says by leaving. They inform; nothing is lost where one is missing."""

    DONE = 0  # the slice is finished and its result stored, good or bad
    BAD_INPUT = 64  # the input is wrong: starting again will not help (EX_USAGE)
    FAULT = 70  # a bug, or no progress (EX_SOFTWARE)
    INTERRUPTED = 75  # progress saved, work remains (EX_TEMPFAIL)


TASK_ENDED = "TaskEnded"
"""The error of a callback by which a task says that it leaves early; the cause says with which code."""
