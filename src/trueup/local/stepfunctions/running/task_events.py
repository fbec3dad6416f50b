"""What a Task writes to the history: Lambda functions named by ARN have events of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.history import data, failure
from trueup.local.stepfunctions.model import Resource
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.values import Document, Json


class TaskEvents(Protocol):
    """The events of one attempt."""

    def scheduled(self, parameters: Document, settings: Mapping[str, Json]) -> None:
        """It is about to be called, and the call has begun."""

    def submitted(self, output: Document) -> None:
        """The service has taken it, and the work goes on."""

    def succeeded(self, output: Document) -> None:
        """It has a result."""

    def failed(self, error: StateError, *, timed_out: bool) -> None:
        """It has none."""


class ServiceEvents:
    """TaskScheduled, …Started, …Submitted, …SubmitFailed, …Succeeded, …Failed, …TimedOut."""

    def __init__(self, visit: Visit, resource: Resource) -> None:
        self._visit = visit
        self._to_submit = resource.pattern != ""
        """Whether the service has yet to take what is then waited for."""
        self._which = {"resourceType": resource.type, "resource": resource.name}

    def scheduled(self, parameters: Document, settings: Mapping[str, Json]) -> None:
        """With the parameters as JSON text, and the limits and the role that the definition gives."""
        region = self._visit.strand.execution.region
        details = {**self._which, "region": region, "parameters": parameters, **settings}
        self._visit.note("TaskScheduled", "taskScheduledEventDetails", details)
        self._visit.note("TaskStarted", "taskStartedEventDetails", self._which)

    def submitted(self, output: Document) -> None:
        """With what the service answered."""
        self._to_submit = False
        details = {**self._which, **data("output", output)}
        self._visit.note("TaskSubmitted", "taskSubmittedEventDetails", details)

    def succeeded(self, output: Document) -> None:
        """With the result."""
        details = {**self._which, **data("output", output)}
        self._visit.note("TaskSucceeded", "taskSucceededEventDetails", details)

    def failed(self, error: StateError, *, timed_out: bool) -> None:
        """With error and cause."""
        kind = "TimedOut" if timed_out else "SubmitFailed" if self._to_submit else "Failed"
        details = {**self._which, **failure(error.error, error.cause)}
        self._visit.note(f"Task{kind}", f"task{kind}EventDetails", details)


class FunctionEvents:
    """LambdaFunctionScheduled, …Started, …Succeeded, …Failed, …TimedOut."""

    def __init__(self, visit: Visit, resource: Resource) -> None:
        self._visit = visit
        self._arn = resource.arn

    def scheduled(self, parameters: Document, settings: Mapping[str, Json]) -> None:
        """With the payload as input."""
        details = {"resource": self._arn, **data("input", parameters), **settings}
        details.pop("heartbeatInSeconds", None)
        self._visit.note("LambdaFunctionScheduled", "lambdaFunctionScheduledEventDetails", details)
        self._visit.note("LambdaFunctionStarted")

    def submitted(self, output: Document) -> None:
        """Functions named by ARN are always waited for."""

    def succeeded(self, output: Document) -> None:
        """With what the function returned."""
        details = data("output", output)
        self._visit.note("LambdaFunctionSucceeded", "lambdaFunctionSucceededEventDetails", details)

    def failed(self, error: StateError, *, timed_out: bool) -> None:
        """With error and cause."""
        kind = "TimedOut" if timed_out else "Failed"
        details = failure(error.error, error.cause)
        self._visit.note(f"LambdaFunction{kind}", f"lambdaFunction{kind}EventDetails", details)


class ActivityEvents:
    """ActivityScheduled, …Started, …Succeeded, …Failed, …TimedOut."""

    def __init__(self, visit: Visit, resource: Resource) -> None:
        self._visit = visit
        self._arn = resource.arn

    def scheduled(self, parameters: Document, settings: Mapping[str, Json]) -> None:
        """With the input that a worker will get."""
        details = {"resource": self._arn, **data("input", parameters), **settings}
        self._visit.note("ActivityScheduled", "activityScheduledEventDetails", details)

    def started(self, worker: str | None) -> None:
        """A worker has taken it."""
        if self._visit.strand.history.closed:
            return  # the execution has ended, and the worker will be told so when it answers
        details = {} if worker is None else {"workerName": worker}
        self._visit.note("ActivityStarted", "activityStartedEventDetails", details)

    def submitted(self, output: Document) -> None:
        """An activity is started by its worker."""

    def succeeded(self, output: Document) -> None:
        """With what the worker sent."""
        self._visit.note("ActivitySucceeded", "activitySucceededEventDetails", data("output", output))

    def failed(self, error: StateError, *, timed_out: bool) -> None:
        """With error and cause."""
        kind = "TimedOut" if timed_out else "Failed"
        details = failure(error.error, error.cause)
        self._visit.note(f"Activity{kind}", f"activity{kind}EventDetails", details)


def events_of(visit: Visit, resource: Resource) -> ServiceEvents | FunctionEvents | ActivityEvents:
    """The events that fit the resource."""
    if resource.is_activity:
        return ActivityEvents(visit, resource)
    return FunctionEvents(visit, resource) if resource.is_function else ServiceEvents(visit, resource)
