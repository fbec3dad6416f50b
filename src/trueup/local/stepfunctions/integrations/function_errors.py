"""What a function's failure is called, where the emulator that ran it does not say.

Lambda's Python runtime names the class of the exception and shows its stack; MiniStack calls each exception
Runtime.HandlerError, and writes the traceback to the function's log, whose end the answer brings along.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from trueup.local.stepfunctions.values import Json, from_text, to_text

TAIL = {"LogType": "Tail"}
"""Asks for the end of the log."""
_UNNAMED = "Runtime.HandlerError"
_DIED = "Worker process died"
_HEADER = "Traceback (most recent call last):\n"
_OWN_FRAME = ", in run"
"""The emulator's, which the handler is called from; Lambda leaves out its own."""
_FRAME = re.compile(r'^  File "(?:[^\n]*\n)(?:    [^\n]*\n)*', re.MULTILINE)


def named(payload: bytes, log: str, request_id: str) -> bytes:
    """The payload of a failed call with the class, the stack and the request, as Lambda writes it.

    As it came, where it has a name already or the log does not tell one. `log` is in Base64.
    """
    told = _read(payload)
    if told.get("errorType") != _UNNAMED:
        return payload
    message = str(told.get("errorMessage", ""))
    if message.startswith(_DIED):
        ended = f"RequestId: {request_id} Error: Runtime exited with error: exit status 1"
        return to_text({"errorType": "Runtime.ExitError", "errorMessage": ended}).encode()
    text = base64.b64decode(log).decode(errors="replace").rstrip("\n")
    name = _class(text, message)
    if name is None:
        return payload
    stack = _FRAME.findall(text.rpartition(_HEADER)[2])
    if stack and stack[0].partition("\n")[0].endswith(_OWN_FRAME):
        del stack[0]
    failure = {"errorMessage": message, "errorType": name, "requestId": request_id, "stackTrace": stack}
    # With blanks, as json.dumps has them: so a cause shows it (recorded: test_no_such_function_catch).
    return _spaced(failure).encode()


def _read(payload: bytes) -> Mapping[str, Json]:
    try:
        value = from_text(payload)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _class(log: str, message: str) -> str | None:
    """The name of the class in the last line of a traceback, without its module."""
    head = log.rpartition(f": {message}")[0] if message else log
    name = head.rpartition("\n")[2].strip(" |+").rpartition(".")[2]
    return name if name.isidentifier() else None


def _spaced(failure: Mapping[str, Json]) -> str:
    members = [f"{to_text(key)}: {to_text(value)}" for key, value in failure.items() if key != "stackTrace"]
    frames = ", ".join(map(to_text, failure["stackTrace"]))
    return "{" + ", ".join([*members, f'"stackTrace": [{frames}]']) + "}"
