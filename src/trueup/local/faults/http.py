"""HTTP/1.1 between the gateway and its two sides: requests read whole, answers passed on as they come.

Built on h11, as uvicorn is. A server of our own because connections have to break in the middle of an
exchange, which no framework offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

import h11

CHUNK = 65_536
_HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"te", b"trailer", b"upgrade"}

Headers = list[tuple[bytes, bytes]]


class Broken(Exception):
    """The other side ended the connection, or speaks something else."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request."""

    method: str
    target: str
    headers: Headers
    body: bytes

    def header(self, name: str) -> str:
        """A header's value, "" where there is none."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == wanted), "")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, its body as it comes."""

    status: int
    headers: Headers
    body: AsyncIterator[bytes]

    async def whole(self) -> bytes:
        """All of the body."""
        return b"".join([chunk async for chunk in self.body])


def reply(status: int, body: bytes, media_type: str) -> Reply:
    """An answer of our own."""

    async def once() -> AsyncIterator[bytes]:
        yield body

    headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    return Reply(status, headers, once())


class _Side:
    """One end of a connection."""

    def __init__(
        self,
        role: type[h11.SERVER] | type[h11.CLIENT],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.protocol = h11.Connection(role)
        self._reader = reader
        self._writer = writer

    async def send(self, *events: h11.Event) -> None:
        for event in events:
            data = self.protocol.send(event)
            if data:
                self._writer.write(data)
        await self._writer.drain()

    async def next(self) -> h11.Event:
        while not isinstance(event := self.protocol.next_event(), h11.Event):
            if event is h11.PAUSED:
                raise Broken
            if self.protocol.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[]))
            self.protocol.receive_data(await self._reader.read(CHUNK))
        return event

    async def body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self.next(), h11.Data):
            yield bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise Broken

    def abort(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


class Client:
    """The side of whoever calls us."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._side = _Side(h11.SERVER, reader, writer)

    async def request(self) -> Call | None:
        """The next request; None where there is none any more. Raises Broken, or what h11 raises."""
        protocol = self._side.protocol
        if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
            protocol.start_next_cycle()
        if protocol.their_state is not h11.IDLE:
            return None
        head = await self._side.next()
        if not isinstance(head, h11.Request):
            return None
        body = b"".join([chunk async for chunk in self._side.body()])
        return Call(head.method.decode(), head.target.decode("latin-1"), list(head.headers), body)

    async def answer(self, given: Reply) -> None:
        """Pass on an answer."""
        await self._side.send(h11.Response(status_code=given.status, headers=given.headers))
        async for chunk in given.body:
            await self._side.send(h11.Data(data=chunk))
        await self._side.send(h11.EndOfMessage())

    def abort(self) -> None:
        """End the connection without an answer."""
        self._side.abort()

    def close(self) -> None:
        """End the connection."""
        self._side.close()


@asynccontextmanager
async def asked(url: str, call: Call) -> AsyncIterator[Reply]:
    """The answer of the server at a URL, over a connection of its own. Raises OSError, Broken."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    side = _Side(h11.CLIENT, reader, writer)
    try:
        kept = [(name, value) for name, value in call.headers if name.lower() not in _HOP_BY_HOP]
        head = h11.Request(method=call.method, target=call.target, headers=[*kept, (b"connection", b"close")])
        await side.send(head, h11.Data(data=call.body), h11.EndOfMessage())
        while isinstance(event := await side.next(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise Broken
        headers = [(name, value) for name, value in event.headers if name.lower() not in _HOP_BY_HOP]
        yield Reply(event.status_code, headers, side.body())
    finally:
        side.close()
