"""Activities: work that is offered until a worker asks for it ([dg:concepts-activities])."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.errors import ApiError, StateError
from trueup.local.stepfunctions.tags import tag
from trueup.local.stepfunctions.tokens import Waiting
from trueup.local.stepfunctions.values import Json

LONG_POLL = 60.0
"""Seconds that GetActivityTask waits for work [botocore]."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One task that waits for a worker. `taken` is told the worker's name, which may be none."""

    waiting: Waiting
    given: str
    taken: Callable[[str | None], None]


@dataclass(slots=True)
class Activity:
    """An activity, its tasks that nobody has taken yet, and whoever asks for one."""

    arn: str
    name: str
    created_at: float
    tags: dict[str, str] = field(default_factory=dict)
    offers: deque[Offer] = field(default_factory=deque)
    more: asyncio.Condition = field(default_factory=asyncio.Condition)


class Activities:
    """All activities of an account and region."""

    def __init__(self, clock: Clock, region: str, account: str) -> None:
        self._clock = clock
        self._prefix = f"arn:aws:states:{region}:{account}:activity:"
        self._by_arn: dict[str, Activity] = {}

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Activity:
        """An activity; the one there is, whatever its tags, when it was created before [botocore].

        Raises ApiError.
        """
        arn = self._prefix + name
        if arn not in self._by_arn:
            made = Activity(arn, name, self._clock.now())
            tag(arn, made, tags or {})
            self._by_arn[arn] = made
        return self._by_arn[arn]

    def delete(self, arn: str) -> None:
        """Forget an activity."""
        self._by_arn.pop(arn, None)

    def find(self, arn: str) -> Activity:
        """An activity. Raises ApiError (ActivityDoesNotExist)."""
        found = self._by_arn.get(arn)
        if found is None:
            raise ApiError("ActivityDoesNotExist", f"Activity Does Not Exist: '{arn}'")
        return found

    def all(self) -> list[Activity]:
        """All activities by name."""
        return sorted(self._by_arn.values(), key=lambda activity: activity.name)

    async def offer(self, arn: str, offer: Offer) -> None:
        """Offer a task to whoever asks. Raises StateError where there is no such activity."""
        try:
            activity = self.find(arn)
        except ApiError as error:
            raise StateError("States.Runtime", error.message) from error
        async with activity.more:
            activity.offers.append(offer)
            activity.more.notify()

    async def take(self, arn: str, worker: str | None) -> dict[str, Json]:
        """The oldest task, after a while of waiting for one; empty when there is none. Raises ApiError."""
        activity = self.find(arn)
        try:
            async with asyncio.timeout(LONG_POLL * self._clock.scale):
                offer = await _next(activity)
        except TimeoutError:
            return {}
        offer.taken(worker)
        return {"taskToken": offer.waiting.token, "input": offer.given}


async def _next(activity: Activity) -> Offer:
    async with activity.more:
        while True:
            while activity.offers:
                offer = activity.offers.popleft()
                # What has timed out in the meantime is nobody's work any more.
                if not offer.waiting.closed:
                    return offer
            await activity.more.wait()
