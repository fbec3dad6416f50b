"""Faults of launches and tasks: the rule by which the ECS server is asked what befalls whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trueup.local.ecs import REFUSALS, Fate, Launch, Refusal
from trueup.local.faults.board import Board, Given, Subject
from trueup.local.faults.callers import Callers
from trueup.local.faults.model import (
    AtMoment,
    CannotPull,
    ColdStart,
    Exited,
    Frozen,
    OfCallbacks,
    OfCalls,
    Refused,
)
from trueup.model.plan import Addressee

AT_ONCE = (0.0, 0.0)


def subject_of(family: str, number: int, environment: Mapping[str, str]) -> Subject:
    """Whose launch it is, by what the call overrides; where that says nothing, the family is the job."""
    whose = Addressee.of(environment.get("TRUEUP_ORDER") or environment.get("TRUEUP_NAMING") or "")
    if whose is None:
        return Subject(job=family, launch=number)
    return Subject(whose.run_id, whose.job or family, whose.launch)


@dataclass(slots=True)
class Launches:
    """A rule of the ECS server. `gateway` is where tasks go whose calls shall fail."""

    board: Board
    callers: Callers
    gateway: str

    def refuses(self, launch: Launch) -> Refusal | None:
        """The first refusal that is meant for it."""
        picked = self.board.pick(Refused, subject_of(launch.family, launch.number, launch.environment))
        return REFUSALS[picked[0].fault.fault] if picked else None

    def fate(self, launch: Launch) -> Fate:
        """All that shall befall a task."""
        subject = subject_of(launch.family, launch.number, launch.environment)
        moments = self._moments(subject)
        return Fate(
            cold_start=self._cold_start(subject),
            cannot_pull=self.board.pick(CannotPull, subject) is not None,
            **{name: when for name, (when, _) in moments.items()},
            exit_code=next(
                (one.fault.code for _, one in moments.values() if isinstance(one.fault, Exited)), 1
            ),
            thaw=self._thaw(subject, moments),
            environment=self._environment(subject, launch.task),
            strike=lambda name, do: self._strike(subject, moments, name, do),
        )

    def loses(self, task: str) -> bool:
        """Never."""
        return False

    def _cold_start(self, subject: Subject) -> float:
        picked = self.board.pick(ColdStart, subject)
        return self.board.seconds(picked[0], subject, picked[0].fault.seconds) if picked else 0.0

    def _moments(self, subject: Subject) -> dict[str, tuple[float, Given[AtMoment]]]:
        """When each kind of harm shall befall it, in seconds; the earliest of a kind."""
        found: dict[str, tuple[float, Given[AtMoment]]] = {}
        for one in self.board.meant_for(AtMoment, subject):
            if one.fault.checkpoint is None and self.board.drawn(one, subject):
                when = self.board.seconds(one, subject, one.fault.after or AT_ONCE)
                name = one.fault.fault
                if name not in found or when < found[name][0]:
                    found[name] = when, one
        return found

    def _thaw(self, subject: Subject, moments: Mapping[str, tuple[float, Given[AtMoment]]]) -> float | None:
        for _, one in moments.values():
            if isinstance(one.fault, Frozen) and one.fault.thaw is not None:
                return self.board.seconds(one, subject, one.fault.thaw, "thaw")
        return None

    def _strike(
        self,
        subject: Subject,
        moments: Mapping[str, tuple[float, Given[AtMoment]]],
        name: str,
        do: Callable[[], bool],
    ) -> None:
        if name in moments:
            self.board.strike_if(moments[name][1], subject, do)
        else:  # a thaw, which ends what struck before
            do()

    def _environment(self, subject: Subject, task: str) -> dict[str, str]:
        """Whose calls shall fail goes through the gateway; all others go straight to the services."""
        environment = {}
        harms = self.board.meant_for(AtMoment, subject)
        watched = any(one.fault.checkpoint is not None for one in harms)
        if watched or self.board.meant_for(OfCalls, subject):
            environment["AWS_ENDPOINT_URL"] = self.gateway
        if self.board.meant_for(OfCallbacks, subject):
            environment["AWS_ENDPOINT_URL_SFN"] = self.gateway
        return {**environment, **self.callers.introduce(subject, task)} if environment else {}
