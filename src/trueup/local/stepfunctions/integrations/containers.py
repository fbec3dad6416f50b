"""`ecs:runTask`: start tasks, wait until they have stopped, stop them when the execution is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from trueup.local.stepfunctions.errors import TASK_FAILED, StateError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.catalogue import OPTIMIZED
from trueup.local.stepfunctions.integrations.failures import optimized_error
from trueup.local.stepfunctions.integrations.metadata import metadata
from trueup.local.stepfunctions.integrations.port import Answer, Calls, Request, ServiceFailure, Started
from trueup.local.stepfunctions.integrations.task_watch import TaskWatch
from trueup.local.stepfunctions.values import Document, Json, to_text

STARTED_BY = "AWS Step Functions"
"""Seen in a failure document and recorded on AWS (aws-facts sections 2.4 and 6.5)."""


class RunTask:
    """The three patterns of `ecs:runTask`."""

    def __init__(self, calls: Calls, watch: TaskWatch) -> None:
        self._calls = calls
        self._watch = watch

    async def start(self, request: Request) -> Started:
        """Start the tasks. Raises StateError (`AmazonECS.Unknown`, `ECS.…`)."""
        answer = await self._run(request)
        shape = shapes.operation("ecs", "runTask").output_shape
        told = {**shapes.to_state(shape, answer.output, sdk=False), **metadata("ecs", answer)}
        output = dict(sorted(told.items()))
        pattern = request.resource.pattern
        # A plain call returns its failures; the waiting patterns fail on them (aws-facts section 2.4).
        if pattern and answer.output.get("failures"):
            await self._stop(request, answer.output.get("tasks", []))
            raise StateError("AmazonECS.Unknown", to_text(output["Failures"]))
        if pattern != "sync":
            return Started(Document(output))
        return self._waiting(request, output, answer.output["tasks"])

    async def _run(self, request: Request) -> Answer:
        parameters = {**request.parameters}
        parameters.setdefault("StartedBy", STARTED_BY)
        try:
            return await self._calls.call("ecs", "runTask", parameters)
        except ServiceFailure as failure:
            raise optimized_error(OPTIMIZED["ecs"], failure) from failure

    def _waiting(
        self, request: Request, output: Mapping[str, Json], tasks: Sequence[Mapping[str, Json]]
    ) -> Started:
        cluster = request.parameters.get("Cluster")

        async def result() -> Document:
            arns = [task["taskArn"] for task in tasks]
            stopped = await asyncio.gather(*(self._watch.stopped(cluster, arn) for arn in arns))
            return _judge([_told(task) for task in stopped])

        async def stop() -> None:
            await self._stop(request, tasks)

        return Started(Document(output), result, stop)

    async def _stop(self, request: Request, tasks: Sequence[Mapping[str, Json]]) -> None:
        """Best effort, as on AWS: a task that cannot be stopped goes on (aws-facts section 2.3)."""
        for task in tasks:
            parameters = {
                "Cluster": request.parameters.get("Cluster"),
                "Task": task["taskArn"],
                "Reason": f"Stopped by {STARTED_BY}: {request.execution_arn}",
            }
            try:
                await self._calls.call("ecs", "stopTask", parameters)
            except ServiceFailure:
                continue


def _told(task: Mapping[str, Json]) -> Json:
    shape = shapes.operation("ecs", "describeTasks").output_shape.members["tasks"].member
    return shapes.to_state(shape, task, sdk=False)


def _judge(tasks: list[Json]) -> Document:
    """The tasks' description, or States.TaskFailed with it as the cause when a container did not exit with 0.

    Any container counts: production saw a sidecar fail a task (aws-facts section 2.4).
    """
    told = tasks[0] if len(tasks) == 1 else tasks
    if all(_exited_well(task) for task in tasks):
        return Document(told)
    raise StateError(TASK_FAILED, to_text(told))


def _exited_well(task: Mapping[str, Json]) -> bool:
    codes = [container.get("ExitCode") for container in task.get("Containers", [])]
    return bool(codes) and all(code == 0 for code in codes)
