"""What every Lambda says of each call: one line with what it answered, or with what went wrong."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from trueup.logs import about, log_as_json
from trueup.model.base import cut

log = logging.getLogger("trueup.handling")

Event = Mapping[str, Any]
Handler = Callable[[dict[str, Any], object], dict[str, Any]]

_LONGEST = 300
_RUN_PATH = re.compile(r"/runs/([^/]+)")


def logged(handler: Handler) -> Handler:
    """A handler whose lines are JSON, and say of which run, slice, partition and launch they speak."""

    @wraps(handler)
    def told(event: dict[str, Any], context: object) -> dict[str, Any]:
        log_as_json()
        with about(**subjects(event)):
            try:
                answer = handler(event, context)
            except Exception:
                log.exception("the call failed")
                raise
            log.info("%s", _summary(event, answer))
            return answer

    return told


def subjects(event: Event) -> dict[str, Any]:
    """Of whom a call speaks, as far as its event says.

    An order of a machine names run, slice and launch; a call of the API its run and partition in its address;
    EventBridge the execution, which has the run's name; other events the run.
    """
    if "order" in event:
        order = event["order"]
        return {
            "run": order.get("runId"),
            "slice": order.get("slice", {}).get("sliceId"),
            "launch": event.get("number", {}).get("launch"),
        }
    if "rawPath" in event:
        found = _RUN_PATH.match(event["rawPath"])
        partition = (event.get("queryStringParameters") or {}).get("partition")
        return {"run": found.group(1) if found else None, "partition": partition}
    if "name" in event.get("detail", {}):
        return {"run": event["detail"]["name"].rpartition("-")[0]}
    return {"run": event.get("runId")}


def _summary(event: Event, answer: Event) -> str:
    if "statusCode" in answer:
        method = event.get("requestContext", {}).get("http", {}).get("method")
        return f"{method} {event.get('rawPath')}: {answer['statusCode']}"
    return cut(json.dumps(answer, ensure_ascii=False, default=str), _LONGEST)
