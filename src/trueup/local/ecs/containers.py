"""The launcher that starts containers of a Docker-compatible engine, and leaves none behind.

Containers share the machine's network, so that they find the servers of the stack at 127.0.0.1; on Docker
Desktop that has to be switched on. Each has a label with the process that it belongs to: whoever starts next
removes those whose process is gone.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trueup.local.ecs.definitions import UNITS
from trueup.local.ecs.engine import NOT_FOUND, SECONDS, Engine, EngineError, frames, reports
from trueup.local.ecs.errors import CannotStart
from trueup.local.ecs.images import Image
from trueup.local.ecs.launching import KILLED, Order

OWNER = "trueup.owner"
"""The label: host, pid, and when that process began."""
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"
"""Developer guide, "OutOfMemoryError task errors"."""
DRAIN_SECONDS = 5.0
_NANO = 1_000_000_000
_MIB = 1024 * 1024
_ANYTHING = (EngineError, OSError, TimeoutError)
_REMOVED = {"force": "true", "v": "true"}
"""Running or not, with the volumes that have no name."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Build:
    """An image that is built where the engine does not have it: from an archive with a Dockerfile."""

    tag: str
    dockerfile: str
    files: Mapping[str, Path]
    """Files and folders by their paths in the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Containers:
    """How tasks are containers: which engine, and what images are built of."""

    address: str | None = None
    builds: Mapping[str, Build] = field(default_factory=dict)
    """By the references that task definitions name."""


class ContainerProcess:
    """A container that was started. What it is told reaches it in that order."""

    pid = 0

    def __init__(self, engine: Engine, path: str, log: Path, stop_signal: str) -> None:
        self.reason: str | None = None
        self._engine = engine
        self._path = path
        self._stop_signal = stop_signal
        self._frozen = False
        self._last: asyncio.Task[None] | None = None
        self._logging = asyncio.create_task(self._log(log))
        self._living = asyncio.create_task(self._live())

    async def wait(self) -> int:
        """Its exit code, once it has ended and is removed."""
        return await asyncio.shield(self._living)

    def terminate(self) -> None:
        """The signal that its image names for stopping; SIGTERM where it names none."""
        self._tell(self._call("POST", "/kill", {"signal": self._stop_signal}))

    def kill(self) -> None:
        """SIGKILL; who is frozen has to be thawed for it.

        It is sent before that too: else a SIGTERM that came meanwhile would be obeyed first.
        """
        killing = "POST", "/kill", {"signal": "SIGKILL"}
        self._tell(self._call(*killing))
        if self._frozen:
            self.thaw()
            self._tell(self._call(*killing))  # where an engine kills nobody who is frozen

    def freeze(self) -> None:
        """Pause all of it."""
        self._frozen = True
        self._tell(self._call("POST", "/pause"))

    def thaw(self) -> None:
        """Go on."""
        self._frozen = False
        self._tell(self._call("POST", "/unpause"))

    async def remove(self) -> None:
        """Remove it, running or not."""
        await self._call("DELETE", "", _REMOVED)

    def _tell(self, word: Coroutine[Any, Any, Any]) -> None:
        before = self._last

        async def after() -> None:
            if before is not None:
                await before
            await word

        self._last = asyncio.create_task(after())

    async def _call(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """A call whose refusal means that the container has just ended, or stands as it is told to."""
        with suppress(*_ANYTHING):
            return await self._engine.call(method, f"{self._path}{path}", query)

    async def _live(self) -> int:
        try:
            answer = await self._engine.call("POST", f"{self._path}/wait", seconds=None)
            code = int(_said(answer, "StatusCode"))
        except (*_ANYTHING, TypeError, ValueError):
            code = KILLED  # the engine is gone, and its containers with it or out of reach
        if _said(await self._call("GET", "/json"), "State", "OOMKilled"):
            self.reason = OUT_OF_MEMORY
        await asyncio.wait([self._logging], timeout=DRAIN_SECONDS)
        self._logging.cancel()
        await self.remove()
        return code

    async def _log(self, log: Path) -> None:
        query = {"follow": "true", "stdout": "true", "stderr": "true"}
        with log.open("ab", buffering=0) as file, suppress(*_ANYTHING):
            async with self._engine.stream("GET", f"{self._path}/logs", query) as pieces:
                async for written in frames(pieces):
                    file.write(written)


class ContainerLauncher:
    """Starts containers; `pull` sees to it that their images are there."""

    def __init__(self, containers: Containers) -> None:
        self._engine = Engine(containers.address)
        self._builds = containers.builds
        self._alive: set[ContainerProcess] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._building = asyncio.Lock()

    async def open(self) -> None:
        """Find the engine, and remove what owners that are gone have left. Raises LocalStackError."""
        for identifier, owner in (await self._engine.containers(OWNER)).items():
            if not _lives(owner):
                with suppress(*_ANYTHING):
                    await self._engine.call("DELETE", f"/containers/{identifier}", _REMOVED)

    async def pull(self, reference: str) -> Image:
        """The image, pulled or built where it is not there. Raises CannotStart."""
        build = self._builds.get(reference)
        name = build.tag if build else reference
        try:
            # One at a time: many tasks of one image come at once.
            async with self._building:
                found = await self._inspect(name)
                if found is None:
                    await self._make(name, build)
                    found = await self._inspect(name)
        except _ANYTHING as error:
            raise CannotStart(_cannot_pull(reference, _words(error))) from error
        if found is None:
            raise CannotStart(_cannot_pull(reference, "not found"))
        digests = _said(found, "RepoDigests") or [f"@{_said(found, 'Id')}"]
        return Image((), Path("/"), digest=str(digests[0]).partition("@")[2], name=name)

    async def _inspect(self, name: str) -> Document | None:
        try:
            found: Document = await self._engine.call("GET", f"/images/{quote(name, safe='/:@')}/json")
        except EngineError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return found

    async def _make(self, name: str, build: Build | None) -> None:
        if build is None:
            stream = self._engine.stream("POST", "/images/create", {"fromImage": name, **_tag(name)})
        else:
            archive = await asyncio.to_thread(pack, build.files)
            query = {"t": build.tag, "dockerfile": build.dockerfile, "rm": "true", "networkmode": "host"}
            stream = self._engine.stream("POST", "/build", query, archive)
        async with stream as pieces:
            async for report in reports(pieces):
                if "error" in report:
                    raise EngineError(500, str(report["error"]))

    async def start(self, order: Order) -> ContainerProcess:
        """Create and start a container. Raises CannotStart."""
        # A name of our own: what was created can be removed also where the answer to that was lost.
        name = f"trueup-{order.name}"
        path, step = f"/containers/{name}", "CannotCreateContainerError"
        try:
            await self._engine.call("POST", "/containers/create", {"name": name}, _wanted(order))
            step = "CannotStartContainerError"
            told = await self._engine.call("GET", f"{path}/json")
            await self._engine.call("POST", f"{path}/start")
        except BaseException as error:  # who is cancelled leaves nothing behind either
            with suppress(*_ANYTHING):
                await self._engine.call("DELETE", path, _REMOVED)
            if isinstance(error, _ANYTHING):
                raise CannotStart(f"{step}: {_words(error)}") from error
            raise
        signal = _said(told, "Config", "StopSignal") or "SIGTERM"
        process = ContainerProcess(self._engine, path, order.log, str(signal))
        self._alive.add(process)
        ending = asyncio.create_task(self._forget(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return process

    async def _forget(self, process: ContainerProcess) -> None:
        await process.wait()
        self._alive.discard(process)

    async def close(self) -> None:
        """Remove what is left, and return when it is gone."""
        await asyncio.gather(*(process.remove() for process in self._alive))
        await asyncio.gather(*self._ending)


def _wanted(order: Order) -> Document:
    """What is asked for; an entry point or command that nobody names is the image's own."""
    named = {"Entrypoint": order.entrypoint, "Cmd": order.command}
    return {
        "Image": order.image,
        "Env": [f"{name}={value}" for name, value in order.environment.items()],
        "Labels": {**order.labels, OWNER: owner_label(), "trueup.task": order.name},
        "HostConfig": {
            "NetworkMode": "host",
            "NanoCpus": order.cpu * _NANO // UNITS,
            "Memory": order.memory * _MIB,
            "MemorySwap": order.memory * _MIB,  # memory and swap together: Fargate has no swap
        },
        **{name: list(words) for name, words in named.items() if words},
    }


def pack(files: Mapping[str, Path]) -> bytes:
    """An archive of files and folders under other paths: the same for the same contents.

    What Python compiled stays out.
    """

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if "__pycache__" in member.name else member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, path in files.items():
            archive.add(path, name, filter=plain)
    return packed.getvalue()


def _tag(name: str) -> dict[str, str]:
    """Without a tag the engine would pull all of them."""
    last = name.rpartition("/")[2]
    return {} if ":" in last else {"tag": "latest"}


def owner_label() -> str:
    """This process, as no later one is called."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}"


def _lives(owner: str) -> bool:
    """Whether the process that a label names still runs; of another machine's nobody here knows."""
    host, _, process = owner.partition(":")
    pid, _, began = process.partition(":")
    if host != socket.gethostname() or not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _began(int(pid)) == began


def _began(pid: int) -> str:
    """When a process began, on Linux; elsewhere its number has to do."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _words(error: BaseException) -> str:
    if isinstance(error, EngineError):
        return error.message
    return str(error) or f"the container engine did not answer within {SECONDS:g} seconds"


def _said(answer: Any, *names: str) -> Any:
    """What an answer has under names within names; None where it is not there."""
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def _cannot_pull(reference: str, why: str) -> str:
    return f"CannotPullContainerError: pull image manifest has been retried 1 time(s): {reference}: {why}"
