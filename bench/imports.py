"""How long a worker's process takes to import what it needs, each time in a fresh interpreter.

Wall time from starting the interpreter to its end, with nothing taken off: that is what a task waits for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.figures import ROOT, Figure, middle, rounded, seconds

STARTS = 9
MOST_SECONDS = 0.4

WORKER = "import trueup.worker.main, trueup.ledger.dynamo, trueup.artifacts.s3"
# What a container that speaks to AWS would import anyway.
REFERENCE = "import boto3"


def measure(starts: int = STARTS) -> Iterator[Figure]:
    """The medians of so many starts of each, in turns; `starts` is odd."""
    pairs = [(start(WORKER), start(REFERENCE)) for _ in range(starts + 1)][
        1:
    ]  # the first warms the page cache
    worker, reference = (rounded(middle(times)) for times in zip(*pairs, strict=True))
    yield Figure(
        "import",
        worker,
        "s",
        "import boto3, alone",
        reference,
        f"at most {MOST_SECONDS:g} s",
        worker <= MOST_SECONDS,
    )


def start(code: str) -> float:
    """How long an interpreter takes that runs this."""
    return seconds(partial(subprocess.run, [sys.executable, "-c", code], check=True, cwd=ROOT))
