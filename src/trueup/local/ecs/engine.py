"""A container engine, spoken to over its HTTP API: Docker, Podman, or what else serves that API.

Source: "Docker Engine API", whose paths are named without a version, which means the engine's own.
Each call has a connection to itself, so that an answer may take as long as a container runs.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

from trueup.errors import LocalStackError

DEFAULT_HOST = "unix:///var/run/docker.sock"
SECONDS = 60.0
CHUNK = 65536
NOT_FOUND = 404

Document = dict[str, Any]


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
        self._url = urlsplit(self.address)
        if self._url.scheme not in ("unix", "tcp", "http"):
            raise LocalStackError(
                f"DOCKER_HOST is {self.address}, and only unix:// and tcp:// are spoken here.",
                remedy="Set it to the socket of the engine, such as unix:///var/run/docker.sock.",
            )

    async def check(self) -> None:
        """Whether it is there. Raises LocalStackError."""
        try:
            await self.call("GET", "/version")
        except (OSError, EngineError, ValueError) as error:
            raise LocalStackError(
                f"No container engine answers at {self.address}: {error}",
                remedy="Start Docker, or `podman system service`, or set DOCKER_HOST to where it listens.",
            ) from error

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

        Raises EngineError, OSError, and TimeoutError where it takes longer than `seconds`.
        """
        async with asyncio.timeout(seconds):
            async with self._open(method, path, query, json.dumps(body).encode() if body else b"") as pieces:
                answer = b"".join([piece async for piece in pieces])
        return json.loads(answer) if answer.strip() else None

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
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._url.scheme == "unix":
            return await asyncio.open_unix_connection(self._url.path)
        return await asyncio.open_connection(self._url.hostname, self._url.port or 2375)


def _head(head: bytes) -> tuple[int, bool]:
    """The status of an answer, and whether its body comes in chunks."""
    first, *lines = head.decode("latin-1").split("\r\n")
    chunked = any(line.lower().replace(" ", "") == "transfer-encoding:chunked" for line in lines)
    return int(first.split()[1]), chunked


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def _rest(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(CHUNK):
        yield piece


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
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
                yield json.loads(line)
    if held.strip():
        yield json.loads(held)
