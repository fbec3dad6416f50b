"""What shall go wrong in which run: with its launches, with its machines' calls, with its tasks' words.

One stack serves many runs at once, so trouble is planned for a run, and the others are left alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.local.ecs import REFUSALS, Fate, Launch, Refusal
from trueup.local.stepfunctions import Answer, Calls, ServiceFailure

FUNCTIONS_AT_ONCE = 2
"""The emulator keeps a process for each call of a function that goes on beside others."""

DIED = {"errorType": "Runtime.ExitError", "errorMessage": "Runtime exited with error: signal: killed"}
TIMED_OUT = {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 300.00 seconds"}

When = Literal["before", "meanwhile", "after"]


@dataclass(slots=True)
class Mishap:
    """A call that seems to have failed: of a function by its name, `runTask` or `updateItem`.

    `before` nothing was done, `meanwhile` it still goes on, `after` all was done. `answer` is what a function
    left; the call of any other service was not answered.
    """

    what: str
    when: When
    answer: Mapping[str, str] = field(default_factory=lambda: DIED)
    times: int = 1


@dataclass(slots=True)
class Word:
    """What becomes of a word of the run's tasks: `Success`, `Failure` or `Heartbeat`."""

    kind: str
    how: Literal["lost", "twice", "late"]
    times: int = 1


@dataclass(slots=True)
class Trouble:
    """All that goes wrong in one run."""

    refusals: list[str] = field(default_factory=list)
    """Names of REFUSALS, for its first calls of RunTask."""
    fates: Mapping[int, Fate] = field(default_factory=dict)
    """By launch number."""
    calls: Sequence[Mishap] = ()
    words: Sequence[Word] = ()


class Troubles:
    """The trouble of every run: a rule of ECS's faults, and what stands between machines and services."""

    def __init__(self) -> None:
        self._of_run: dict[str, Trouble] = {}
        self._of_token: dict[str, str] = {}

    def plan(self, run_id: str, trouble: Trouble) -> None:
        """Before anything of the run is started."""
        self._of_run[run_id] = trouble

    def of(self, run_id: str) -> Trouble:
        """The trouble of a run: none where none was planned."""
        return self._of_run.get(run_id, Trouble())

    def run_of(self, token: str) -> str:
        """The run whose task was given a task token."""
        return self._of_token[token]

    def refuses(self, launch: Launch) -> Refusal | None:
        """The run's next refusal."""
        left = self.of(_order(launch.environment)["runId"]).refusals
        return REFUSALS[left.pop(0)] if left else None

    def fate(self, launch: Launch) -> Fate:
        """That of the launch's number."""
        order = _order(launch.environment)
        if "TRUEUP_TASK_TOKEN" in launch.environment:
            self._of_token[launch.environment["TRUEUP_TASK_TOKEN"]] = order["runId"]
        return self.of(order["runId"]).fates.get(order["launch"], Fate())

    def loses(self, task: str) -> bool:
        """Never."""
        return False

    def between(self, calls: Calls) -> Calls:
        """What makes calls go wrong, for the stack's option of this name."""
        return _FaultyCalls(self, calls)


def used_up(things: Sequence[Mishap | Word], name: str) -> Mishap | Word | None:
    """The first that is meant for this name and has not struck as often as it should."""
    for one in things:
        if one.times > 0 and name == (one.what if isinstance(one, Mishap) else one.kind):
            one.times -= 1
            return one
    return None


class _FaultyCalls:
    def __init__(self, troubles: Troubles, calls: Calls) -> None:
        self._troubles = troubles
        self._calls = calls
        self._room = asyncio.Semaphore(FUNCTIONS_AT_ONCE)
        self._going_on: set[asyncio.Task[Answer]] = set()

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        run_id, what = _about(service, action, parameters)
        mishap = used_up(self._troubles.of(run_id).calls, what)
        if not isinstance(mishap, Mishap):
            return await self._call(service, action, parameters)
        if mishap.when != "before":
            going_on = asyncio.create_task(self._call(service, action, parameters))
            self._going_on.add(going_on)
            going_on.add_done_callback(self._going_on.discard)
            if mishap.when == "after":
                await going_on
        if service == "lambda":
            return Answer({"FunctionError": "Unhandled", "Payload": json.dumps(mishap.answer).encode()})
        raise ServiceFailure("SdkClientException", "Unable to execute HTTP request: Read timed out", status=0)

    async def _call(self, service: str, action: str, parameters: Any) -> Answer:
        if service != "lambda":
            return await self._calls.call(service, action, parameters)
        async with self._room:
            return await self._calls.call(service, action, parameters)


def _about(service: str, action: str, parameters: Any) -> tuple[str, str]:
    """Which run a call is for, and what it is."""
    if service == "lambda":
        event = json.loads(parameters["Payload"])
        # Functions of others have other events.
        run_id = event.get("runId") or event.get("order", {}).get("runId", "")
        return run_id, parameters["FunctionName"].rpartition("-")[2]
    if action == "runTask":
        container = parameters["Overrides"]["ContainerOverrides"][0]
        return _order({one["Name"]: one["Value"] for one in container["Environment"]})["runId"], action
    if action == "updateItem":
        return parameters["Key"]["PK"]["S"].removeprefix("RUN#"), action
    return "", action


def _order(environment: Mapping[str, str]) -> dict[str, Any]:
    text = environment.get("TRUEUP_ORDER") or environment["TRUEUP_NAMING"]
    found: dict[str, Any] = json.loads(text)
    return found
