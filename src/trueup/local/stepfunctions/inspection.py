"""What TestState watches while one state runs: each step of the data flow, and what became of an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.integrations.port import Request, Started
from trueup.local.stepfunctions.values import Document, Json, to_text

if TYPE_CHECKING:
    from trueup.local.stepfunctions.model import Resource


class Retriable(Exception):
    """A retrier would try the state again; a test does not."""

    def __init__(self, error: StateError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(slots=True)
class Inspection:
    """The data of one test by the API's names, as JSON text."""

    data: dict[str, str] = field(default_factory=dict)
    details: dict[str, Json] = field(default_factory=dict)
    """Which retrier or catcher took the error."""
    caught: StateError | None = None

    def see(self, name: str, value: Json) -> None:
        """Keep what a step of the data flow came to."""
        self.data[name] = to_text(value)

    def retry(self, index: int, delay: float, error: StateError) -> None:
        """End the test where the state would be tried again. Raises Retriable."""
        self.details = {"retryIndex": index, "retryBackoffIntervalSeconds": round(delay)}
        raise Retriable(error)

    def catch(self, index: int, error: StateError) -> None:
        """Keep which catcher goes on."""
        self.details = {"catchIndex": index}
        self.caught = error


@dataclass(frozen=True, slots=True)
class Mock:
    """The answer that a test gives in place of the call: stands where mock configurations do."""

    answer_with: Callable[[], Document]

    def has(self, _: str) -> bool:
        """Whether the state is mocked: the one under test is."""
        return True

    def answer(self, _: str, request: Request) -> Started:
        """The mocked answer. Raises StateError where the mock is an error."""
        output = self.answer_with()

        async def result() -> Document:
            return output

        return Started(output, result if waits(request.resource) else None)


def waits(resource: Resource) -> bool:
    """Whether a Task waits for more than an answer: such a one is tested with a mock alone."""
    return bool(resource.pattern) or resource.is_activity
