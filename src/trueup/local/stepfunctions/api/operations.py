"""All operations by name. What is not here is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trueup.local.stepfunctions.api import activities, executions, machines, map_runs, tags, testing, versions
from trueup.local.stepfunctions.api.requests import Body
from trueup.local.stepfunctions.api.validation import check_request
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.values import Json

Operation = Callable[[Engine, Body], Json]
"""Gives the answer, or something to await for it."""

OPERATIONS: Mapping[str, Operation] = {
    "CreateStateMachine": machines.create,
    "UpdateStateMachine": machines.update,
    "DeleteStateMachine": machines.delete,
    "DescribeStateMachine": machines.describe,
    "DescribeStateMachineForExecution": machines.describe_for_execution,
    "ListStateMachines": machines.list_all,
    "ValidateStateMachineDefinition": machines.validate,
    "PublishStateMachineVersion": versions.publish,
    "DeleteStateMachineVersion": versions.delete,
    "ListStateMachineVersions": versions.list_all,
    "CreateStateMachineAlias": versions.create_alias,
    "UpdateStateMachineAlias": versions.update_alias,
    "DeleteStateMachineAlias": versions.delete_alias,
    "DescribeStateMachineAlias": versions.describe_alias,
    "ListStateMachineAliases": versions.list_aliases,
    "TagResource": tags.tag,
    "UntagResource": tags.untag,
    "ListTagsForResource": tags.list_all,
    "StartExecution": executions.start,
    "StartSyncExecution": executions.start_sync,
    "StopExecution": executions.stop,
    "RedriveExecution": executions.redrive,
    "DescribeExecution": executions.describe,
    "ListExecutions": executions.list_all,
    "GetExecutionHistory": executions.history,
    "SendTaskSuccess": executions.task_success,
    "SendTaskFailure": executions.task_failure,
    "SendTaskHeartbeat": executions.task_heartbeat,
    "CreateActivity": activities.create,
    "DeleteActivity": activities.delete,
    "DescribeActivity": activities.describe,
    "ListActivities": activities.list_all,
    "GetActivityTask": activities.get_task,
    "ListMapRuns": map_runs.list_all,
    "TestState": testing.test_state,
    "DescribeMapRun": map_runs.describe,
    "UpdateMapRun": map_runs.update,
}


def perform(engine: Engine, name: str, body: Body) -> Json:
    """The answer to a call, or something to await for it (GetActivityTask). Raises ApiError."""
    operation = OPERATIONS.get(name)
    if operation is None:
        supported = ", ".join(OPERATIONS)
        raise ApiError("UnknownOperationException", f"{name} is not implemented; supported are {supported}")
    check_request(name, body)
    return operation(engine, body)
