"""The platform that runs tasks, as far as proving that one has stopped needs it; and how a launch can end."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from trueup.exits import Exit
from trueup.model.base import Value


class TaskState(StrEnum):
    """What the platform says of a task. MISSING: it does not know it (any more, or yet)."""

    ALIVE = "ALIVE"
    STOPPED = "STOPPED"
    MISSING = "MISSING"


class Platform(Protocol):
    """ECS, or what stands in for it."""

    def state(self, task: str) -> TaskState:
        """Whether a task is alive, by its ARN."""

    def stop(self, task: str, reason: str) -> None:
        """Ask for its end: SIGTERM, then SIGKILL. It is proved only by `state`."""


# Stop codes with which ECS says that nothing the task did ended it.
FROM_OUTSIDE = frozenset({"SpotInterruption", "TerminationNotice", "InfrastructureHealth", "UserInitiated"})

# What a task says of itself stands, whatever stopped the container afterwards.
OWN_FAULTS = frozenset({Exit.BAD_INPUT, Exit.FAULT})


class Ended(Value):
    """How a launch ended, as far as is known; all unknown where nothing was heard of it.

    `launch_refused`: the platform had no room or throttled the call, so that no task ever began.
    """

    exit_code: int | None = None
    stop_code: str | None = None
    reason: str | None = None
    launch_refused: bool = False

    @property
    def from_outside(self) -> bool:
        """Whether it says nothing against the work: ended by somebody else, or left with progress saved."""
        if self.launch_refused or self.exit_code == Exit.INTERRUPTED:
            return True
        return self.stop_code in FROM_OUTSIDE and self.exit_code not in OWN_FAULTS

    def __str__(self) -> str:
        known = {"exit code": self.exit_code, "stop code": self.stop_code, "reason": self.reason}
        said = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
        return said or "nothing is known of its end"
