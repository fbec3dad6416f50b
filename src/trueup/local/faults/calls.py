"""Faults of the calls that machines make: it stands between the engine and the services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from trueup.local.faults.board import Board, Subject
from trueup.local.faults.launches import subject_of
from trueup.local.faults.model import AnswerLost, FunctionFailed
from trueup.local.stepfunctions import Answer, Calls, ServiceFailure

# aws-facts section 2: how Lambda tells of a process that died, and of one that took too long.
_LEFT = {
    "function-died": {
        "errorType": "Runtime.ExitError",
        "errorMessage": "Runtime exited with error: signal: killed",
    },
    "function-timed-out": {
        "errorType": "Sandbox.Timedout",
        "errorMessage": "Task timed out after 300.00 seconds",
    },
}


class FaultyCalls:
    """Makes those calls fail that the board picks, and passes the others on."""

    def __init__(self, board: Board, calls: Calls) -> None:
        self._board = board
        self._calls = calls
        self._going_on: set[asyncio.Task[Answer]] = set()

    async def call(self, service: str, action: str, parameters: Any) -> Answer:
        """Call an operation. Raises ServiceFailure."""
        if service == "lambda":
            return await self._function(action, parameters)
        if not self._board.given(AnswerLost):
            return await self._calls.call(service, action, parameters)
        subject = _subject(action, parameters)
        if not self._board.pick(AnswerLost, subject, action, lambda fault: fault.call in (None, action)):
            return await self._calls.call(service, action, parameters)
        await self._calls.call(service, action, parameters)
        raise ServiceFailure("SdkClientException", "Unable to execute HTTP request: Read timed out", status=0)

    async def _function(self, action: str, parameters: Any) -> Answer:
        if not self._board.given(FunctionFailed):
            return await self._calls.call("lambda", action, parameters)
        function = parameters["FunctionName"].rpartition("-")[2]
        subject = Subject(_run(parameters), function=function)
        picked = self._board.pick(
            FunctionFailed, subject, function, lambda fault: fault.function in (None, function)
        )
        if picked is None:
            return await self._calls.call("lambda", action, parameters)
        fault = picked[0].fault
        if fault.when != "before":
            going_on = asyncio.create_task(self._calls.call("lambda", action, parameters))
            self._going_on.add(going_on)
            going_on.add_done_callback(self._going_on.discard)
            if fault.when == "after":
                await going_on
        return Answer({"FunctionError": "Unhandled", "Payload": json.dumps(_LEFT[fault.fault]).encode()})


def _run(parameters: Mapping[str, Any]) -> str | None:
    """The run that a function is called for, where its event says so."""
    event = json.loads(parameters.get("Payload") or "null")
    if not isinstance(event, dict):
        return None
    order = event.get("order")
    return event.get("runId") or (order.get("runId") if isinstance(order, dict) else None)


def _subject(action: str, parameters: Any) -> Subject:
    """Whom a call of another service is for, where it says so."""
    if action == "runTask":
        containers = parameters.get("Overrides", {}).get("ContainerOverrides") or [{}]
        environment = {one["Name"]: one.get("Value", "") for one in containers[0].get("Environment", [])}
        return Subject(subject_of("", 0, environment).run, function=action)
    if action == "updateItem":
        return Subject(parameters["Key"].get("PK", {}).get("S", "").removeprefix("RUN#"), function=action)
    return Subject(function=action)
