"""The tests' side of the warm process: start a task, wait for its end, and stand in for the platform."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from trueup.platform import TaskState

FORKS = Path(__file__).with_name("forks.py")
HANGS = 60.0


class Warm:
    """Tasks as forks of one warm process. What they log goes to a file, `log`."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as errors:
            self._forks = subprocess.Popen(
                [sys.executable, str(FORKS)],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._rest = b""
        self._pids: dict[str, int] = {}
        self._statuses: dict[str, int] = {}
        self._written_off: set[str] = set()

    def start(self, spec: Mapping[str, Any]) -> int:
        """Fork a task, and give its process id."""
        assert self._forks.stdin is not None
        self._forks.stdin.write(json.dumps(spec).encode() + b"\n")
        self._forks.stdin.flush()
        self._hear_until(lambda: spec["task"] in self._pids)
        return self._pids[spec["task"]]

    def wait(self, task: str, kill_after: float | None = None) -> int:
        """The wait status of a task that ended or froze; killed if it did neither by then."""
        if kill_after is not None and not self._hear_until(lambda: task in self._statuses, kill_after):
            os.kill(self._pids[task], signal.SIGKILL)
        self._hear_until(lambda: task in self._statuses)
        return self._statuses[task]

    def wake(self, task: str) -> int:
        """Let a frozen task go on, and give the status with which it ended."""
        assert os.WIFSTOPPED(self._statuses.pop(task))
        os.kill(self._pids[task], signal.SIGCONT)
        return self.wait(task)

    def write_off(self, task: str) -> None:
        """Say from now on that a task has stopped, as a platform does that lost sight of it."""
        self._written_off.add(task)

    def state(self, task: str) -> TaskState:
        """Whether the process lives; a frozen one does."""
        if task in self._written_off:
            return TaskState.STOPPED
        if task not in self._pids:
            return TaskState.MISSING
        status = self._statuses.get(task)
        return TaskState.ALIVE if status is None or os.WIFSTOPPED(status) else TaskState.STOPPED

    def alive_of(self, run_id: str, job: str) -> dict[str, int]:
        """The tests tell it of every task that they start."""
        return {}

    def stop(self, task: str, reason: str) -> None:
        """Nothing arrives: these tests ask only for the end of tasks that are frozen or dead."""

    def end_tasks(self) -> None:
        """Kill every task that a test left, frozen ones too."""
        for task, pid in self._pids.items():
            status = self._statuses.get(task)
            if status is None or os.WIFSTOPPED(status):
                self._statuses.pop(task, None)
                os.kill(pid, signal.SIGKILL)
                self.wait(task)

    def _hear_until(self, done: Any, seconds: float = HANGS) -> bool:
        """Take in what the warm process tells until `done()`; False where that takes longer."""
        assert self._forks.stdout is not None
        until = time.monotonic() + seconds
        while not done():
            left = max(0.0, until - time.monotonic())
            if not select.select([self._forks.stdout], [], [], left)[0]:
                assert seconds < HANGS, f"nothing happened for {seconds:g} seconds\n{self.log.read_text()}"
                return False
            data = os.read(self._forks.stdout.fileno(), 65536)
            assert data, f"the warm process is gone\n{self.log.read_text()}"
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take_in(json.loads(line))
        return True

    def _take_in(self, event: dict[str, Any]) -> None:
        kind, into = ("pid", self._pids) if "pid" in event else ("status", self._statuses)
        into[event["task"]] = event[kind]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        with suppress(BrokenPipeError):
            self._forks.stdin.close()
        self._forks.wait(HANGS)
        self._forks.stdout.close()
