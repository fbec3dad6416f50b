"""One address for many servers: each call reaches the one that has its service, and its answer comes back."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from trueup.local.gateway import REST, STATES, TASKS, gateway, service_of
from trueup.local.serving import listen, url_of

SIGNED = (
    "AWS4-HMAC-SHA256 Credential=AKIA/20260706/eu-west-1/{}/aws4_request, SignedHeaders=host, Signature=0"
)


@pytest.mark.parametrize(
    ("service", "path", "query", "headers"),
    [
        ("states", "/", "", {"authorization": SIGNED.format("states")}),
        ("s3", "/bucket/key", "", {"authorization": SIGNED.format("s3")}),
        (
            "ecs",
            "/",
            "",
            {"authorization": SIGNED.format("ecs"), "x-amz-target": "AWSStepFunctions.StartExecution"},
        ),
        ("states", "/", "", {"x-amz-target": "AWSStepFunctions.StartExecution"}),
        ("ecs", "/", "", {"x-amz-target": "AmazonEC2ContainerServiceV20141113.RunTask"}),
        ("", "/", "", {"x-amz-target": "DynamoDB_20120810.PutItem"}),
        ("s3", "/b/k", "X-Amz-Credential=AKIA%2F20260706%2Feu-west-1%2Fs3%2Faws4_request", {}),
        ("", "/b/k", "X-Amz-Credential=nonsense", {}),
        ("", "/", "", {"authorization": "Bearer states"}),
        ("", "/", "", {"authorization": "\xff Credential=//states"}),
        ("ecs", "/_ecs/ready", "", {}),
        ("", "/_aws/execute-api/x", "", {}),
    ],
)
def test_a_call_says_which_service_it_is_for(
    service: str, path: str, query: str, headers: dict[str, str]
) -> None:
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    assert service == service_of(path.encode(), query.encode(), raw)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def server(handle: Handler) -> Iterator[str]:
    """A server that does to each connection what `handle` does."""
    listening, loop = listen(), asyncio.new_event_loop()

    async def each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            writer.close()

    async def serve() -> None:
        async with await asyncio.start_server(each, sock=listening):
            await stopped.wait()

    stopped = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    yield url_of(listening)
    loop.call_soon_threadsafe(stopped.set)
    thread.join()
    loop.close()


def says(answer: bytes) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    return handle


def nowhere() -> str:
    """Where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def asked(front: str, method: str = "GET", path: str = "/", **call: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(front.removeprefix("http://"), timeout=20)
    try:
        connection.request(method, path, **call)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_each_service_has_its_server() -> None:
    with (
        server(says(ok(b"ours"))) as ours,
        server(says(ok(b"tasks"))) as tasks,
        server(says(ok(b"rest"))) as rest,
        gateway(listen(), {STATES: ours, TASKS: tasks, REST: rest}) as front,
    ):
        found = [
            asked(front, headers={"Authorization": SIGNED.format(name)})[1]
            for name in ("states", "ecs", "s3", "sqs")
        ]
    assert [b"ours", b"tasks", b"rest", b"rest"] == found


def test_a_path_arrives_as_it_was_written() -> None:
    heard: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ok(b""))

    with server(handle) as rest, gateway(listen(), {REST: rest}) as front:
        asked(front, path="/b/a%2Fb%20%C3%A9+~?x=%2F&y", headers={"X-Own": "kept"})
    assert heard[0].startswith(b"GET /b/a%2Fb%20%C3%A9+~?x=%2F&y HTTP/1.1\r\n")
    assert b"x-own: kept\r\n" in heard[0].lower()
    assert b"host: " + front.removeprefix("http://").encode() in heard[0].lower()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_goes_there_and_back(chunked: bool) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert chunked == (b"transfer-encoding: chunked" in head.lower())
        # The whole of it first: the caller reads nothing before it has sent everything.
        pieces, left = [], size
        while left > 0:
            if chunked:
                pieces.append(await reader.readexactly(int(await reader.readline(), 16)))
                await reader.readexactly(2)
            else:
                pieces.append(await reader.read(min(left, 100_000)))
            left -= len(pieces[-1])
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    size = 20_000_000
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with server(echo) as rest, gateway(listen(), {REST: rest}) as front:
        given = iter([body[start : start + 70_000] for start in range(0, size, 70_000)]) if chunked else body
        assert (200, body) == asked(
            front,
            "PUT",
            body=given,
            encode_chunked=chunked,
            headers=({"Transfer-Encoding": "chunked"} if chunked else {}),
        )


def test_a_server_that_is_not_there_is_named() -> None:
    with gateway(listen(), {STATES: nowhere(), REST: nowhere()}) as front:
        status, body = asked(front, headers={"Authorization": SIGNED.format("states")})
        assert 503 == status
        assert b"The server of states does not answer" in body


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n"])
def test_a_server_that_breaks_off_is_told(answer: bytes) -> None:
    with server(says(answer)) as rest, gateway(listen(), {REST: rest}) as front:
        status, body = asked(front)
    assert 503 == status
    assert b"The server broke off" in body


def test_half_an_answer_is_not_taken_for_a_whole_one() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    broken = pytest.raises((http.client.IncompleteRead, ConnectionError))
    with server(says(half)) as rest, gateway(listen(), {REST: rest}) as front, broken:
        asked(front)


def test_an_answer_before_the_end_of_the_question_arrives() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"
    with server(says(refusal)) as rest, gateway(listen(), {REST: rest}) as front:
        address = front.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1])), timeout=20) as asking:
            asking.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbegun")
            heard = b""
            while b"no!" not in heard:
                heard += asking.recv(1000)
    assert heard.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_who_speaks_an_older_protocol_or_asks_for_another_is_answered(head: bytes) -> None:
    """RFC 9112, section 3.2: HTTP/1.0 needs no Host; RFC 9110, section 7.8: an Upgrade may be ignored."""
    with server(says(ok(b"here"))) as rest, gateway(listen(), {REST: rest}) as front:
        address = front.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1])), timeout=20) as asking:
            asking.sendall(head)
            heard = b""
            while not heard.endswith(b"here"):
                heard += asking.recv(1000)
    assert heard.startswith(b"HTTP/1.1 200")


def test_who_asks_whether_to_go_on_may() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"expect" not in head.lower()
        writer.write(ok(await reader.readexactly(4)))

    with server(handle) as rest, gateway(listen(), {REST: rest}) as front:
        address = front.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1])), timeout=20) as asking:
            asking.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
            assert asking.recv(1000).startswith(b"HTTP/1.1 100")
            asking.sendall(b"body")
            heard = b""
            while not heard.endswith(b"body"):
                heard += asking.recv(1000)


@pytest.mark.parametrize("chunked", [False, True])
def test_who_leaves_in_the_middle_of_a_question_keeps_no_server_waiting(chunked: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"begun")
        begun.set()
        with suppress(ConnectionError):
            await reader.read()
        ended.set()

    framed = b"Transfer-Encoding: chunked\r\n\r\n5\r\n" if chunked else b"Content-Length: 100\r\n\r\n"
    with server(handle) as rest, gateway(listen(), {REST: rest}) as front:
        address = front.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1])), timeout=20) as asking:
            asking.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\n" + framed + b"begun")
            assert begun.wait(20)
        assert ended.wait(20)


def test_headers_come_once() -> None:
    date = "Mon, 06 Jul 2026 01:00:00 GMT"
    head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nServer: its own\r\nContent-Length: 0\r\n\r\n"
    with server(says(head.encode())) as rest, gateway(listen(), {REST: rest}) as front:
        connection = http.client.HTTPConnection(front.removeprefix("http://"), timeout=20)
        with closing(connection):
            connection.request("GET", "/")
            answer = connection.getresponse()
            assert [date] == answer.headers.get_all("Date")
            assert ["its own"] == answer.headers.get_all("Server")
