"""The warm process and its tasks go when the test process does, whatever way it goes; so do frozen ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from .driving import Stack
from .warm import FORKS

SECONDS = 20.0
# Stands in for a test process: starts the warm process and two tasks that freeze at once, and waits.
HOLDER = """
import json, subprocess, sys
forks = subprocess.Popen([sys.executable, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
freeze = {"point": "begun", "nth": 1, "signal": "SIGSTOP"}
for name in ("one", "two"):
    forks.stdin.write(json.dumps({"task": name, "stop": freeze}).encode() + b"\\n")
forks.stdin.flush()
events = [json.loads(forks.stdout.readline()) for _ in range(4)]
tasks = [event["pid"] for event in events if "pid" in event]
print(json.dumps({"forks": forks.pid, "tasks": tasks}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", ["holder", "forks"])
def test_nothing_is_left_of_a_test_that_was_killed(stack: Stack, killed: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(FORKS)],
        env=dict(stack.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        pids = json.loads(holder.stdout.readline())
        tasks = [psutil.Process(pid) for pid in pids["tasks"]]
        assert [psutil.STATUS_STOPPED] * 2 == [task.status() for task in tasks]
        os.kill(holder.pid if killed == "holder" else pids["forks"], signal.SIGKILL)
        assert [] == psutil.wait_procs(tasks, timeout=SECONDS)[1]
        if killed == "holder":
            assert [] == psutil.wait_procs(_still_known(pids["forks"]), timeout=SECONDS)[1]


def _still_known(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return []
