"""`trueup up` with what it cannot use says what is wrong and what to do, and is not at fault itself."""

from __future__ import annotations

import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trueup.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the surroundings give, and without a change to this process's signals."""
    for name in ("TRUEUP_AWS_ENDPOINT", "TRUEUP_POSTGRES_DSN", "TRUEUP_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("trueup.cli.up.leave_on_sigterm", lambda: None)


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["up", *words])
    told = capsys.readouterr().err
    assert "fault of trueup" not in told
    return code, told


@pytest.mark.parametrize(
    "address",
    ["nonsense", "ftp://x", "http://", "http://127.0.0.1:99999", "http://[::1", "127.0.0.1:4566", "-"],
)
@pytest.mark.parametrize("way", ["option", "variable"])
def test_what_is_no_address_of_an_emulator_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: str, address: str
) -> None:
    if way == "variable":
        monkeypatch.setenv("TRUEUP_AWS_ENDPOINT", address)
    code, told = _said(capsys, *([f"--aws={address}"] if way == "option" else []))
    assert 2 == code
    assert "is no address of an emulator" in told
    assert "one like http://127.0.0.1:4566" in told


def test_an_emulator_that_does_not_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = _said(capsys, "--aws", "http://127.0.0.1:1")
    assert 1 == code
    assert "No emulator answers at http://127.0.0.1:1" in told
    assert "MiniStack is started then" in told


class Refusing(BaseHTTPRequestHandler):
    """Knows no method at all, and says nothing of it."""

    def log_message(self, *args: object) -> None:
        """Quiet."""


def test_what_answers_and_is_no_emulator_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code, told = _said(capsys, "--aws", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert 1 == code
    assert f"The emulator at http://127.0.0.1:{server.server_port} does not serve S3" in told


@pytest.mark.parametrize("dsn", ["nonsense", "host=", "postgres://[", "port=x host=localhost"])
def test_what_is_no_dsn_or_leads_nowhere_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    monkeypatch.setenv("TRUEUP_POSTGRES_DSN", dsn)
    code, told = _said(capsys)
    assert code in {1, 2}
    assert "TRUEUP_POSTGRES_DSN" in told


def test_a_server_of_ones_own_that_does_not_answer_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEUP_POSTGRES_DSN", "host=127.0.0.1 port=1 user=me")
    code, told = _said(capsys)
    assert 1 == code
    assert "PostgreSQL does not take the connection" in told
    assert "one is started then" in told


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what is deployed, to break."""
    for name in ("statemachines", "lambdas", "containers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "template.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"just words", "it is a str, and a template is a mapping"),
        (b"", "it is empty"),
        (b"- a", "it is a list"),
        (b"a: [", "it cannot be read"),
        (b"\xff\xfe\x00", "it cannot be read"),
        (b"a: b", "Resources is empty"),
        (b"Resources: [1]", "Resources is a list"),
        (b"Resources: {A: 1}", "Resources: A has to be a mapping with a Type"),
        (b"Resources: {A: {Type: 1}}", "Resources: A has to be a mapping with a Type"),
        (b"Resources: {A: {Type: X, Properties: 1}}", "Resources: A: Properties is a int"),
        (b"Parameters: 1\nResources: {A: {Type: X}}", "Parameters is a int"),
    ],
)
def test_a_template_that_is_none_is_told(
    capsys: pytest.CaptureFixture[str], clone: Path, text: bytes, what: str
) -> None:
    (clone / "template.yaml").write_bytes(text)
    code, told = _said(capsys)
    assert 1 == code
    assert f"template.yaml: {what}" in told
    assert "Correct it" in told


@pytest.mark.parametrize(
    "text", [b"", b"just words", b"a: [", b"\xff\xfe\x00", b"name: 7", b"- a", b"a: !!python/x 1"]
)
def test_a_broken_job_file_is_told(capsys: pytest.CaptureFixture[str], clone: Path, text: bytes) -> None:
    (clone / "containers" / "flights-rows" / "job.yaml").write_bytes(text)
    code, told = _said(capsys)
    assert 2 == code
    assert "containers/flights-rows/job.yaml" in told


def test_a_job_file_that_is_a_folder_is_told(capsys: pytest.CaptureFixture[str], clone: Path) -> None:
    file = clone / "containers" / "flights-rows" / "job.yaml"
    file.unlink()
    file.mkdir()
    code, told = _said(capsys)
    assert 2 == code
    assert "it cannot be read: Is a directory" in told


@pytest.mark.parametrize("place", ["/nonexistent", "/proc"])
def test_no_room_for_temporary_files_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", place)
    code, told = _said(capsys)
    assert 1 == code
    assert f"The local stack has no folder for its files ({place}: " in told
    assert "set TMPDIR" in told
