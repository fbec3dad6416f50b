"""Our own endpoint, for what AWS does not let anybody do: harm tasks, read their output.

GET    /_ecs/ready
POST   /_ecs/tasks/<id>/<what>   kill, crash (its host fails), exit (?code=1), freeze, thaw, interrupt;
                                 lose (DescribeTasks: MISSING), find again
GET    /_ecs/tasks/<id>/log      what the container wrote
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from trueup.local.ecs.errors import ApiError, invalid
from trueup.local.ecs.fargate import Fargate

HARMS = ("kill", "crash", "exit", "freeze", "thaw", "interrupt", "lose", "find")

LAST_CODE = 255
"""Of a process."""
_CODE = re.compile(r"[0-9]{1,3}")

_Handler = Callable[[Request], Awaitable[Response]]


def admin_routes(fargate: Fargate) -> list[Route]:
    """The routes, all under /_ecs."""

    async def ready(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def harm_task(request: Request) -> Response:
        what = request.path_params["what"]
        code = request.query_params.get("code", "1")
        if not _CODE.fullmatch(code):
            raise _no_code(code)
        return JSONResponse({"done": harm(fargate, request.path_params["task"], what, int(code))})

    async def log(request: Request) -> Response:
        path = fargate.log(fargate.life(request.path_params["task"]).task.task_id)
        return FileResponse(path, media_type="text/plain") if path.exists() else PlainTextResponse("")

    return [
        Route("/_ecs/ready", ready),
        Route("/_ecs/tasks/{task}/log", _refusing(log)),
        Route("/_ecs/tasks/{task}/{what}", _refusing(harm_task), methods=["POST"]),
    ]


def harm(fargate: Fargate, task: str, what: str, code: int = 1) -> bool:
    """Do one of HARMS to a task. False where its container does not run. Raises ApiError."""
    life = fargate.life(task)
    if what == "lose":
        fargate.lost.add(life.task.arn)
    elif what == "find":
        fargate.lost.discard(life.task.arn)
    elif what == "exit":
        if not 0 <= code <= LAST_CODE:
            raise _no_code(str(code))
        return life.exit(code)
    elif what in HARMS:
        words = {
            "kill": life.kill, "crash": life.crash, "freeze": life.freeze, "thaw": life.thaw,
            "interrupt": life.interrupt,
        }  # fmt: skip
        return words[what]()
    else:
        raise invalid(f"'{what}' is none of {', '.join(HARMS)}")
    return True


def _no_code(code: str) -> ApiError:
    return invalid(f"code has to be a whole number from 0 to {LAST_CODE}, not '{code[:40]}'")


def _refusing(handler: _Handler) -> _Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return JSONResponse({"error": error.name, "message": error.message}, error.status)

    return answer
