"""From an event to an answer: find the route, do it, and tell what went wrong as a problem."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.errors import NotFound, TrueupError
from trueup.handling.api.asking import Call, call_of
from trueup.handling.api.problems import FAULT, NO_METHOD, NO_ROUTE, UNSIGNED, Problem, problem_of
from trueup.handling.api.routes import LONGEST_PART, ROUTES, Route
from trueup.handling.api.services import Services
from trueup.model.base import Value, cut
from trueup.model.view import Html, Pending, Started
from trueup.texts import in_json

log = logging.getLogger("trueup.api")

Answer = dict[str, Any]
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Api:
    """Answers calls."""

    services: Services

    def handle(self, event: Mapping[str, Any]) -> Answer:
        """The answer to an event of payload format 2.0. Raises nothing."""
        try:
            return self._answer(call_of(event))
        except TrueupError as error:
            return _problem(problem_of(error))
        except Exception:
            log.exception("a call failed")
            return _problem(FAULT.problem("Nothing more is known here.", "Look at the logs of the API."))

    def _answer(self, call: Call) -> Answer:
        if not call.caller:
            return _problem(UNSIGNED.problem("No identity came with it.", "Sign the call with SigV4."))
        found = [(route, parts) for route in ROUTES if (parts := route.takes(call.path)) is not None]
        if not found:
            paths = ", ".join(sorted({route.path for route in ROUTES}))
            return _problem(NO_ROUTE.problem(f"There is no {call.path}.", f"There are {paths}."))
        for route, parts in found:
            if route.method == call.method:
                _may_exist(parts)
                return _told(route, route.do(self.services, call, **parts))
        methods = ", ".join(route.method for route, _ in found)
        problem = NO_METHOD.problem(f"{call.path} does not take {call.method}.", f"It takes {methods}.")
        return _problem(problem, allow=methods)


def _may_exist(parts: Mapping[str, str]) -> None:
    """Raises NotFound for what is too long to be the name of anything."""
    for part in parts.values():
        if len(part) > LONGEST_PART:
            raise NotFound(f"There is no {cut(part, 40)}.", remedy="Check it: it is too long for a name.")


def _told(route: Route, value: Value) -> Answer:
    if isinstance(value, Html):
        return {"statusCode": 200, "headers": {"content-type": _HTML}, "body": value.text}
    status = next(status for status, model in route.answers.items() if isinstance(value, model))
    headers = {"location": value.location} if isinstance(value, Started | Pending) else {}
    return answer(status, value.document(), **headers)


def _problem(problem: Problem, **headers: str) -> Answer:
    document = {name: part for name, part in problem.document().items() if part is not None}
    return answer(problem.status, document, kind="application/problem+json", **headers)


def answer(status: int, document: object, *, kind: str = "application/json", **headers: str) -> Answer:
    """An answer of payload format 2.0 with a JSON document."""
    return {"statusCode": status, "headers": {"content-type": kind, **headers}, "body": in_json(document)}
