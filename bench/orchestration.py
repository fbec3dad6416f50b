"""How long a run takes that has nothing to do: a year of no-op partitions, each with its checkpoint, contract
and acceptance, through the machines on a stack that is up. Prefect does as many no-op tasks beside it, in one
process and without durable checkpoints.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.figures import ROOT, Figure, rounded
from trueup.local.stack import Options, Stack, stack
from trueup.model.states import RUN_ENDS, PartitionStatus, RunStatus

PARTITIONS = 365
LEAST_TASKS = 16
MOST_SECONDS = 20
JOBS = Path(__file__).with_name("jobs")
PREFECT = ROOT / ".venv-prefect" / "bin" / "python"


def measure() -> Iterator[Figure]:
    """One run of each; raises RuntimeError where one does not do what it says."""
    with stack(Options(jobs=JOBS)) as up:
        ours = rounded(year(up))
    yield Figure(
        "orchestration",
        ours,
        "s",
        f"Prefect, {PARTITIONS} no-op tasks in process",
        rounded(prefect()),
        f"at most {MOST_SECONDS} s",
        ours <= MOST_SECONDS,
    )


def year(up: Stack) -> float:
    """The seconds from asking for a run to its end."""
    request = {"job": "nothing", "requestId": uuid.uuid4().hex, "requester": "bench"}
    started = time.perf_counter()
    run_id = up.invoke("start", {**request, "start": "2013-01-01", "end": "2014-01-01"})["runId"]
    while (run := up.ledger.runs.get(run_id)).status not in RUN_ENDS:
        time.sleep(0.1)
    took = time.perf_counter() - started
    accepted = up.ledger.verdicts.counts(run_id).tally(PartitionStatus.ACCEPTED).partitions
    if (run.status, accepted) != (RunStatus.SUCCEEDED, PARTITIONS) or run.launches < LEAST_TASKS:
        raise RuntimeError(f"{run_id} ended {run.status}: {accepted} accepted, {run.launches} launches")
    return took


def prefect() -> float:
    """The seconds that Prefect says it took."""
    if not PREFECT.exists():
        raise RuntimeError(f"{PREFECT} is not there: `make bench` makes it")
    with tempfile.TemporaryDirectory(prefix="bench-prefect-", ignore_cleanup_errors=True) as home:
        quiet = {"PREFECT_HOME": home, "PREFECT_LOGGING_LEVEL": "CRITICAL", "DO_NOT_TRACK": "1"}
        done = subprocess.run(
            [PREFECT, Path(__file__).with_name("prefect_tasks.py"), str(PARTITIONS)],
            env={**os.environ, **quiet, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"},
            capture_output=True,
            text=True,
            check=False,
        )
    # Its server may complain about being shut down; what counts is the flow.
    with suppress(IndexError, ValueError):
        if done.returncode == 0:
            return float(done.stdout.split()[-1])
    raise RuntimeError(f"Prefect ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
