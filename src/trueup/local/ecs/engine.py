"""A container engine, spoken to over its HTTP API: Docker, Podman, or what else serves that API.

Source: "Docker Engine API", whose paths are named without a version, which means the engine's own.
Each call has a connection to itself, so that an answer may take as long as a container runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from trueup.errors import LocalStackError

DEFAULT_HOST = "unix:///var/run/docker.sock"
SECONDS = 60.0
CHUNK = 65536
NOT_FOUND = 404

Document = dict[str, Any]

_STATUS = re.compile(r"HTTP/1\.[01] ([1-5]\d\d)(?: |$)", re.ASCII)
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*[;\r]")


class _Listed(BaseModel):
    identifier: str = Field(alias="Id")
    labels: dict[str, str] | None = Field(None, alias="Labels")


_LISTED = TypeAdapter(list[_Listed])


class EngineError(Exception):
    """The engine refuses: its status, and what it says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Engine:
    """The engine behind an address, `unix://<path>` or `tcp://<host>:<port>`; DOCKER_HOST without one."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        try:
            self._url = urlsplit(self.address)
            self._port = self._url.port or 2375
        except ValueError as error:
            raise self._unspoken(f"which is no address: {error}") from error
        if self._url.scheme not in ("unix", "tcp", "http"):
            raise self._unspoken("and only unix:// and tcp:// are spoken here")

    def _unspoken(self, why: str) -> LocalStackError:
        return LocalStackError(
            f"DOCKER_HOST is {self.address}, {why}.",
            remedy="Set it to the socket of the engine, such as unix:///var/run/docker.sock.",
        )

    async def containers(self, label: str) -> dict[str, str]:
        """The ids of all containers that have a label, and its value. Raises LocalStackError."""
        query = {"all": "true", "filters": json.dumps({"label": [label]})}
        try:
            listed = _listed(await self.call("GET", "/containers/json", query))
        except (OSError, EngineError, ValueError) as error:  # the last: names that no host has
            raise LocalStackError(
                f"No container engine answers at {self.address}: {str(error) or 'it says nothing'}",
                remedy="Start Docker, or `podman system service`, or set DOCKER_HOST to where it listens.",
            ) from error
        return {one.identifier: (one.labels or {}).get(label, "") for one in listed}

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Document | None = None,
        *,
        seconds: float | None = SECONDS,
    ) -> Any:
        """One call and its answer, read from JSON; None where it is empty.

        Raises EngineError, OSError (also where it answers in something else), and TimeoutError where it takes
        longer than `seconds`.
        """
        async with asyncio.timeout(seconds):
            async with self._open(method, path, query, json.dumps(body).encode() if body else b"") as pieces:
                answer = b"".join([piece async for piece in pieces])
        return _read(answer) if answer.strip() else None

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b""
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of an answer, piece by piece as it comes. Raises EngineError and OSError."""
        async with self._open(method, path, query, body, "application/x-tar") as pieces:
            yield pieces

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: bytes,
        kind: str = "application/json",
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        reader, writer = await self._connect()
        try:
            target = f"{path}?{urlencode(query)}" if query else path
            head = f"{method} {target} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n"
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            status, chunked = _head(await reader.readuntil(b"\r\n\r\n"))
            pieces = _chunks(reader) if chunked else _rest(reader)
            if status >= 400:
                raise EngineError(status, _message(b"".join([piece async for piece in pieces])))
            yield pieces
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the engine went away in the middle of an answer") from error
        except asyncio.LimitOverrunError as error:
            raise _not_http("the head of it, or of a chunk, has no end") from error
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._url.scheme == "unix":
            return await asyncio.open_unix_connection(self._url.path)
        return await asyncio.open_connection(self._url.hostname, self._port)


def _head(head: bytes) -> tuple[int, bool]:
    """The status of an answer, and whether its body comes in chunks."""
    first, *lines = head.decode("latin-1").split("\r\n")
    chunked = any(line.lower().replace(" ", "") == "transfer-encoding:chunked" for line in lines)
    status = _STATUS.match(first)
    if not status:
        raise _not_http(f"it begins with {first[:40]!r}")
    return int(status[1]), chunked


def _not_http(why: str) -> ConnectionError:
    return ConnectionError(f"what it says is no answer of HTTP: {why}")


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := _size(await reader.readuntil(b"\r\n")):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


def _size(line: bytes) -> int:
    size = _SIZE.match(line)
    if not size:
        raise _not_http(f"a chunk begins with {line[:40]!r}")
    return int(size[1], 16)


async def _rest(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(CHUNK):
        yield piece


def _read(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise ConnectionError(f"it answers in something other than JSON: {error}") from error


def _listed(answer: object) -> list[_Listed]:
    try:
        return _LISTED.validate_python(answer)
    except ValidationError as error:
        raise ConnectionError("it does not list containers as Docker's API does") from error


def _message(body: bytes) -> str:
    try:
        return str(_read(body)["message"])
    except (OSError, KeyError, TypeError):
        return body.decode(errors="replace").strip()


async def frames(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What a container wrote, out of the stream of its logs: frames of eight bytes of head and the rest.

    Source: "Docker Engine API", Attach to a container, stream format.
    """
    held = b""
    async for piece in pieces:
        held += piece
        while len(held) >= 8 and len(held) >= (end := 8 + int.from_bytes(held[4:8])):
            yield held[8:end]
            held = held[end:]


async def reports(pieces: AsyncIterator[bytes]) -> AsyncIterator[Document]:
    """What pulling or building tells of its progress: an object a line."""
    held = b""
    async for piece in pieces:
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield _read(line)
    if held.strip():
        yield _read(held)
