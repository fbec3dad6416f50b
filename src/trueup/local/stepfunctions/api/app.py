"""The HTTP side: POST / with `X-Amz-Target: AWSStepFunctions.<Operation>` and a JSON body."""

from __future__ import annotations

import logging
from inspect import isawaitable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from trueup.local.stepfunctions.api.operations import perform
from trueup.local.stepfunctions.engine import Engine
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.values import Json, from_text, to_text

log = logging.getLogger(__name__)

_JSON = "application/x-amz-json-1.0"
_TARGET = "AWSStepFunctions."


def make_app(engine: Engine) -> Starlette:
    """The application for an engine. It runs on the engine's loop."""

    async def call(request: Request) -> Response:
        target = request.headers.get("x-amz-target", "")
        try:
            if not target.startswith(_TARGET):
                raise ApiError("UnknownOperationException", f"X-Amz-Target has to be {_TARGET}<Operation>")
            answer, status = perform(engine, target.removeprefix(_TARGET), _body(await request.body())), 200
            if isawaitable(answer):
                answer = await answer
        except ApiError as error:
            answer, status = {"__type": error.name, "message": error.message}, error.status
        except Exception as error:
            # One call that breaks must not end the engine, and its caller must not wait.
            log.exception("%s", target)
            answer, status = {"__type": "InternalFailure", "message": repr(error)}, 500
        headers = {"x-amzn-RequestId": engine.request_id()}
        return Response(to_text(answer), status, headers, media_type=_JSON)

    async def ready(_: Request) -> Response:
        return PlainTextResponse("ok")

    return Starlette(routes=[Route("/", call, methods=["POST"]), Route("/", ready, methods=["GET"])])


def _body(raw: bytes) -> Json:
    try:
        body = from_text(raw or b"{}")
    except ValueError as error:
        raise ApiError("SerializationException", str(error)) from error
    if not isinstance(body, dict):
        raise ApiError("SerializationException", "the body has to be an object")
    return body
