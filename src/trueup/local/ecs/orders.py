"""Faults that were ordered, by the admin endpoint or by a test, on top of a rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trueup.local.ecs.errors import invalid
from trueup.local.ecs.faults import REFUSALS, UNHARMED, Fate, Faults, Launch, NoFaults, Refusal

FATES = ("cannot-pull", "cold-start", "kill", "freeze", "thaw", "interrupt")


@dataclass(slots=True)
class Ordered:
    """One fault, for the next `times` calls or tasks, of a family or of any.

    `fault` is a name of REFUSALS or of FATES; `seconds` says when, or for how long.
    """

    fault: str
    times: int = 1
    seconds: float = 0.0
    family: str | None = None

    def __post_init__(self) -> None:
        if self.fault not in REFUSALS and self.fault not in FATES:
            raise invalid(f"fault {self.fault!r} is none of {', '.join([*REFUSALS, *FATES])}")

    @classmethod
    def read(cls, given: dict[str, Any]) -> Ordered:
        """From the JSON of the admin endpoint. Raises ApiError."""
        try:
            made = cls(str(given["fault"]), int(given.get("times", 1)), float(given.get("seconds", 0)))
        except (KeyError, TypeError, ValueError) as error:
            raise invalid(f"A fault is {{fault, times, seconds, family}}: {error!r}") from error
        return replace(made, family=given.get("family"))


@dataclass(slots=True)
class Orders:
    """A rule that does what was ordered, and otherwise what the rule below it says."""

    below: Faults = field(default_factory=NoFaults)
    waiting: list[Ordered] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """ARNs of tasks that DescribeTasks does not know until they are taken out of here."""

    def add(self, ordered: Ordered) -> None:
        """Order a fault."""
        self.waiting.append(ordered)

    def clear(self) -> None:
        """Forget what has not struck yet, and find the lost."""
        self.waiting.clear()
        self.lost.clear()

    def told(self) -> dict[str, Any]:
        """What is still to come, as JSON."""
        return {"faults": [asdict(ordered) for ordered in self.waiting], "lost": sorted(self.lost)}

    def refuses(self, launch: Launch) -> Refusal | None:
        """The first refusal that was ordered, else the rule's."""
        for ordered in self.waiting:
            if ordered.fault in REFUSALS and self._use(ordered, launch):
                return REFUSALS[ordered.fault]
        return self.below.refuses(launch)

    def fate(self, launch: Launch) -> Fate:
        """All that was ordered, together; else the rule's."""
        struck = [o for o in [*self.waiting] if o.fault in FATES and self._use(o, launch)]
        fate = UNHARMED if struck else self.below.fate(launch)
        for ordered in struck:
            value: Any = True if ordered.fault == "cannot-pull" else ordered.seconds
            fate = replace(fate, **{ordered.fault.replace("-", "_"): value})
        return fate

    def loses(self, task: str) -> bool:
        """Whether it was lost by order, or by the rule."""
        return task in self.lost or self.below.loses(task)

    def _use(self, ordered: Ordered, launch: Launch) -> bool:
        if ordered.family not in (None, launch.family):
            return False
        ordered.times -= 1
        if ordered.times <= 0:
            self.waiting.remove(ordered)
        return True
