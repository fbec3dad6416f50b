"""One address for the whole stack: passes each call on to the server that has its service.

Which service a call is for is in its signature, `Credential=<key>/<date>/<region>/<service>/aws4_request`, or
in its header X-Amz-Target where nobody signed it. Step Functions and ECS are ours; the emulator has the rest.
Bodies go through in pieces, in both directions; nothing is kept of them.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import h11
import uvicorn

from trueup.local.serving import Server, stop_soon, url_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

STATES, TASKS = "states", "ecs"
"""The services of ours, as signatures name them."""
REST = "*"

_TARGETS = {b"AWSStepFunctions": STATES, b"AmazonEC2ContainerServiceV20141113": TASKS}
_SIGNED = re.compile(rb"Credential=[^/,]+/\d{8}/[^/,]*/([^/,]+)/aws4_request")
_ADMIN = b"/_ecs/"
_CHUNK = 64 * 1024
# Of one connection, and none of the next one's business (RFC 9110, section 7.6.1).
_OF_A_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"})
_NOT_ANSWERED = _OF_A_HOP | {b"transfer-encoding"}
"""uvicorn frames the answer itself."""


def service_of(path: bytes, query: bytes, headers: Mapping[bytes, bytes]) -> str:
    """The service that a call is for, in lower case; empty where it does not say."""
    if path.startswith(_ADMIN):
        return TASKS
    signed = _SIGNED.search(headers.get(b"authorization", b""))
    if signed:
        return signed[1].decode(errors="replace").lower()
    (presigned, *_) = parse_qs(query.decode(errors="replace")).get("X-Amz-Credential", [""])
    if presigned.count("/") == 4:
        return presigned.split("/")[3].lower()
    return _TARGETS.get(headers.get(b"x-amz-target", b"").partition(b".")[0], "")


class Gateway:
    """The ASGI application; `servers` are URLs by service, and `*` is where all others are."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self._servers = {service: urlsplit(url) for service, url in servers.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and its response back."""
        if scope["type"] != "http":
            return
        service = service_of(scope["raw_path"], scope["query_string"], dict(scope["headers"]))
        server = self._servers.get(service, self._servers[REST])
        try:
            # Its backlog takes a connection at once or never: there is nothing to wait for.
            reader, writer = await asyncio.open_connection(
                server.hostname, server.port or 80, ssl=True if server.scheme == "https" else None
            )
        except OSError as error:
            await _refuse(send, f"The server of {service or 'the emulator'} does not answer: {error}.")
            return
        try:
            await _Exchange(reader, writer).run(scope, receive, send)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class _CallerGone(Exception):
    """In the middle of its question."""


class _Exchange:
    """One request and its response, on a connection of their own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)
        self._begun = False

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        asking = asyncio.create_task(self._ask(scope, receive))
        try:
            await self._answer(send)
        except (OSError, h11.RemoteProtocolError) as error:
            if self._begun:
                raise  # half an answer is out: the caller sees that it ends too early
            await _refuse(send, f"The server broke off: {error}.")
        finally:
            # A server may answer before it has heard everything.
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()  # the answer, or that there was none, has told it

    async def _ask(self, scope: Scope, receive: Receive) -> None:
        try:
            await self._pass(scope, receive)
        except (_CallerGone, h11.LocalProtocolError):
            # The server waits for the rest, and who reads its answer waits for the server.
            self._writer.transport.abort()
            raise

    async def _pass(self, scope: Scope, receive: Receive) -> None:
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        await self._write(
            h11.Request(method=scope["method"], target=target, headers=_passed_on(scope["headers"]))
        )
        async for piece in _body(receive):
            await self._write(h11.Data(data=piece))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def _answer(self, send: Send) -> None:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                self._begun = True
                headers = [pair for pair in event.headers.raw_items() if pair[0].lower() not in _NOT_ANSWERED]
                await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
            elif isinstance(event, h11.Data):
                await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                await send({"type": "http.response.body", "body": b""})
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("it said nothing")

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event


def _passed_on(headers: list[Header]) -> list[Header]:
    # Who asks whether to go on was told to: its body is on the way.
    kept = [pair for pair in headers if pair[0] not in _OF_A_HOP | {b"expect"}]
    if not any(name == b"host" for name, _ in kept):
        kept.append((b"host", b"localhost"))  # who speaks HTTP/1.0 need not name one; here it is needed
    return [*kept, (b"connection", b"close")]


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _CallerGone
        if message.get("body"):
            yield message["body"]
        more = message.get("more_body", False)


async def _refuse(send: Send, why: str) -> None:
    """In a form that botocore reads from services with JSON; others see the status."""
    body = json.dumps({"__type": "ServiceUnavailableException", "message": why}).encode()
    headers = [(b"content-type", b"application/x-amz-json-1.1"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def gateway(listening: socket.socket, servers: Mapping[str, str]) -> Iterator[str]:
    """Serve from a thread while the block lasts; gives the address. See `Gateway` for `servers`."""
    ready: Future[Callable[[], None]] = Future()

    async def serve() -> None:
        config = uvicorn.Config(
            Gateway(servers),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",  # who asks for another protocol is answered in this one
            date_header=False,  # the servers' own pass through
            server_header=False,
        )
        server, loop = Server(config), asyncio.get_running_loop()
        ready.set_result(lambda: stop_soon(loop, server))
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="gateway", daemon=True)
    thread.start()
    stop = ready.result()
    try:
        yield url_of(listening)
    finally:
        stop()
        thread.join()
        listening.close()
