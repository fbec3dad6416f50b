"""Which errors Retry and Catch match, and how long to wait ([dg:concepts-error-handling])."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.errors import DATA_LIMIT, RUNTIME, TASK_FAILED, TIMEOUT, StateError
from trueup.local.stepfunctions.model import Catcher, Retrier


def matches(names: Sequence[str], error: StateError) -> bool:
    """Whether an error is among those named.

    States.Runtime is matched by its own name alone, which machines on AWS give beside that of
    States.DataLimitExceeded (localstack/localstack#10489; moto's engine matches it, too); the documentation
    says only that States.ALL does not. States.ALL does not match States.DataLimitExceeded either;
    States.TaskFailed matches everything but States.Timeout (aws-facts section 1.6).
    """
    if error.error == RUNTIME:
        return RUNTIME in names
    return any(_names(name, error) for name in names)


def _names(name: str, error: StateError) -> bool:
    if name == "States.ALL":
        return error.error != DATA_LIMIT
    if name == TASK_FAILED:
        return error.error not in (TIMEOUT, DATA_LIMIT)
    return name in (error.error, error.alias)


_FOREVER = 1e9
"""Seconds: longer than an execution may last."""


def find_catcher(catchers: Sequence[Catcher], error: StateError) -> Catcher | None:
    """The first catcher that matches."""
    return next((catcher for catcher in catchers if matches(catcher.errors, error)), None)


class Retries:
    """The retries of one visit to a state: each retrier counts its own."""

    def __init__(self, retriers: Sequence[Retrier], chance: Chance) -> None:
        self._retriers = retriers
        self._chance = chance
        self._used = [0] * len(retriers)
        self.latest = 0
        """Which retrier was used last."""

    @property
    def count(self) -> int:
        """How often the state has been tried again (`$$.State.RetryCount`)."""
        return sum(self._used)

    def next_delay(self, error: StateError) -> float | None:
        """Seconds until the next attempt, which is hereby counted; None where there is none left.

        The first retrier that matches decides, also when it has nothing left.
        """
        for position, retrier in enumerate(self._retriers):
            if matches(retrier.errors, error):
                used = self._used[position]
                if used >= retrier.attempts:
                    return None
                self._used[position] += 1
                self.latest = position
                return self._delay(retrier, used)
        return None

    def _delay(self, retrier: Retrier, used: int) -> float:
        try:
            delay = float(retrier.interval * retrier.backoff**used)
        except OverflowError:
            delay = _FOREVER
        if retrier.max_delay is not None:
            delay = min(delay, float(retrier.max_delay))
        return self._chance.upto(delay) if retrier.jitter else delay
