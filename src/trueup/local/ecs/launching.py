"""The port to processes and containers: what starting one asks for, and what a started one can be told."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

KILLED = 128 + signal.SIGKILL
"""The exit code of a container that was killed, as Docker counts."""


@dataclass(frozen=True, slots=True)
class Order:
    """A process to start: exactly this environment, output to the end of `log`."""

    name: str
    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    log: Path
    image: str = ""
    """The same as a container: the image's name, its entry point and command where they are not its own,
    units of CPU, MiB of memory, and labels."""
    entrypoint: Sequence[str] | None = None
    command: Sequence[str] | None = None
    cpu: int = 0
    memory: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


class Process(Protocol):
    """A started container."""

    pid: int
    """0 where it has none here."""
    reason: str | None
    """What its end was due to, beside its exit code."""

    async def wait(self) -> int:
        """Its exit code once it has ended: 128 and the signal's number where one ended it."""

    def terminate(self) -> None:
        """SIGTERM to the first process alone, as a container runtime sends it."""

    def kill(self) -> None:
        """SIGKILL to all of it."""

    def freeze(self) -> None:
        """SIGSTOP to all of it: it lives, and does nothing."""

    def thaw(self) -> None:
        """SIGCONT to all of it."""


class Launcher(Protocol):
    """Starts processes, and sees to it that none outlives the stack."""

    async def start(self, order: Order) -> Process:
        """Start one. Raises CannotStart where there is no such program or folder."""

    async def close(self) -> None:
        """Kill and bury what is left."""
