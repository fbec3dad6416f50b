"""Step Functions Local's mock configuration: answers instead of calls, by state and attempt
([dg:sfn-local-test-sm-exec]).

    {"StateMachines": {"<machine>": {"TestCases": {"<case>": {"<state>": "<response>"}}}},
     "MockedResponses": {"<response>": {"0": {"Return": …}, "1-3": {"Throw": {"Error": …, "Cause": …}}}}}

An execution of `<machine ARN>#<case>` uses a case. Attempts are counted per state over the whole execution,
its Map's children included, and every attempt needs a response (aws-facts section 6.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from trueup.local.stepfunctions.errors import RUNTIME, ApiError, StateError
from trueup.local.stepfunctions.integrations.port import Request, Started
from trueup.local.stepfunctions.model import Map, Parallel, Workflow
from trueup.local.stepfunctions.values import Document, Json, from_text

_ATTEMPTS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class MockError(ValueError):
    """The mock configuration cannot be read: says where and why."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a range of attempts: a value, or an error."""

    first: int
    last: int
    value: Json = None
    thrown: tuple[str | None, str | None] | None = None


@dataclass(slots=True)
class Mocks:
    """The answers of one execution. Tasks whose state is not named make their calls."""

    responses: Mapping[str, tuple[Response, ...]]
    _attempts: Counter[str] = field(default_factory=Counter)

    def has(self, state: str) -> bool:
        """Whether a state is mocked."""
        return state in self.responses

    def answer(self, state: str, request: Request) -> Started:
        """The answer to a state's next attempt. Raises StateError."""
        attempt = self._attempts[state]
        self._attempts[state] += 1
        for response in self.responses[state]:
            if response.first <= attempt <= response.last:
                return self._give(response, request)
        raise StateError(RUNTIME, f"No mocked response for attempt {attempt} of state '{state}'")

    def _give(self, response: Response, request: Request) -> Started:
        if response.thrown is not None:
            raise StateError(*response.thrown)
        output = Document(response.value)

        async def result() -> Document:
            return output

        waits = request.resource.pattern or request.resource.is_activity
        return Started(output, result if waits else None)


class MockConfiguration:
    """A whole configuration file."""

    def __init__(self, raw: Json) -> None:
        """Read the parsed file. Raises MockError."""
        self._responses = {
            name: _responses(name, attempts) for name, attempts in _object(raw, "MockedResponses").items()
        }
        self._machines = {
            name: {case: _case(case, states) for case, states in _object(machine, "TestCases").items()}
            for name, machine in _object(raw, "StateMachines").items()
        }

    @classmethod
    def read(cls, path: Path) -> MockConfiguration:
        """Read a file. Raises MockError."""
        try:
            return cls(from_text(path.read_bytes(), unique=True))
        except MockError as error:
            raise MockError(f"the mock configuration {path}: {error}") from error
        except (OSError, ValueError) as error:
            raise MockError(f"the mock configuration {path} cannot be read: {error}") from error

    def case(self, machine: str, case: str, workflow: Workflow) -> Mocks:
        """A fresh set of answers for an execution of a workflow.

        Raises ApiError where there is no such case, or it names a response or a state that there is not: a
        state that was renamed would make its call.
        """
        cases = self._machines.get(machine, {})
        if case not in cases:
            raise ApiError(
                "ValidationException", f"Mock case '{case}' of state machine '{machine}' does not exist"
            )
        missing = [name for name in cases[case].values() if name not in self._responses]
        if missing:
            raise ApiError("ValidationException", f"Mocked response '{missing[0]}' does not exist")
        strange = cases[case].keys() - set(_names(workflow))
        if strange:
            raise ApiError(
                "ValidationException",
                f"Mock case '{case}' names the state '{min(strange)}', "
                f"which the state machine '{machine}' does not have",
            )
        return Mocks({state: self._responses[name] for state, name in cases[case].items()})


def _names(workflow: Workflow) -> Iterator[str]:
    """The names of all states, those within states among them."""
    for name, state in workflow.states.items():
        yield name
        if isinstance(state, Map):
            yield from _names(state.processor)
        elif isinstance(state, Parallel):
            yield from chain.from_iterable(map(_names, state.branches))


def _object(raw: Json, field_name: str) -> Mapping[str, Json]:
    found = raw.get(field_name, {}) if isinstance(raw, dict) else None
    if not isinstance(found, dict):
        raise MockError(f"{field_name} has to be an object")
    return found


def _case(case: str, states: Json) -> Mapping[str, str]:
    if not isinstance(states, dict) or not all(isinstance(name, str) for name in states.values()):
        raise MockError(f"the case '{case}' has to be an object of responses by state")
    return states


def _responses(name: str, attempts: Json) -> tuple[Response, ...]:
    if not isinstance(attempts, dict):
        raise MockError(f"the mocked response '{name}' has to be an object")
    responses = sorted(
        (_response(name, key, value) for key, value in attempts.items()), key=lambda one: one.first
    )
    for one, after in pairwise(responses):
        if after.first <= one.last:
            raise MockError(f"the mocked response '{name}' answers attempt {after.first} twice")
    return tuple(responses)


def _response(name: str, key: str, value: Json) -> Response:
    found = _ATTEMPTS.fullmatch(key)
    if found is None:
        raise MockError(
            f"'{key}' in the mocked response '{name}' is neither an attempt nor a range of attempts"
        )
    bounds = int(found[1]), int(found[2] or found[1])
    if bounds[0] > bounds[1]:
        raise MockError(f"the attempts '{key}' of the mocked response '{name}' run backwards")
    if not isinstance(value, dict) or ("Return" in value) is ("Throw" in value):
        raise MockError(f"attempt '{key}' of the mocked response '{name}' has either a Return or a Throw")
    if "Return" in value:
        return Response(*bounds, value=value["Return"])
    thrown = value["Throw"]
    if not isinstance(thrown, dict) or not isinstance(thrown.get("Error"), str):
        raise MockError(f"the Throw of attempt '{key}' of the mocked response '{name}' has no Error")
    return Response(*bounds, thrown=(thrown.get("Error"), thrown.get("Cause")))
