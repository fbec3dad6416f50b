"""The events of one execution, numbered from 1, each pointing to the one before it on its own path."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trueup.local.stepfunctions.values import Document, Json

MAX_EVENTS = 25_000
"""Event 25,000 is the failure itself (aws-facts section 1.1, measured on AWS)."""

HISTORY_FULL = f"The execution reached the maximum number of history events ({MAX_EVENTS})."

_DATA = ("input", "output", "parameters", "assignedVariables")


class HistoryFull(Exception):
    """There is room for one event only: the one that ends the execution."""


@dataclass(slots=True)
class Event:
    """One event. `details` holds Documents, whose text is made when somebody reads the history."""

    id: int
    previous: int
    type: str
    timestamp: float
    field: str | None
    """The name of the details in the API's answer; None for events that have none."""
    details: Mapping[str, Json]

    def as_answer(self, *, data: bool = True) -> dict[str, Json]:
        """The event as GetExecutionHistory gives it; `data` as includeExecutionData."""
        answer: dict[str, Json] = {
            "timestamp": self.timestamp,
            "type": self.type,
            "id": self.id,
            "previousEventId": self.previous,
        }
        if self.field is not None:
            details = {key: _answer(value) for key, value in self.details.items() if data or key not in _DATA}
            answer[self.field] = details
        return answer


def _answer(value: Json) -> Json:
    if isinstance(value, Document):
        return value.text
    if isinstance(value, dict):
        return {key: _answer(inner) for key, inner in value.items()}
    return value


class History:
    """Events of one life of an execution. Once closed it takes no more, and cuts off who still writes."""

    def __init__(self, now: Callable[[], float], events: list[Event] | None = None) -> None:
        self.events: list[Event] = [] if events is None else events
        self.closed = False
        self.hear: Callable[[Event], None] | None = None
        """Hears of each event, where the machine logs."""
        self._now = now

    def add(
        self, kind: str, previous: int, field: str | None = None, details: Mapping[str, Json] | None = None
    ) -> int:
        """Note an event, and give its number.

        Raises HistoryFull when only the last one would fit, CancelledError where the execution has ended:
        whoever has not heard of it yet must not go on and leave no trace.
        """
        if self.closed:
            raise CancelledError
        if len(self.events) >= MAX_EVENTS - 1:
            raise HistoryFull
        return self._append(kind, previous, field, details or {})

    def close(self, kind: str, previous: int, field: str, details: Mapping[str, Json]) -> None:
        """Note the event that ends the execution."""
        if not self.closed:
            self._append(kind, previous, field, details)
            self.closed = True

    def reopened(self) -> History:
        """The same events for the next life of a redriven execution."""
        history = History(self._now, self.events)
        history.hear = self.hear
        return history

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return len(self.events)

    def _append(self, kind: str, previous: int, field: str | None, details: Mapping[str, Json]) -> int:
        number = len(self.events) + 1
        event = Event(number, previous, kind, self._now(), field, details)
        self.events.append(event)
        if self.hear is not None:
            self.hear(event)
        return number


WHOLE_DATA = {"truncated": False}
"""`inputDetails` and `outputDetails`: the API never truncates."""


def data(name: str, document: Document) -> dict[str, Json]:
    """An input or output with its details, as events carry it."""
    return {name: document, f"{name}Details": WHOLE_DATA}


def failure(error: str | None, cause: str | None) -> dict[str, Json]:
    """Error and cause, as far as there are any."""
    details: dict[str, Json] = {}
    if cause is not None:
        details["cause"] = cause
    if error is not None:
        details["error"] = error
    return details
