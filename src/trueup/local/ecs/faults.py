"""Faults on purpose: what shall go wrong, decided in one small interface.

A rule is asked three times: when RunTask is called (`refuses`), when a task begins (`fate`), and when it is
described (`loses`). Tests give a rule of their own, or `Chances` with a seed; what the admin endpoint orders
lies on top of it (see `orders.py`). What befalls a running task at once, kill, freeze, thaw, Spot
interruption, is a method of `Fargate`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
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
"""By the names that the admin endpoint and `Chances` use. The first three are one throttle, disguised."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What befalls one task; seconds count from when it is RUNNING, those of `thaw` from the freeze."""

    cold_start: float = 0.0
    """Seconds in PROVISIONING, beside those that the stack gives every task."""
    cannot_pull: bool = False
    kill: float | None = None
    """SIGKILL from nowhere, as when memory runs out: exit code 137."""
    freeze: float | None = None
    thaw: float | None = None
    interrupt: float | None = None
    """Spot takes the capacity back: SIGTERM, then SIGKILL, stop code SpotInterruption."""


UNHARMED = Fate()


@dataclass(frozen=True, slots=True)
class Launch:
    """Which launch a rule is asked about."""

    family: str
    number: int
    """Counts the calls of RunTask (`refuses`) or the tasks (`fate`), from 1."""
    environment: Mapping[str, str]
    """What the call overrides: enough to tell one launch of a job from the next."""


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


@dataclass(slots=True)
class Chances:
    """Faults by chance, the same for the same seed and the same order of calls.

    `refuse` maps names of REFUSALS to how likely each is; the others are the chance of each fault, which
    then strikes within the seconds of `within`. What is frozen thaws again after as long.
    """

    seed: int
    refuse: Mapping[str, float] = field(default_factory=dict)
    cannot_pull: float = 0.0
    cold_start: float = 0.0
    kill: float = 0.0
    freeze: float = 0.0
    interrupt: float = 0.0
    lose: float = 0.0
    within: tuple[float, float] = (0.0, 1.0)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def refuses(self, launch: Launch) -> Refusal | None:
        """The first refusal that chance picks."""
        for name, chance in self.refuse.items():
            if self._random.random() < chance:
                return REFUSALS[name]
        return None

    def fate(self, launch: Launch) -> Fate:
        """Each fault by its own chance."""
        frozen = self._when(self.freeze)
        return Fate(
            cold_start=self._when(self.cold_start) or 0.0,
            cannot_pull=self._random.random() < self.cannot_pull,
            kill=self._when(self.kill),
            freeze=frozen,
            thaw=frozen if frozen is None else self._random.uniform(*self.within),
            interrupt=self._when(self.interrupt),
        )

    def loses(self, task: str) -> bool:
        """By chance."""
        return self._random.random() < self.lose

    def _when(self, chance: float) -> float | None:
        return self._random.uniform(*self.within) if self._random.random() < chance else None
