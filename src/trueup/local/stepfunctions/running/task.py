"""Task: one call to a service, with limits, retries and the three patterns of waiting for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trueup.local.stepfunctions.activities import Offer
from trueup.local.stepfunctions.errors import ApiError, EvaluationError, StateError
from trueup.local.stepfunctions.history import HistoryFull
from trueup.local.stepfunctions.integrations.catalogue import (
    missing_parameters,
    mistyped_parameters,
    unknown_parameters,
)
from trueup.local.stepfunctions.integrations.port import Request, Started
from trueup.local.stepfunctions.model import Task
from trueup.local.stepfunctions.parsing.failing import MAX_SECONDS
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.running.fallible import run_fallible
from trueup.local.stepfunctions.running.limits import Limits
from trueup.local.stepfunctions.running.task_events import ActivityEvents, TaskEvents, events_of
from trueup.local.stepfunctions.running.visit import Step, Visit, data_limit
from trueup.local.stepfunctions.running.workflow import PERFORMERS
from trueup.local.stepfunctions.tokens import Waiting
from trueup.local.stepfunctions.values import Document, Json, is_integer, to_text, too_large


async def _task(visit: Visit) -> Step:
    return await run_fallible(visit, lambda: _attempt(visit))


async def _attempt(visit: Visit) -> Step:
    state = visit.state
    assert isinstance(state, Task)
    execution = visit.strand.execution
    callback = execution.tokens.issue() if state.resource.has_token else None
    visit.token = callback.token if callback else None
    try:
        attempt = _prepare(visit, state, callback)
        result = await attempt.run()
    finally:
        visit.token = None
        if callback is not None:
            execution.tokens.close(callback)
    return visit.finish(visit.effective_result(state.result_selector, result.value))


def _prepare(visit: Visit, state: Task, callback: Waiting | None) -> _Attempt:
    given = visit.effective_input()
    parameters = Document(visit.effective_parameters(state.parameters, given))
    if too_large(parameters.text):
        raise data_limit(state.name)
    mocks = visit.strand.execution.mocks
    if mocks is None or not mocks.has(state.name):
        _check_parameters(state, parameters)
    limits = Limits(
        visit.strand.execution.clock,
        _seconds(visit, state.timeout, "TimeoutSecondsPath", given),
        _seconds(visit, state.heartbeat, "HeartbeatSecondsPath", given),
        callback.beats if callback else asyncio.Event(),
    )
    return _Attempt(visit, state, parameters, limits, callback, _role(visit, state, given))


def _role(visit: Visit, state: Task, given: Json) -> str | None:
    if state.credentials is None:
        return None
    role = visit.render(state.credentials, given).get("RoleArn")
    if not isinstance(role, str):
        raise EvaluationError(f"The RoleArn of Credentials has to be a string: {to_text(role)}")
    return role


def _check_parameters(state: Task, parameters: Document) -> None:
    """Names are known for good only now: without Parameters the state's input is what is called with."""
    resource = state.resource
    if resource.is_function or resource.is_activity:
        return
    given = parameters.value
    wrong = ["The Parameters have to be an object"]
    if isinstance(given, dict):
        wrong = [
            *unknown_parameters(resource, given),
            *missing_parameters(resource, given),
            *mistyped_parameters(resource, given),
        ]
    if wrong:
        raise EvaluationError(
            f"The Parameters '{parameters.text}' could not be used to start the Task: [{', '.join(wrong)}]"
        )


def _seconds(visit: Visit, setting: int | Path | None, field: str, given: Json) -> int | None:
    if not isinstance(setting, Path):
        return setting
    value = setting.select(visit.scope(given))
    if not is_integer(value) or not 0 < value <= MAX_SECONDS:
        raise EvaluationError(
            f"The {field} parameter does not reference a positive integer: {setting.text} == {to_text(value)}"
        )
    return int(value)


@dataclass(slots=True)
class _Attempt:
    """One attempt: call, wait as the pattern says, write what happened."""

    visit: Visit
    state: Task
    parameters: Document
    limits: Limits
    callback: Waiting | None
    role: str | None

    async def run(self) -> Document:
        """The result. Raises StateError."""
        events = events_of(self.visit, self.state.resource)
        if isinstance(events, ActivityEvents) and not self._mocked():
            self._check_activity()
        events.scheduled(self.parameters, self._settings())
        try:
            result = await self.limits.keep(self._call(events))
            self._check_size(result)
        except StateError as error:
            events.failed(error, timed_out=self.limits.expired)
            raise
        events.succeeded(result)
        return result

    def _check_activity(self) -> None:
        """Raises EvaluationError where there is nobody to ask for it: in the words of moto's engine, which
        was made to agree with AWS, and without an event of its own.
        """
        arn = self.state.resource.arn
        try:
            self.visit.strand.execution.services.activities.find(arn)
        except ApiError as missing:
            raise EvaluationError(f"The activity {arn} does not exist.") from missing

    def _settings(self) -> dict[str, Json]:
        settings = {
            "timeoutInSeconds": self.limits.timeout,
            "heartbeatInSeconds": self.limits.heartbeat,
            "taskCredentials": {"roleArn": self.role} if self.role else None,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def _check_size(self, result: Document) -> None:
        if too_large(result.text):
            resource = self.state.resource
            raise data_limit(resource.type or resource.arn)

    async def _call(self, events: TaskEvents) -> Document:
        if isinstance(events, ActivityEvents) and self.callback is not None and not self._mocked():
            offer = Offer(self.callback, self.parameters.text, events.started)
            await self.visit.strand.execution.services.activities.offer(self.state.resource.arn, offer)
            return await self.callback.future
        started = await self._start()
        if self.state.resource.is_callback and self.callback is not None and started.result is None:
            events.submitted(started.output)
            return await self.callback.future
        if started.result is None:
            return started.output
        return await self._wait(events, started)

    async def _start(self) -> Started:
        execution = self.visit.strand.execution
        request = Request(
            self.state.resource, self.parameters.value, execution.arn, execution.origin.machine_arn
        )
        if execution.mocks is not None and self._mocked():
            return execution.mocks.answer(self.state.name, request)
        call = asyncio.ensure_future(execution.integrations.start(request))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            # The call is on its way: whatever it starts has to be stopped once it is known.
            call.add_done_callback(self._stop_late)
            raise

    def _mocked(self) -> bool:
        mocks = self.visit.strand.execution.mocks
        return mocks is not None and mocks.has(self.state.name)

    def _stop_late(self, call: asyncio.Future[Started]) -> None:
        if not call.cancelled() and call.exception() is None:
            self._stop(call.result())

    async def _wait(self, events: TaskEvents, started: Started) -> Document:
        assert started.result is not None
        try:
            events.submitted(started.output)
            return await self._first(started.result)
        except (asyncio.CancelledError, HistoryFull):
            self._stop(started)
            raise

    async def _first(self, result: Callable[[], Awaitable[Document]]) -> Document:
        """What the job comes to, or what somebody says of it by its token before."""
        if self.callback is None:
            return await result()
        job = asyncio.ensure_future(result())
        try:
            await asyncio.wait([job, self.callback.future], return_when=asyncio.FIRST_COMPLETED)
            return self.callback.future.result() if self.callback.future.done() else job.result()
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    def _stop(self, started: Started) -> None:
        # AWS stops what a stopped execution or a failed sibling leaves behind, as best it can. Of a timeout
        # its documentation does not say so: what outlives its timeout goes on (aws-facts section 2.3).
        if started.stop is not None and not self.limits.expired:
            self.visit.strand.execution.spawn(started.stop)


PERFORMERS[Task] = _task
