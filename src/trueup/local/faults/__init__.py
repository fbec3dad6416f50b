"""Faults on purpose: a list of what shall go wrong, for tests and for whoever wants to see a job survive.

    model           the kinds of faults, and the file that holds them (docs/faults.md)
    board           which are given, whom they strike by the seed, and what struck so far
    launches        what ECS is told of launches and tasks
    calls           what machines meet when they call services
    gateway, http, services, callers    the way of those calls of tasks and functions that shall fail
    admin           `/_faults`

`served()` puts them together; the stack hands in what they stand between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trueup.local.ecs import Ecs
from trueup.local.faults.admin import PATH
from trueup.local.faults.board import Board, Strike, Subject
from trueup.local.faults.callers import Callers
from trueup.local.faults.calls import FaultyCalls
from trueup.local.faults.gateway import Gateway, run_in_thread
from trueup.local.faults.launches import Launches
from trueup.local.faults.model import Fault, FaultPlan, OfCalls, as_plan, fault, read_plan
from trueup.local.serving import listen, url_of
from trueup.local.stepfunctions import Calls

__all__ = ["Faults", "Fault", "FaultPlan", "Strike", "Subject", "as_plan", "fault", "read_plan", "served"]

GiveEnvironment = Callable[[str, Mapping[str, str]], None]
"""Adds variables to what a function finds in its environment."""


class Faults:
    """The faults of a stack that is up. Every method is for any thread."""

    def __init__(self, board: Board, gateway: Gateway, callers: Callers, url: str) -> None:
        self.url = url
        """Of the gateway."""
        self.launches = Launches(board, callers, url)
        self._board = board
        self._gateway = gateway
        self._callers = callers

    @property
    def address(self) -> str:
        """Where they are given and told over HTTP."""
        return f"{self.url}{PATH}"

    def between(self, calls: Calls) -> Calls:
        """What stands between machines and the services that they call."""
        return FaultyCalls(self._board, calls)

    def stand_between(self, services: Mapping[str, str], ecs: Ecs) -> None:
        """`services` are endpoints by signing name, `*` for all others."""
        self._gateway.services = services
        self._gateway.harm = ecs.harm

    def lead_functions(self, functions: list[str], give: GiveEnvironment) -> None:
        """Send the calls of functions through the gateway, as soon as faults are given for them."""
        led = False

        def lead() -> None:
            nonlocal led
            if led or not any(fault.function for fault in self._board.given(OfCalls)):
                return
            led = True
            for name in functions:
                introduced = self._callers.introduce(Subject(function=name.partition("-")[2]))
                give(name, {"AWS_ENDPOINT_URL": self.url, **introduced})

        self._gateway.added = lead
        lead()

    def add(self, *faults: Fault) -> None:
        """Give more faults."""
        self._board.add(faults)
        self._gateway.added()

    def clear(self) -> None:
        """Take all faults back, and forget what struck."""
        self._board.clear()

    def strikes(self, run: str | None = None) -> list[Strike]:
        """What struck so far, in its order: of a run, or all."""
        return self._board.strikes(run)

    def told(self) -> dict[str, Any]:
        """Each fault as it was given, with how often it struck, as JSON."""
        return self._board.told()


@contextmanager
def served(plan: FaultPlan | None = None, heard: Callable[[Strike], None] | None = None) -> Iterator[Faults]:
    """The faults of a plan, and their gateway, while the block lasts. `heard` hears of each strike."""
    board, callers = Board(plan, heard or (lambda strike: None)), Callers()
    gateway = Gateway(board, callers)
    listening = listen()
    try:
        with run_in_thread(gateway, listening):
            yield Faults(board, gateway, callers, url_of(listening))
    finally:
        listening.close()
