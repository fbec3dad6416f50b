"""The names of functions' failures, out of the traceback that the emulator writes to their log.

The form is Lambda's (recorded on AWS: error_handling/test_task_lambda.py::…::test_no_such_function_catch).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from trueup.local.stepfunctions.integrations.function_errors import named

TRACE = """\
Traceback (most recent call last):
  File "/tmp/worker.py", line 324, in run
    result = handler_fn(event, context)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/var/task/handler.py", line 2, in handler
    raise {raised}
{last}
"""


def failure(message: str, log: str, kind: str = "Runtime.HandlerError") -> Any:
    payload = json.dumps({"errorMessage": message, "errorType": kind}).encode()
    return json.loads(named(payload, base64.b64encode(log.encode()).decode(), "request-1"))


@pytest.mark.parametrize(
    ("message", "last", "wanted"),
    [
        ("division by zero", "ZeroDivisionError: division by zero", "ZeroDivisionError"),
        ("no", "app.errors.Refused: no", "Refused"),
        ("first\n\nthird: no", "app.Refused: first\n\nthird: no", "Refused"),
        ("", "KeyboardInterrupt", "KeyboardInterrupt"),
    ],
    ids=["builtin", "of a module", "of many lines", "without words"],
)
def test_the_class_the_stack_and_the_request_are_told(message: str, last: str, wanted: str) -> None:
    log = "printed before\n" + TRACE.format(raised="x", last=last)
    assert {
        "errorMessage": message,
        "errorType": wanted,
        "requestId": "request-1",
        "stackTrace": ['  File "/var/task/handler.py", line 2, in handler\n    raise x\n'],
    } == failure(message, log)


def test_a_cause_has_blanks_as_lambda_writes_it() -> None:
    payload = json.dumps({"errorMessage": "ü", "errorType": "Runtime.HandlerError"}).encode()
    log = base64.b64encode(TRACE.format(raised="x", last="E: ü").encode()).decode()
    assert named(payload, log, "r").decode().startswith('{"errorMessage": "ü", "errorType": "E", "requestId"')


def test_a_process_that_died_is_an_exit_error() -> None:
    # aws-facts section 2, [dg:concepts-error-handling]: unhandled errors of the runtime.
    told = failure("Worker process died", "")
    assert "Runtime.ExitError" == told["errorType"]
    assert "RequestId: request-1 Error: Runtime exited with error: exit status 1" == told["errorMessage"]


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("Sandbox.Timedout", "Whatever: no"),
        ("Runtime.HandlerError", "nothing that names it"),
        ("Runtime.HandlerError", "a log that ends with: no"),
    ],
)
def test_what_has_a_name_or_cannot_be_named_stays_as_it_is(kind: str, log: str) -> None:
    assert {"errorMessage": "no", "errorType": kind} == failure("no", log, kind)


@pytest.mark.parametrize("payload", [b"", b"no JSON", b"[1]"])
def test_what_is_no_failure_of_that_form_stays_as_it_is(payload: bytes) -> None:
    assert payload == named(payload, "", "r")
