"""`states:startExecution` in its four patterns: executions started by executions, within the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from trueup.local.stepfunctions.errors import TASK_FAILED, ApiError, StateError
from trueup.local.stepfunctions.integrations.catalogue import OPTIMIZED
from trueup.local.stepfunctions.integrations.failures import optimized_error
from trueup.local.stepfunctions.integrations.metadata import metadata
from trueup.local.stepfunctions.integrations.port import Answer, Request, ServiceFailure, Started
from trueup.local.stepfunctions.values import Document, Json, to_text

if TYPE_CHECKING:
    from trueup.local.stepfunctions.running.execution import Execution


class Starts(Protocol):
    """Who can start an execution: the engine."""

    def start_execution(self, machine_arn: str, name: str | None, given: str | None) -> Execution:
        """Start one, or find the one of that name that runs with that input. Raises ApiError."""

    def request_id(self) -> str:
        """A new id for an answer."""


class StartExecution:
    """Starts a child and, with `.sync`, waits for its end; stopped, it stops the child."""

    def __init__(self, engine: Starts) -> None:
        self._engine = engine

    async def start(self, request: Request) -> Started:
        """Start the child. Raises StateError (`StepFunctions.StateMachineDoesNotExistException`, …)."""
        child = self._begin(request.parameters)
        parsed = request.resource.pattern == "sync:2"

        async def result() -> Document:
            await child.ended()
            return _result(child, parsed=parsed)

        async def stop() -> None:
            child.stop(None, None)

        waited = request.resource.pattern.startswith("sync")
        return Started(self._answer(child), result if waited else None, stop if waited else None)

    def _begin(self, parameters: Mapping[str, Json]) -> Execution:
        given = parameters.get("Input")
        text = given if given is None or isinstance(given, str) else to_text(given)
        try:
            return self._engine.start_execution(
                str(parameters.get("StateMachineArn")), parameters.get("Name"), text
            )
        except ApiError as error:
            failure = ServiceFailure(error.name, error.message, request_id=self._engine.request_id())
            raise optimized_error(OPTIMIZED["states"], failure) from error

    def _answer(self, child: Execution) -> Document:
        # AWS's servers write times in exponents, which shows in the length that is told.
        body = f'{{"executionArn":"{child.arn}","startDate":{child.started_at / 1e9:.12f}E9}}'
        answer = Answer({}, {"content-length": str(len(body))}, self._engine.request_id())
        started = {"ExecutionArn": child.arn, **metadata("states", answer)}
        return Document({**started, "StartDate": _millis(child.started_at)})


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


def _result(child: Execution, *, parsed: bool) -> Document:
    """The child as DescribeExecution tells it; `.sync:2` gives input and output as JSON, `.sync` as text
    (recorded on AWS: test_start_execution_sync, test_start_execution_sync2).
    """
    told: dict[str, Json] = {
        "ExecutionArn": child.arn,
        "Input": child.input.value if parsed else child.input.text,
        "InputDetails": {"Included": True},
        "Name": child.name,
    }
    if child.output is not None:
        told["Output"] = child.output.value if parsed else child.output.text
        told["OutputDetails"] = {"Included": True}
    told |= {
        "StartDate": _millis(child.started_at),
        "StateMachineArn": child.origin.machine_arn,
        "Status": child.status,
        "StopDate": _millis(child.stopped_at or child.started_at),
    }
    if child.status == "SUCCEEDED":
        return Document(told)
    words = {"Error": child.error, "Cause": child.cause, "Input": child.input.text}
    told |= {name: value for name, value in words.items() if value is not None}
    raise StateError(TASK_FAILED, to_text(dict(sorted(told.items()))))
