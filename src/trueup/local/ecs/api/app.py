"""The HTTP side: the API of ECS, the metadata endpoint of its tasks, and our own admin endpoint.

POST /                X-Amz-Target: AmazonEC2ContainerServiceV20141113.<Operation>, JSON 1.1
…    /v4/…, /api/…    see `agent.py`
…    /_ecs/…          see `admin.py`
"""

from __future__ import annotations

import json
import logging
import uuid
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trueup.local.ecs.api.admin import admin_routes
from trueup.local.ecs.api.agent import agent_routes
from trueup.local.ecs.api.operations import perform
from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.fargate import Fargate
from trueup.local.stepfunctions.values import from_text

log = logging.getLogger(__name__)

_JSON = "application/x-amz-json-1.1"
_TARGET = "AmazonEC2ContainerServiceV20141113."


def make_app(fargate: Fargate) -> Starlette:
    """The application. It runs on Fargate's loop."""

    async def call(request: Request) -> Response:
        status, told = answer(fargate, request.headers.get("x-amz-target", ""), await request.body())
        headers = {"x-amzn-RequestId": str(uuid.uuid4())}
        return Response(json.dumps(told), status, headers, media_type=_JSON)

    return Starlette(
        routes=[
            Route("/", call, methods=["POST"]),
            *agent_routes(fargate),
            *admin_routes(fargate),
        ]
    )


def answer(fargate: Fargate, target: str, raw: bytes) -> tuple[int, dict[str, Any]]:
    """Status and document of the answer to a call, whatever its body is."""
    try:
        if not target.startswith(_TARGET):
            raise ApiError("UnknownOperationException", f"X-Amz-Target has to be {_TARGET}<Operation>")
        return 200, perform(fargate, target.removeprefix(_TARGET), _body(raw))
    except ApiError as error:
        return error.status, {"__type": error.name, "message": error.message, **error.more}
    except Exception as error:
        # One call that breaks must not end the server, and its caller must not wait.
        log.exception("%s", target)
        return 500, {"__type": "ServerException", "message": repr(error)}


def _body(raw: bytes) -> dict[str, Any]:
    try:
        body = from_text(raw or b"{}")
    except ValueError as error:
        raise ApiError("SerializationException", f"the body has to be JSON: {error}") from error
    if not isinstance(body, dict):
        raise ApiError("SerializationException", "the body has to be an object")
    return {name: _given(value) for name, value in body.items() if value is not None}


def _given(value: Any) -> Any:
    """A value without the members that are null, which is what AWS reads: they were not given."""
    if isinstance(value, dict):
        return {name: _given(each) for name, each in value.items() if each is not None}
    return [_given(each) for each in value] if isinstance(value, list) else value
