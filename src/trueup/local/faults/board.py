"""Which faults are given, whom they strike, and what struck so far.

Whether a fault strikes is a pure function of the seed, the fault's number, whom it would strike and the how
manieth time that is asked: so it is the same in every run by that seed, however threads and tasks interleave.
Only `times`, where fewer may be struck than chance picks, goes to those who come first.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from trueup.local.faults.model import Fault, FaultPlan, OfCalls, OfLaunches, Which

F = TypeVar("F", bound=Which)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a fault may strike: a launch of a job, or a function, or a call that a machine makes for a run."""

    run: str | None = None
    job: str | None = None
    launch: int | None = None
    function: str | None = None

    @property
    def key(self) -> str:
        """What names it in every run by one seed: ids of runs differ from one to the next."""
        return self.function or f"{self.job}/{self.launch}"

    def meets(self, fault: Which) -> bool:
        """Whether the fault is meant for it."""
        if fault.run not in (None, self.run):
            return False
        if isinstance(fault, OfCalls) and (self.function is not None or fault.function is not None):
            return self.function is not None and fault.function in ("*", self.function)
        if not isinstance(fault, OfLaunches):
            return True
        return fault.job in (None, self.job) and (fault.launches is None or self.launch in fault.launches)


@dataclass(slots=True)
class Strike:
    """One time that a fault struck.

    `answers` are those to a callback, each time that it arrived: "" where it was taken, else the error.
    """

    fault: str
    subject: Subject
    what: str = ""
    answers: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Given(Generic[F]):
    """A fault with its number, from 1 in the order of giving, and how often it struck."""

    number: int
    fault: F
    struck: int = 0

    @property
    def used_up(self) -> bool:
        """Whether it has struck as often as it should."""
        return self.fault.times is not None and self.struck >= self.fault.times


class Board:
    """The faults of a stack. Every method is for any thread.

    `heard` hears of each strike, on the thread that it struck on.
    """

    def __init__(
        self, plan: FaultPlan | None = None, heard: Callable[[Strike], None] = lambda strike: None
    ) -> None:
        plan = plan or FaultPlan()
        self.seed = plan.seed
        self._heard = heard
        self._lock = threading.RLock()
        self._given: list[Given[Any]] = []
        self._asked: Counter[tuple[int, str]] = Counter()
        self._strikes: list[Strike] = []
        self._numbers = 0
        self.add(plan.faults)

    def add(self, faults: Iterable[Fault]) -> None:
        """Give more faults."""
        with self._lock:
            for fault in faults:
                self._numbers += 1
                self._given.append(Given(self._numbers, fault))

    def clear(self) -> None:
        """Take all faults back, and forget what struck."""
        with self._lock:
            self._given.clear()
            self._strikes.clear()

    def strikes(self, run: str | None = None) -> list[Strike]:
        """What struck so far, in its order: of a run, or all."""
        with self._lock:
            return [one for one in self._strikes if run in (None, one.subject.run)]

    def told(self) -> dict[str, Any]:
        """All of it as JSON: each fault as it was given, with how often it struck."""
        with self._lock:
            return {
                "seed": self.seed,
                "faults": [
                    {
                        **one.fault.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                        "struck": one.struck,
                    }
                    for one in self._given
                ],
            }

    def meant_for(self, kind: type[F], subject: Subject) -> list[Given[F]]:
        """The faults of a kind that may still strike it."""
        with self._lock:
            return [one for one in self._of(kind) if subject.meets(one.fault) and not one.used_up]

    def given(self, kind: type[F]) -> list[F]:
        """The faults of a kind, whomever they are meant for."""
        with self._lock:
            return [one.fault for one in self._of(kind)]

    def _of(self, kind: type[F]) -> Iterator[Given[F]]:
        return (one for one in self._given if isinstance(one.fault, kind))

    def pick(
        self,
        kind: type[F],
        subject: Subject,
        what: str = "",
        fits: Callable[[F], bool] = lambda fault: True,
    ) -> tuple[Given[F], Strike] | None:
        """The first fault that is meant for this and that chance picks. It strikes."""
        with self._lock:
            for one in self.meant_for(kind, subject):
                if fits(one.fault) and self.drawn(one, subject):
                    return one, self.strike(one, subject, what)
        return None

    def drawn(self, one: Given[Any], subject: Subject) -> bool:
        """Whether chance picks it this time."""
        with self._lock:
            self._asked[one.number, subject.key] += 1
            nth = self._asked[one.number, subject.key]
        probability: float = one.fault.probability
        return self._chance(one, subject, str(nth)).random() < probability

    def seconds(self, one: Given[Any], subject: Subject, ends: tuple[float, float], what: str = "") -> float:
        """The time between two ends that the seed chooses."""
        return ends[0] if ends[0] == ends[1] else self._chance(one, subject, f"seconds{what}").uniform(*ends)

    def _chance(self, one: Given[Any], subject: Subject, what: str) -> random.Random:
        return random.Random(f"{self.seed}:{one.number}:{subject.key}:{what}")

    def strike(self, one: Given[Any], subject: Subject, what: str = "") -> Strike:
        """It strikes."""
        with self._lock:
            one.struck += 1
        return self._note(one, subject, what)

    def strike_if(self, one: Given[Any], subject: Subject, do: Callable[[], bool]) -> bool:
        """Do it unless it is used up or was taken back meanwhile; it struck if it could be done."""
        with self._lock:
            if one.used_up or one not in self._given:
                return False
            one.struck += 1
        # Without the lock: what is done may wait for a thread that waits for it.
        if do():
            self._note(one, subject, "")
            return True
        with self._lock:
            one.struck -= 1
        return False

    def _note(self, one: Given[Any], subject: Subject, what: str) -> Strike:
        strike = Strike(one.fault.fault, subject, what)
        with self._lock:
            self._strikes.append(strike)
        self._heard(strike)
        return strike
