"""`--as` names another person on a local stack, and on AWS nobody."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trueup.cli import main
from trueup.local.people import local_user

ANSWER = b"""<GetCallerIdentityResponse><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ann</Arn><UserId>A</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Aws(BaseHTTPRequestHandler):
    """Stands in for STS of an account that is somebody's; whoever asks for anything else is heard."""

    heard: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.heard.append(body.partition("&")[0])
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def aws() -> Iterator[str]:
    """AWS behind an endpoint of one's own, as a VPC endpoint is."""
    Aws.heard = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Aws) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert 2 == main(["jobs", *words])
    return capsys.readouterr().err


@pytest.mark.parametrize("way", ["option", "variable"])
@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:4566"])
def test_nobody_is_named_to_aws(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: str, endpoint: str | None
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if endpoint is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    if way == "variable":
        monkeypatch.setenv("TRUEUP_AS", "bob")
    words = ["--api", "https://abc.execute-api.eu-west-1.amazonaws.com"]
    told = _said(capsys, *words, *(["--as", "bob"] if way == "option" else []))
    assert "is not on a local stack, and on AWS the caller is whose the credentials are" in told
    assert "AWS_PROFILE" in told


def test_an_account_that_is_somebodys_gets_no_users(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, aws: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    told = _said(capsys, "--api", f"{aws}/api", "--as", "bob")
    assert "is not on a local stack" in told
    assert ["Action=GetCallerIdentity"] == Aws.heard


@pytest.mark.parametrize("name", ["two words", "a/b", "x" * 65, "arn:aws:iam::1:user/bob", "é"])
def test_what_iam_cannot_name_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert "cannot be a person's name" in _said(capsys, "--api", "http://127.0.0.1:1/api", "--as", name)


def test_a_stack_that_is_gone_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert 1 == main(["jobs", "--api", "http://127.0.0.1:1/api", "--as", "bob"])
    assert "The local stack does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("user", "person"),
    [("ann", "ann"), ("Ann Smith", "Ann-Smith"), ("é", "-"), ("", "local"), ("x" * 70, "x" * 64)],
)
def test_the_local_user_is_named_as_iam_can(monkeypatch: pytest.MonkeyPatch, user: str, person: str) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: user)
    assert person == local_user()


def test_a_user_without_a_name_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert "local" == local_user()
