"""The API of a world behind a socket: what API Gateway does, as far as the command line can tell.

A call whose signature is not that of one of `USERS` gets API Gateway's own 403.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from trueup.handling.api import Api

from .api_cases import event_of

USERS = {"AKIAANN": ("ann", "ann's secret"), "AKIABOB": ("bob", "bob's secret")}
REGION = "eu-west-1"


def be(monkeypatch: pytest.MonkeyPatch, key: str, secret: str | None = None) -> None:
    """Sign as the user of a key."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret or USERS[key][1])
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@contextmanager
def serving(api: Api, before: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Serve an API, and give its address; `before` is called before each call."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            caller = _caller(self, body)
            if not caller:
                self._send(403, {"content-type": "application/json"}, json.dumps({"message": "Forbidden"}))
                return
            before()
            url = urlsplit(self.path)
            event = event_of(
                self.command,
                url.path,
                query=dict(parse_qsl(url.query, keep_blank_values=True)),
                body=body or None,
                caller=caller,
                headers=dict(self.headers.items()),
            )
            answer = api.handle(event)
            self._send(answer["statusCode"], answer["headers"], answer["body"])

        def _send(self, status: int, headers: dict[str, str], body: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            data = body.encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *said: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _caller(handler: BaseHTTPRequestHandler, body: str) -> str:
    """Whose signature a call has, by making it again; empty where it is nobody's."""
    signed = handler.headers.get("Authorization", "")
    key = signed.partition("Credential=")[2].partition("/")[0]
    if not signed.startswith("AWS4-HMAC-SHA256 ") or key not in USERS:
        return ""
    name, secret = USERS[key]
    auth = SigV4Auth(Credentials(key, secret), "execute-api", REGION)
    headers = {
        one: handler.headers[one]
        for one in signed.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    }
    url = f"http://{handler.headers['Host']}{handler.path}"
    request = AWSRequest(method=handler.command, url=url, data=body.encode() or None, headers=headers)
    request.context["timestamp"] = handler.headers["X-Amz-Date"]
    made = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return f"arn:aws:iam::123456789012:user/{name}" if signed.endswith(f"Signature={made}") else ""
