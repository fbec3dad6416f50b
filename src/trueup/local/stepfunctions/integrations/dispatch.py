"""Which integration a Task's resource goes to."""

from __future__ import annotations

from trueup.local.stepfunctions.integrations.containers import RunTask
from trueup.local.stepfunctions.integrations.executions import StartExecution, Starts
from trueup.local.stepfunctions.integrations.functions import Function, Invoke
from trueup.local.stepfunctions.integrations.port import Calls, Integration, Request, Started
from trueup.local.stepfunctions.integrations.services import OneCall, PutEvents, SdkCall
from trueup.local.stepfunctions.integrations.task_watch import TaskWatch


class Dispatch:
    """All integrations behind the one port."""

    def __init__(self, calls: Calls, engine: Starts, watch: TaskWatch | None = None) -> None:
        self._function = Function(calls)
        self._sdk = SdkCall(calls)
        self._one = OneCall(calls)
        self._special: dict[str, Integration] = {
            "lambda": Invoke(calls),
            "ecs": RunTask(calls, watch or TaskWatch(calls)),
            "events": PutEvents(calls),
            "states": StartExecution(engine),
        }

    async def start(self, request: Request) -> Started:
        """Make a Task's call. Raises StateError."""
        return await self._of(request).start(request)

    def _of(self, request: Request) -> Integration:
        resource = request.resource
        if resource.is_function:
            return self._function
        if resource.is_sdk:
            return self._sdk
        return self._special.get(resource.service, self._one)
