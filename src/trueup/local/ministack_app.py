"""MiniStack, but that its rules, schedules and pipes start executions at AWS_ENDPOINT_URL_SFN.

Its own Step Functions would run them, or not know the machine. This is what the server's process loads.
"""

from __future__ import annotations

import json
import logging
import os
import urllib.error
import urllib.request
from typing import Any

from ministack.app import app
from ministack.services import eventbridge, pipes

__all__ = ["app"]

log = logging.getLogger(__name__)

_SECONDS = 30.0


def _start(machine: str, given: str) -> bool:
    """Start an execution, as nobody in particular. Whether it was started; why not is in the log."""
    request = urllib.request.Request(  # noqa: S310 - the stack's own address
        os.environ["AWS_ENDPOINT_URL_SFN"],
        json.dumps({"stateMachineArn": machine, "input": given}).encode(),
        {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AWSStepFunctions.StartExecution"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310 - as above
            return True
    except urllib.error.HTTPError as refusal:
        log.warning("%s was not started: %s", machine, refusal.read().decode(errors="replace"))
    except OSError as error:
        log.warning("%s was not started: %s", machine, error)
    return False


def _start_with_records(machine: str, pipe: Any, records: list[Any]) -> bool:
    return _start(machine, json.dumps(records))


for module, name, ours in (
    (eventbridge, "_dispatch_to_stepfunctions", _start),
    (pipes, "_start_state_machine_from_records", _start_with_records),
):
    if not callable(getattr(module, name, None)):
        raise ImportError(f"{module.__name__} has no {name}: another MiniStack than the lock's?")
    setattr(module, name, ours)
