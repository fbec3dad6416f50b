"""Waiting for ECS tasks to stop: one poller for all that wait, so that many tasks cost few calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from trueup.local.stepfunctions.errors import TASK_FAILED, StateError
from trueup.local.stepfunctions.integrations.port import Calls, ServiceFailure
from trueup.local.stepfunctions.values import Json

BATCH = 100
"""Tasks that one DescribeTasks call takes [botocore ecs]."""
INTERVAL = 0.1
"""Seconds between two rounds. On AWS events tell earlier than polling would (aws-facts section 2.2)."""
MISSING_ROUNDS = 600
"""Rounds after which a task that ECS does not know is given up: at first it may not know it yet."""

_Key = tuple[str | None, str]


class TaskWatch:
    """Who waits for which task."""

    def __init__(self, calls: Calls, interval: float = INTERVAL) -> None:
        self._calls = calls
        self._interval = interval
        self._waiting: dict[_Key, asyncio.Future[Mapping[str, Json]]] = {}
        self._missing: dict[_Key, int] = {}
        self._poller: asyncio.Task[None] | None = None

    async def stopped(self, cluster: str | None, arn: str) -> Mapping[str, Json]:
        """The task's description once it has stopped. Raises StateError when ECS has lost it."""
        key = (cluster, arn)
        future = self._waiting.setdefault(key, asyncio.get_running_loop().create_future())
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll())
        try:
            return await future
        finally:
            self._waiting.pop(key, None)
            self._missing.pop(key, None)

    async def _poll(self) -> None:
        while self._waiting:
            for cluster in {cluster for cluster, _ in self._waiting}:
                arns = [arn for name, arn in self._waiting if name == cluster]
                for start in range(0, len(arns), BATCH):
                    await self._look(cluster, arns[start : start + BATCH])
            await asyncio.sleep(self._interval)

    async def _look(self, cluster: str | None, arns: list[str]) -> None:
        try:
            answer = await self._calls.call("ecs", "describeTasks", {"Cluster": cluster, "Tasks": arns})
        except ServiceFailure:
            return  # throttled or away for a moment: the next round asks again
        for task in answer.output.get("tasks", []):
            self._missing.pop((cluster, task["taskArn"]), None)
            if task.get("lastStatus") == "STOPPED":
                self._settle((cluster, task["taskArn"]), task)
        for failure in answer.output.get("failures", []):
            self._miss((cluster, failure.get("arn", "")))

    def _settle(self, key: _Key, task: Mapping[str, Json]) -> None:
        future = self._waiting.get(key)
        if future is not None and not future.done():
            future.set_result(task)

    def _miss(self, key: _Key) -> None:
        self._missing[key] = self._missing.get(key, 0) + 1
        future = self._waiting.get(key)
        if future is not None and not future.done() and self._missing[key] > MISSING_ROUNDS:
            future.set_exception(StateError(TASK_FAILED, f"ECS does not know the task {key[1]}: MISSING"))
