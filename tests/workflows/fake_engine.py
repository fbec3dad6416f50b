"""A small container engine on a socket: the calls of the Docker Engine API that the local ECS makes.

Statements are those of "Docker Engine API" (docs.docker.com/reference/api/engine), by operation; containers
are processes of this machine, images are names with an environment and a command of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

SECONDS = 20.0
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
"""Create a container, parameter name: an id of any call may be a name."""
Document = dict[str, Any]


@dataclass
class FakeContainer:
    """One container, from its creation until it is removed."""

    wanted: Document
    process: asyncio.subprocess.Process | None = None
    written: bytes = b""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    code: int = 0
    out_of_memory: bool = False
    told: list[str] = field(default_factory=list)


class FakeEngine:
    """The engine's state, for tests to look at and to change between calls."""

    def __init__(self) -> None:
        self.images: dict[str, Document] = {}
        self.pulls: list[tuple[str, str | None]] = []
        self.registry: dict[str, Document] = {}
        self.builds: list[tuple[str, bytes]] = []
        self.containers: dict[str, FakeContainer] = {}
        self.removed: list[FakeContainer] = []
        self.refuses_start: str | None = None
        self.kills_for_memory = False
        self.kills_frozen = True
        self.answers_creation = asyncio.Event()
        self.answers_creation.set()

    def app(self) -> Starlette:
        container = "/containers/{id}"
        return Starlette(
            routes=[
                Route("/images/create", self._pull, methods=["POST"]),
                Route("/images/{name:path}/json", self._image),
                Route("/build", self._build, methods=["POST"]),
                Route("/containers/json", self._list),
                Route("/containers/create", self._create, methods=["POST"]),
                Route(f"{container}/json", self._inspect),
                Route(f"{container}/start", self._start, methods=["POST"]),
                Route(f"{container}/wait", self._wait, methods=["POST"]),
                Route(f"{container}/kill", self._kill, methods=["POST"]),
                Route(f"{container}/pause", self._pause, methods=["POST"]),
                Route(f"{container}/unpause", self._unpause, methods=["POST"]),
                Route(f"{container}/logs", self._logs),
                Route(container, self._remove, methods=["DELETE"]),
            ]
        )

    async def _image(self, request: Request) -> Response:
        found = self.images.get(request.path_params["name"])
        return JSONResponse(found) if found else _error(404, "No such image")

    async def _pull(self, request: Request) -> Response:
        """Create an image: progress is told as JSON lines under 200, and so is a failure."""
        name = request.query_params["fromImage"]
        self.pulls.append((name, request.query_params.get("tag")))
        lines: list[Document] = [{"status": "Pulling from registry"}]
        if name in self.registry:
            self.images[name] = self.registry[name]
        else:
            lines.append({"error": f"manifest for {name} not found: manifest unknown"})
        return StreamingResponse(_lines(lines))

    async def _build(self, request: Request) -> Response:
        archive = await request.body()
        tag = request.query_params["t"]
        self.builds.append((request.query_params["dockerfile"], archive))
        self.images[tag] = image("sha256:" + "b" * 64)
        return StreamingResponse(_lines([{"stream": "Step 1/9"}, {"stream": "Successfully built"}]))

    async def _list(self, request: Request) -> Response:
        (label,) = json.loads(request.query_params["filters"])["label"]
        assert request.query_params["all"] == "true"
        found = self.containers.items()
        listed = [{"Id": one, "Labels": made.wanted["Labels"]} for one, made in found]
        return JSONResponse([one for one in listed if label in one["Labels"]])

    async def _create(self, request: Request) -> Response:
        wanted = await request.json()
        if wanted["Image"] not in self.images:
            return _error(404, f"No such image: {wanted['Image']}")
        name = request.query_params["name"]
        assert NAME.fullmatch(name)
        if name in self.containers:
            return _error(409, f'Conflict. The container name "/{name}" is already in use')
        self.containers[name] = FakeContainer(wanted)
        await self.answers_creation.wait()
        return JSONResponse({"Id": f"{len(self.removed):064x}", "Warnings": []}, 201)

    async def _inspect(self, request: Request) -> Response:
        found = self._of(request)
        if found is None:
            return _error(404, "No such container")
        config = self.images[found.wanted["Image"]].get("Config", {})
        state = {"Running": found.process is not None, "OOMKilled": found.out_of_memory}
        return JSONResponse({"State": state, "Config": config})

    async def _start(self, request: Request) -> Response:
        found = self._of(request)
        assert found is not None
        if self.refuses_start is not None:
            return _error(400, self.refuses_start)
        config = self.images[found.wanted["Image"]].get("Config", {})
        argv = [*found.wanted.get("Entrypoint", ["/bin/sh", "-c"]), *found.wanted.get("Cmd", ["true"])]
        given = dict(pair.split("=", 1) for pair in [*config.get("Env", []), *found.wanted["Env"]])
        found.process = await asyncio.create_subprocess_exec(
            *argv,
            env={"PATH": os.environ["PATH"], **given},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        found.reading = asyncio.create_task(self._read(found))  # type: ignore[attr-defined]
        return Response(status_code=204)

    async def _read(self, found: FakeContainer) -> None:
        assert found.process is not None
        assert found.process.stdout is not None
        while piece := await found.process.stdout.read(4096):
            found.written += piece
        code = await found.process.wait()
        found.code = code if code >= 0 else 128 - code
        found.out_of_memory = self.kills_for_memory and found.code == 137
        found.done.set()

    async def _wait(self, request: Request) -> Response:
        """Wait for a container: the head of the answer comes at once, its body at the end."""
        found = self._of(request)
        assert found is not None

        async def body() -> AsyncIterator[bytes]:
            await found.done.wait()
            yield json.dumps({"StatusCode": found.code}).encode()

        return StreamingResponse(body())

    async def _kill(self, request: Request) -> Response:
        found = self._of(request)
        if found is not None and not self.kills_frozen and found.told[-1:] == ["SIGSTOP"]:
            return _error(409, "container is paused")
        return self._signal(request, signal.Signals[request.query_params["signal"]])

    async def _pause(self, request: Request) -> Response:
        return self._signal(request, signal.SIGSTOP)

    async def _unpause(self, request: Request) -> Response:
        return self._signal(request, signal.SIGCONT)

    def _signal(self, request: Request, number: signal.Signals) -> Response:
        found = self._of(request)
        if found is None or found.process is None or found.done.is_set() or "SIGKILL" in found.told:
            return _error(409, "container is not running")
        found.told.append(number.name)
        os.killpg(found.process.pid, number)
        return Response(status_code=204)

    async def _logs(self, request: Request) -> Response:
        """Get container logs: frames of a head of eight bytes, the number of the stream first."""
        found = self._of(request)
        assert found is not None

        async def body() -> AsyncIterator[bytes]:
            told = 0
            while not (found.done.is_set() and told == len(found.written)):
                if told < len(found.written):
                    piece = found.written[told:]
                    told += len(piece)
                    # In two pieces, as a stream may come.
                    yield bytes([1, 0, 0, 0])
                    yield len(piece).to_bytes(4) + piece
                await asyncio.sleep(0.005)

        return StreamingResponse(body())

    async def _remove(self, request: Request) -> Response:
        found = self._of(request)
        if found is None:
            return _error(404, "No such container")
        if found.process is not None and not found.done.is_set():
            assert request.query_params["force"] == "true"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(found.process.pid, signal.SIGKILL)
            await found.done.wait()
        self.removed.append(self.containers.pop(request.path_params["id"]))
        return Response(status_code=204)

    def _of(self, request: Request) -> FakeContainer | None:
        return self.containers.get(request.path_params["id"])


def image(digest: str, **config: Any) -> Document:
    """An image as the engine tells it."""
    return {"Id": digest, "RepoDigests": [f"registry.example/shell@{digest}"], "Config": config}


def _error(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)


async def _lines(reports: list[Document]) -> AsyncIterator[bytes]:
    for report in reports:
        yield json.dumps(report).encode() + b"\r\n"


@contextlib.contextmanager
def engine_on(path: Path) -> Iterator[FakeEngine]:
    """An engine that listens on a socket while the block lasts."""
    engine = FakeEngine()
    server = uvicorn.Server(uvicorn.Config(engine.app(), uds=str(path), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.005)
    try:
        yield engine
    finally:
        server.should_exit = server.force_exit = True
        thread.join(SECONDS)
