"""Lambda: functions named by their ARN, and `lambda:invoke`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.integrations.catalogue import OPTIMIZED
from trueup.local.stepfunctions.integrations.failures import optimized_error
from trueup.local.stepfunctions.integrations.metadata import metadata
from trueup.local.stepfunctions.integrations.port import Answer, Calls, Request, ServiceFailure, Started
from trueup.local.stepfunctions.integrations.shapes import read_bytes
from trueup.local.stepfunctions.values import Document, Json, from_text, to_text

_WAITED = 200
"""The status of an invocation that brought the function's answer along."""


class Function:
    """A Task whose Resource is a function's ARN: payload in, what it returned out."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def start(self, request: Request) -> Started:
        """Invoke it. Raises StateError with the error type that the function raised."""
        parameters = {"FunctionName": request.resource.arn, "Payload": to_text(request.parameters)}
        _, text = await _invoke(self._calls, parameters)
        # The function's own text is kept, also as a cause (recorded on AWS: test_no_such_function_catch).
        return Started(Document(_parse(text), text))


class Invoke:
    """`lambda:invoke`: the answer to the Invoke call, with the payload parsed."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def start(self, request: Request) -> Started:
        """Invoke it. Raises StateError."""
        parameters = dict(request.parameters)
        if "Payload" in parameters:
            parameters["Payload"] = to_text(parameters["Payload"])
        answer, text = await _invoke(self._calls, parameters, compact=True)
        given = {name: value for name, value in answer.output.items() if name != "Payload"}
        waited = given.get("StatusCode", 200) == _WAITED
        defaults = {"ExecutedVersion": "$LATEST", "StatusCode": _WAITED} if waited else {}
        # An invocation of type Event answers before the function does, with a body of nothing.
        payload = _parse(text) if text or waited else ""
        output = {**defaults, **given, "Payload": payload, **metadata("lambda", answer)}
        return Started(Document(dict(sorted(output.items()))))


async def _invoke(
    calls: Calls, parameters: Mapping[str, Json], *, compact: bool = False
) -> tuple[Answer, str]:
    try:
        answer = await calls.call("lambda", "invoke", parameters)
    except ServiceFailure as failure:
        raise optimized_error(OPTIMIZED["lambda"], failure) from failure
    text = _payload(answer.output)
    if answer.output.get("FunctionError"):
        raise _function_error(text, compact=compact)
    return answer, text


def _payload(output: Mapping[str, Any]) -> str:
    return read_bytes(output.get("Payload", b"")).decode(errors="replace")


def _function_error(text: str, *, compact: bool) -> StateError:
    payload = _parse(text)
    kind = payload.get("errorType") if isinstance(payload, dict) else None
    if not kind:
        cause = "The cause could not be determined because Lambda did not return an error type."
        return StateError("Lambda.Unknown", f"{cause} Returned payload: {text}")
    # lambda:invoke writes the payload anew, a function's ARN gives it as it came (recorded on AWS:
    # test_raise_exception_catch against test_no_such_function_catch).
    return StateError(kind, to_text(payload) if compact else text)


def _parse(text: str) -> Json:
    if not text:
        return None
    try:
        return from_text(text)
    except ValueError:
        return text
