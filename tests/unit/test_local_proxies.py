"""Calls to this machine go there, whatever proxies the surroundings name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trueup.local.aws import client, proxies_to
from trueup.local.stepfunctions.integrations.calls import BotoCalls


@pytest.mark.parametrize(
    ("address", "proxies"),
    [
        ("http://127.0.0.1:4566", {}),
        ("http://localhost:4566", {}),
        ("http://api.localhost:4566", {}),
        ("http://[::1]:4566", {}),
        ("http://emulator.example:4566", None),
        ("http://10.0.0.7:4566", None),
        (None, None),
    ],
)
def test_to_this_machine_no_proxy_leads(address: str | None, proxies: dict[str, str] | None) -> None:
    assert proxies == proxies_to(address)


class Buckets(BaseHTTPRequestHandler):
    """An S3 without buckets."""

    def do_GET(self) -> None:
        """Any call."""
        body = b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where that S3 is."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Buckets) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_client_reaches_its_emulator_although_a_proxy_is_set(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    machines = BotoCalls({"*": address}, "us-east-1")
    for one in (client("s3", address), machines._client("s3")):
        assert [] == one.list_buckets().get("Buckets", [])
