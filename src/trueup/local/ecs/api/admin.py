"""Our own endpoint, for what AWS does not let anybody do: order faults, harm tasks, read their output.

GET    /_ecs/ready
GET    /_ecs/faults              what was ordered and has not struck yet
POST   /_ecs/faults              {"fault": "throttled", "times": 3, "seconds": 0, "family": "…"}
DELETE /_ecs/faults              forget them
POST   /_ecs/tasks/<id>/<what>   kill, crash (its host fails), freeze, thaw, interrupt;
                                 lose (DescribeTasks: MISSING), find again
GET    /_ecs/tasks/<id>/log      what the container wrote
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.fargate import Fargate
from trueup.local.ecs.orders import Ordered

HARMS = ("kill", "crash", "freeze", "thaw", "interrupt", "lose", "find")

_Handler = Callable[[Request], Awaitable[Response]]


def admin_routes(fargate: Fargate) -> list[Route]:
    """The routes, all under /_ecs."""

    async def ready(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def faults(request: Request) -> Response:
        if request.method == "POST":
            fargate.orders.add(Ordered.read(_object(await request.body())))
        elif request.method == "DELETE":
            fargate.orders.clear()
        return JSONResponse(fargate.orders.told())

    async def harm_task(request: Request) -> Response:
        what = request.path_params["what"]
        return JSONResponse({"done": harm(fargate, request.path_params["task"], what)})

    async def log(request: Request) -> Response:
        path = fargate.log(fargate.life(request.path_params["task"]).task.task_id)
        return FileResponse(path, media_type="text/plain") if path.exists() else PlainTextResponse("")

    return [
        Route("/_ecs/ready", ready),
        Route("/_ecs/faults", _refusing(faults), methods=["GET", "POST", "DELETE"]),
        Route("/_ecs/tasks/{task}/log", _refusing(log)),
        Route("/_ecs/tasks/{task}/{what}", _refusing(harm_task), methods=["POST"]),
    ]


def harm(fargate: Fargate, task: str, what: str) -> bool:
    """Do one of HARMS to a task. False where its container does not run. Raises ApiError."""
    life = fargate.life(task)
    if what == "lose":
        fargate.orders.lost.add(life.task.arn)
    elif what == "find":
        fargate.orders.lost.discard(life.task.arn)
    elif what == "interrupt":
        life.interrupt()
    elif what in HARMS:
        words = {"kill": life.kill, "crash": life.crash, "freeze": life.freeze, "thaw": life.thaw}
        return words[what]()
    else:
        raise invalid(f"{what!r} is none of {', '.join(HARMS)}")
    return True


def _refusing(handler: _Handler) -> _Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return JSONResponse({"error": error.name, "message": error.message}, error.status)

    return answer


def _object(raw: bytes) -> dict[str, object]:
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise invalid(f"The body has to be JSON: {error}") from error
    if not isinstance(body, dict):
        raise invalid("The body has to be a JSON object.")
    return body
