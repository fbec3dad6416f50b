"""A stack with tasks at work, until somebody ends it: run as a module by `test_nothing_is_left.py`."""

from __future__ import annotations

import sys
import threading

from trueup.local.stack import Options, stack

from .watching import JOBS, start, wait_until


def main() -> None:
    """Say `at work` when two tasks are, and wait."""
    with stack(Options(jobs=JOBS)) as up:
        run_id = start(up, "steps", keys=["a", "b"], params={"steps": 100_000, "seconds": 0.05})
        wait_until(lambda: 2 == len(list(up.ledger.tasks.of(run_id))), 120)
        sys.stdout.write("at work\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
