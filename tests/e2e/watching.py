"""How tests of this folder start runs and wait for what they do, and look for what commands left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from trueup.local.stack import Stack
from trueup.model.ledger import Run
from trueup.model.states import RUN_ENDS

JOBS = Path(__file__).with_name("jobs")
TRUEUP = Path(sys.executable).with_name("trueup")
SECONDS = 60.0


def wait_until(true: Callable[[], object], seconds: float = SECONDS) -> None:
    """Return as soon as it is true; fails where it takes too long."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def start(up: Stack, job: str, **request: Any) -> str:
    """Start a run by the function `start`, and give its id."""
    asked = {"job": job, "requestId": uuid.uuid4().hex, "requester": "test", **request}
    answer = up.invoke("start", asked)
    assert "runId" in answer, answer
    return str(answer["runId"])


def ended(up: Stack, run_id: str, seconds: float = SECONDS) -> Run:
    """The run, once it has reached an end."""
    wait_until(lambda: up.ledger.runs.get(run_id).status in RUN_ENDS, seconds)
    return up.ledger.runs.get(run_id)


def tasks_of(up: Stack, run_id: str) -> list[dict[str, Any]]:
    """What ECS tells of the tasks that were started for a run, whatever became of them."""
    ecs = up.client("ecs")
    pages = ecs.get_paginator("list_tasks")
    found = []
    for status in ("RUNNING", "STOPPED"):
        # A page holds as many as can be described at once.
        for page in pages.paginate(cluster="trueup", desiredStatus=status):
            arns = page["taskArns"]
            found += ecs.describe_tasks(cluster="trueup", tasks=arns)["tasks"] if arns else []
    return [task for task in found if run_id in str(task["overrides"])]


def started_by(folder: Path) -> list[psutil.Process]:
    """The processes that were started for temporary files in a folder, or for something in it."""
    found = []
    for process in psutil.process_iter():
        try:
            places = [process.environ().get(name, "") for name in ("TMPDIR", "HOME")]
            if any(str(folder) in word for word in [*places, *process.cmdline()]):
                found.append(process)
        except psutil.Error:
            continue
    return found


def nothing_is_left(folder: Path, seconds: float = 0.0) -> bool:
    """Whether no process for temporary files of a folder lives and the folder is empty, at last."""
    deadline = time.monotonic() + seconds
    while started_by(folder) or list(folder.iterdir()):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True


def begin(
    *words: str, stderr: int | None = None, program: Sequence[str] = (str(TRUEUP),)
) -> subprocess.Popen[str]:
    """Start the command line, or a program that stands for it, its output to be read."""
    # Children of a shell's background jobs are started deaf to Ctrl-C, and hand that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen([*program, *words], stdout=subprocess.PIPE, stderr=stderr, text=True)
