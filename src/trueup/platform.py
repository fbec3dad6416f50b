"""What runs tasks and executions, as far as deciding needs it; and how a launch can end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from trueup.exits import Exit
from trueup.model.base import Value
from trueup.model.plan import CodeIdentity


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

    def alive_of(self, run_id: str, job: str) -> Mapping[str, int]:
        """The tasks started for a run that have not stopped, each with its launch, registered or not."""


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

    @property
    def is_unknown(self) -> bool:
        """Whether nobody told how it ended, so that the task may still be alive."""
        return self.exit_code is None and not self.stop_code and not self.launch_refused

    def __str__(self) -> str:
        known = {"exit code": self.exit_code, "stop code": self.stop_code, "reason": self.reason}
        said = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
        return said or "nothing is known of its end"


class Endings(Protocol):
    """What the platform knows of a task's end, where nobody else told."""

    def ending(self, task: str) -> Ended | None:
        """How a task ended, by its ARN. None where it has not, or the platform forgot it."""

    def endings_of(self, run_id: str, job: str, launch: int) -> Sequence[Ended]:
        """How the tasks started for a launch ended, registered or not; none that the platform forgot."""


class Logs(Protocol):
    """What tasks said."""

    def lines(
        self, stream: str, *, limit: int, after: str | None
    ) -> tuple[list[tuple[datetime, str]], str | None]:
        """Lines of a stream, oldest first, and what `after` takes for those behind them; None at the end.

        Raises NotFound, RequestError for an `after` that is none, StoreUnavailable.
        """


class Definitions(Protocol):
    """The code that there is to run."""

    def latest(self, family: str) -> CodeIdentity:
        """The newest revision of a task definition, with its image's digest. Raises TrueupError."""


class Executions(Protocol):
    """The executions of the state machine that serves runs, by their names."""

    def start(self, name: str, data: Mapping[str, Any]) -> None:
        """Start one. Asked again with the same input, nothing changes, also when it is over.

        Raises TrueupError where another one has the name.
        """

    def status(self, name: str) -> str | None:
        """What Step Functions calls its state, such as RUNNING or TIMED_OUT. None where there is none."""


Machines = Mapping[str, Executions]
"""The executions of the state machine that serves runs of a kind, by the kind of their job."""


class Waiting(Protocol):
    """The executions that wait for a person."""

    def wake(self, token: str) -> None:
        """Let one go on and look again; it decides nothing. One that went on already is no error.

        Raises StoreUnavailable.
        """


class Notices(Protocol):
    """Where people are told that something waits for them."""

    def tell(self, title: str, text: str) -> None:
        """Tell them. Raises StoreUnavailable."""


# What EventBridge tells of, and what DescribeExecution has to say before anybody acts on it.
UNSUCCESSFUL = frozenset({"FAILED", "TIMED_OUT", "ABORTED"})
OVER = UNSUCCESSFUL | {"SUCCEEDED"}
