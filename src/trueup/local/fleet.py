"""Tasks as processes: what Fargate is on AWS, as far as the demo needs it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from trueup.local.metadata import Metadata
from trueup.model.plan import CodeIdentity, TaskOrder
from trueup.platform import Ended, TaskState

KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Exited:
    """A task that has ended, and how."""

    arn: str
    ended: Ended


class Fleet:
    """Starts workers, says how they are, and leaves none behind. Usable as the platform that `accept` asks.

    `environment` is what every task gets (endpoints, table, bucket); `logs` is a folder for what they print.
    """

    def __init__(self, metadata: Metadata, environment: Mapping[str, str], logs: Path) -> None:
        self._metadata = metadata
        self._environment = dict(environment)
        self._logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: set[str] = set()
        self._exits: queue.Queue[Exited] = queue.Queue()
        self._number = 0

    def start(self, order: TaskOrder, code: CodeIdentity, folder: Path, secrets: Mapping[str, str]) -> str:
        """Start a task on the code in `folder`, and give its ARN."""
        self._number += 1
        arn = f"arn:aws:ecs:us-east-1:000000000000:task/trueup/{self._number:032x}"
        named = {f"SECRET_{name.upper().replace('-', '_')}": value for name, value in secrets.items()}
        environment = (
            self._environment
            | named
            | {
                "TRUEUP_ORDER": order.model_dump_json(by_alias=True),
                "TRUEUP_CODE": str(folder),
                "ECS_CONTAINER_METADATA_URI_V4": self._metadata.add(arn, code),
            }
        )
        with (self._logs / f"{order.job}-{order.launch}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trueup.worker"],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[arn] = process
        threading.Thread(target=self._await, args=(arn, process), name=f"await {arn}", daemon=True).start()
        return arn

    def _await(self, arn: str, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        exit_code = code if code >= 0 else 128 - code
        if arn in self._killed:
            ended = Ended(exit_code=exit_code, stop_code="SpotInterruption", reason="killed by the demo")
        else:
            ended = Ended(exit_code=exit_code, stop_code="EssentialContainerExited")
        self._exits.put(Exited(arn, ended))

    def next_exit(self) -> Exited:
        """Wait for the next task to end."""
        return self._exits.get()

    def kill(self, arn: str) -> bool:
        """SIGKILL, like a Spot interruption without warning. False where the task had ended by itself."""
        process = self._processes[arn]
        if process.poll() is not None:
            return False
        self._killed.add(arn)
        process.kill()
        return True

    def state(self, task: str) -> TaskState:
        """Whether the process lives."""
        process = self._processes.get(task)
        if process is None:
            return TaskState.MISSING
        return TaskState.ALIVE if process.poll() is None else TaskState.STOPPED

    def stop(self, task: str, reason: str) -> None:
        """Ask a process to end."""
        with suppress(ProcessLookupError):
            self._processes[task].terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
