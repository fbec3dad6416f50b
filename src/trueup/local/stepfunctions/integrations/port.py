"""The one port between Task states and the services that they call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueup.local.stepfunctions.model import Resource
from trueup.local.stepfunctions.values import Document, Json


@dataclass(frozen=True, slots=True)
class Request:
    """A Task's call: its resource, its parameters as the state made them, and who calls."""

    resource: Resource
    parameters: Json
    execution_arn: str
    machine_arn: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """What came of a call.

    `output` is what the service answered. With the `.sync` patterns `result` waits for the work to end and
    gives its output or raises StateError, and `stop` ends the work when the execution is stopped.
    """

    output: Document
    result: Callable[[], Awaitable[Document]] | None = None
    stop: Callable[[], Awaitable[None]] | None = None


class Integration(Protocol):
    """Something that a Task can call."""

    async def start(self, request: Request) -> Started:
        """Make the call. Raises StateError, named and worded as AWS does for this service."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A service's answer: what botocore made of it, and how it came."""

    output: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    request_id: str = ""
    status: int = 200


class ServiceFailure(Exception):
    """A service refused, or could not be reached (`status` 0)."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        request_id: str = "",
        extended_id: str = "",
        shape: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.request_id = request_id
        self.extended_id = extended_id
        """The second id that S3 gives to a request; other services give none."""
        self.shape = shape or code
        """What the service's model calls it, where its code is an older name (SQS)."""


class Calls(Protocol):
    """How services are reached; botocore in the product, a table of answers in tests."""

    async def call(self, service: str, action: str, parameters: Json) -> Answer:
        """Call an operation by botocore's name of the service and the action as Tasks write it.

        Raises ServiceFailure.
        """
