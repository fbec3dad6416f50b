"""What a container asks the agent beside it: its metadata, and the protection of its task.

GET     /v4/<container>                      its own metadata
GET     /v4/<container>/task                 those of its task
GET     /v4/<container>/taskWithTags         the same with the task's tags
GET     /v4/<container>/stats, /task/stats   what it uses of the machine
GET PUT /api/<container>/task-protection/v1/state

Sources: developer guide, "Task metadata endpoint version 4 for tasks on Fargate" and "Amazon ECS task
scale-in protection endpoint"; statuses and bodies of the latter as the open agent has them
(aws/amazon-ecs-agent, ecs-agent/tmds/handlers/taskprotection): what ECS lists as a failure arrives under 200.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trueup.local.ecs.api import protection
from trueup.local.ecs.describing import whole_instant
from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.metadata import container_metadata, task_metadata, task_with_tags
from trueup.local.ecs.stats import container_stats, task_stats
from trueup.local.ecs.tasks import Task
from trueup.local.stepfunctions.values import from_text

Document = dict[str, Any]

NOT_FOUND = "Failed to find a task for the request"
NO_ROLE = "Invalid Request: no task IAM role credentials available for task"
NOT_DECODED = "UpdateTaskProtection: failed to decode request"
NO_FIELD = "Invalid request: does not contain 'ProtectionEnabled' field"
_FIELDS = frozenset(("ProtectionEnabled", "ExpiresInMinutes"))


class _Refused(Exception):
    """An answer that is no success: its status and body."""

    def __init__(self, status: int, body: Document) -> None:
        super().__init__(status, body)
        self.response = JSONResponse(body, status)


def agent_routes(fargate: Fargate) -> list[Route]:
    """The routes under /v4 and /api."""
    tellers: Mapping[str, Callable[[Task], Any]] = {
        "": lambda task: container_metadata(task, fargate.place),
        "/task": lambda task: task_metadata(task, fargate.place),
        "/taskWithTags": lambda task: task_with_tags(task, fargate.place),
        "/stats": lambda task: container_stats(task, fargate.now()),
        "/task/stats": lambda task: task_stats(task, fargate.now()),
    }
    routes = [Route(f"/v4/{{container}}{path}", _telling(fargate, tell)) for path, tell in tellers.items()]

    async def state(request: Request) -> Response:
        try:
            return await _protection(fargate, request)
        except _Refused as refused:
            return refused.response

    path = "/api/{container}/task-protection/v1/state"
    return [*routes, Route(path, state, methods=["GET", "PUT"])]


def _telling(fargate: Fargate, tell: Callable[[Task], Any]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        task = fargate.by_container(request.path_params["container"])
        if task is None:
            return JSONResponse({"error": "no such container"}, 404)
        return JSONResponse(tell(task))

    return answer


async def _protection(fargate: Fargate, request: Request) -> Response:
    asked = _asked(await request.body()) if request.method == "PUT" else None
    task = fargate.by_container(request.path_params["container"])
    if task is None:
        raise _Refused(404, {"error": {"Code": "ResourceNotFoundException", "Message": NOT_FOUND}})
    if asked is not None and not isinstance(asked.get("ProtectionEnabled"), bool):
        raise _refusal(400, task, "InvalidParameterException", NO_FIELD)
    if task.role is None:
        raise _refusal(403, task, "AccessDeniedException", NO_ROLE)
    return JSONResponse(_ask_ecs(fargate, task, asked))


def _asked(raw: bytes) -> Document:
    try:
        asked = from_text(raw)
    except ValueError:
        asked = None
    if not isinstance(asked, dict) or asked.keys() - _FIELDS or not _typed(asked):
        raise _Refused(400, {"error": {"Code": "InvalidParameterException", "Message": NOT_DECODED}})
    return asked


def _typed(asked: Document) -> bool:
    enabled, minutes = asked.get("ProtectionEnabled"), asked.get("ExpiresInMinutes")
    return (enabled is None or isinstance(enabled, bool)) and (minutes is None or type(minutes) is int)


def _ask_ecs(fargate: Fargate, task: Task, asked: Document | None) -> Document:
    call: Document = {"cluster": task.cluster, "tasks": [task.arn]}
    try:
        if asked is None:
            answer = protection.get(fargate, call)
        else:
            call["protectionEnabled"] = asked["ProtectionEnabled"]
            answer = protection.update(fargate, {**call, "expiresInMinutes": asked.get("ExpiresInMinutes")})
    except ApiError as error:
        raise _refusal(error.status, task, error.name, error.message, requestID=str(uuid.uuid4())) from error
    for failure in answer["failures"]:
        return {"failure": {"Arn": failure["arn"], "Detail": None, "Reason": failure["reason"]}}
    (told,) = answer["protectedTasks"]
    expires = told.get("expirationDate")
    return {
        "protection": {
            "ExpirationDate": None if expires is None else whole_instant(expires),
            "ProtectionEnabled": told["protectionEnabled"],
            "TaskArn": told["taskArn"],
        }
    }


def _refusal(status: int, task: Task, code: str, message: str, **more: str) -> _Refused:
    return _Refused(status, {"error": {"Arn": task.arn, "Code": code, "Message": message}, **more})
