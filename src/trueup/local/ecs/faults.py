"""The port to faults on purpose: what a rule is asked, and what it can answer.

A rule is asked three times: when RunTask is called (`refuses`), when a task begins (`fate`), and when it is
described (`loses`). `trueup.local.faults` is one that people give a list of faults. What befalls a running
task at once, kill, freeze, thaw, Spot interruption, is a method of its `Life`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trueup.local.ecs.errors import ApiError


@dataclass(frozen=True, slots=True)
class Refusal:
    """How RunTask says no: an error, or, where `error` is None, an entry of `failures` under HTTP 200."""

    error: str | None
    message: str

    def raise_error(self) -> None:
        """Raise the ApiError that this is, if it is one."""
        if self.error is not None:
            raise ApiError(self.error, self.message)


# Sources: rows "Rate exceeded", "ENI or subnet lookup throttled", "RunTask returns non-empty failures" and
# "Capacity is unavailable" of aws-facts section 2.4; the text as an entry of failures: gchq/sleeper#904.
# The code under which capacity is refused as an error is not known. One that the API's model lacks is what
# Step Functions turns into ECS.AmazonECSException, as seen.
_CAPACITY = "Capacity is unavailable at this time. Please try again later or in a different availability zone"
REFUSALS: Mapping[str, Refusal] = {
    "throttled": Refusal("ThrottlingException", "Rate exceeded"),
    "throttled-parameter": Refusal("InvalidParameterException", "Error retrieving subnet: Rate exceeded"),
    "throttled-failure": Refusal(None, "RESOURCE:ENI"),
    "capacity": Refusal("CapacityUnavailableException", _CAPACITY),
    "capacity-failure": Refusal(None, _CAPACITY),
}
"""By the names of `trueup.local.faults`. The first three are one throttle, disguised."""


def _always(what: str, do: Callable[[], bool]) -> None:
    do()


@dataclass(frozen=True, slots=True)
class Fate:
    """What befalls one task; seconds count from when it is RUNNING, those of `thaw` from the freeze."""

    cold_start: float = 0.0
    """Seconds in PROVISIONING, beside those that the stack gives every task."""
    cannot_pull: bool = False
    kill: float | None = None
    """SIGKILL from nowhere, as when memory runs out: exit code 137."""
    crash: float | None = None
    """Its host fails, which says nothing of what ran there."""
    exit: float | None = None
    """It ends with `exit_code`, whatever it was doing."""
    exit_code: int = 1
    freeze: float | None = None
    thaw: float | None = None
    interrupt: float | None = None
    """Spot takes the capacity back: SIGTERM, then SIGKILL, stop code SpotInterruption."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the task finds in its environment in place of what the stack gives."""
    strike: Callable[[str, Callable[[], bool]], None] = _always
    """Called with the name of each harm when its moment has come: does it, or lets it be."""


UNHARMED = Fate()


@dataclass(frozen=True, slots=True)
class Launch:
    """Which launch a rule is asked about."""

    family: str
    number: int
    """Counts the calls of RunTask (`refuses`) or the tasks (`fate`), from 1."""
    environment: Mapping[str, str]
    """What the call overrides: enough to tell one launch of a job from the next."""
    task: str = ""
    """The ARN of the task; of a call of RunTask there is none yet."""


class Faults(Protocol):
    """A rule."""

    def refuses(self, launch: Launch) -> Refusal | None:
        """Whether this call of RunTask is refused, and how."""

    def fate(self, launch: Launch) -> Fate:
        """What shall befall this task."""

    def loses(self, task: str) -> bool:
        """Whether this DescribeTasks says MISSING of the task with that ARN, though it is there."""


class NoFaults:
    """Everything goes well."""

    def refuses(self, launch: Launch) -> Refusal | None:
        """Never."""
        return None

    def fate(self, launch: Launch) -> Fate:
        """Nothing."""
        return UNHARMED

    def loses(self, task: str) -> bool:
        """Never."""
        return False
