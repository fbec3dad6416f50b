"""Machines run in virtual time against services that are functions: a test of hours takes milliseconds."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueup.local.stepfunctions.api.operations import perform
from trueup.local.stepfunctions.chance import Chance
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.engine import Engine, Settings
from trueup.local.stepfunctions.integrations.port import Answer, ServiceFailure
from trueup.local.stepfunctions.running.execution import Execution

from .virtual_time import run

EPOCH = 1_790_000_000.0
ROLE = "arn:aws:iam::000000000000:role/machines"

Service = Callable[[Mapping[str, Any]], Any]


class Services:
    """Answers by `service:action`; what is not there must not be called. Every call is kept."""

    def __init__(self, **answers: Service) -> None:
        self.answers = {name.replace("_", ":", 1): answer for name, answer in answers.items()}
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        """Answer a call."""
        name = f"{service}:{action}"
        self.calls.append((name, parameters))
        output = self.answers[name](parameters)
        if inspect.isawaitable(output):
            output = await output
        return Answer(output, {}, "request-1")

    def called(self, name: str) -> list[Mapping[str, Any]]:
        """The parameters of all calls of an operation."""
        return [parameters for each, parameters in self.calls if each == name]


def refuse(code: str, message: str = "no", status: int = 400) -> Service:
    """A service that says no."""

    def answer(_: Mapping[str, Any]) -> Any:
        raise ServiceFailure(code, message, status=status, request_id="request-1")

    return answer


@dataclass
class World:
    """An engine with one machine in it, for a test that does more than run it."""

    engine: Engine
    services: Services
    seen: list[dict[str, Any]] = field(default_factory=list)

    def api(self, operation: str, **body: Any) -> Any:
        """Call an operation of the API."""
        return perform(self.engine, operation, body)

    def create(self, definition: Any, name: str = "m") -> str:
        """A machine's ARN."""
        return str(
            self.api("CreateStateMachine", name=name, definition=json.dumps(definition), roleArn=ROLE)[
                "stateMachineArn"
            ]
        )

    def start(self, arn: str, given: Any = None, name: str | None = None) -> Execution:
        """Start an execution."""
        return self.engine.start_execution(arn, name, json.dumps({} if given is None else given))

    def now(self) -> float:
        """Seconds since the test began."""
        return self.engine.clock.now() - EPOCH


def play(scene: Callable[[World], Awaitable[Any]], services: Services | None = None, **settings: Any) -> Any:
    """Run a scene in virtual time."""

    async def act() -> Any:
        calls = services or Services()
        seen: list[dict[str, Any]] = []
        given = {"clock": Clock(epoch=EPOCH), "chance": Chance(1), "sink": seen.append} | settings
        return await scene(World(Engine(calls, Settings(**given)), calls, seen))

    return run(act())


@dataclass
class Ran:
    """What became of an execution."""

    status: str
    output: Any
    error: str | None
    cause: str | None
    events: list[dict[str, Any]]
    seconds: float

    @property
    def types(self) -> list[str]:
        """The types of its events."""
        return [event["type"] for event in self.events]

    def details(self, kind: str) -> dict[str, Any]:
        """The details of the first event of a type."""
        event = next(event for event in self.events if event["type"] == kind)
        return next((value for key, value in event.items() if key.endswith("EventDetails")), {})


def ran(execution: Execution) -> Ran:
    """What became of an execution, from the inside."""
    events = [event.as_answer() for event in execution.history.events]
    output = execution.output.value if execution.output else None
    seconds = (execution.stopped_at or execution.started_at) - execution.started_at
    return Ran(execution.status, output, execution.error, execution.cause, events, round(seconds, 6))


def execute(definition: Any, given: Any = None, services: Services | None = None, **settings: Any) -> Ran:
    """Create a machine, run it, and say what became of it."""

    async def scene(world: World) -> Ran:
        execution = world.start(world.create(definition), given)
        await execution.ended()
        return ran(execution)

    result: Ran = play(scene, services, **settings)
    return result


def machine(*states: tuple[str, Mapping[str, Any]], **fields: Any) -> dict[str, Any]:
    """A machine of states in a row: each goes to the next unless it says where to go."""
    return {"StartAt": states[0][0], "States": chain(states), **fields}


def chain(states: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """States with Next and End filled in."""
    chained = {}
    for index, (name, state) in enumerate(states):
        ends = {"Next", "End"} & set(state) or state["Type"] in ("Succeed", "Fail", "Choice")
        last = index == len(states) - 1
        way = {} if ends else {"End": True} if last else {"Next": states[index + 1][0]}
        chained[name] = {**state, **way}
    return chained


def endless() -> dict[str, Any]:
    """A machine that goes round and round without waiting."""
    rule = {"Variable": "$.never", "IsPresent": True, "Next": "End"}
    again = {"Type": "Choice", "Choices": [rule], "Default": "A"}
    return machine(("A", passing(Next="Q")), ("Q", again), ("End", {"Type": "Succeed"}))


def passing(**fields: Any) -> dict[str, Any]:
    """A Pass state."""
    return {"Type": "Pass", **fields}
