"""Whatever a person types, and whatever answers at the API's address: one message, and no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import stamina
import typer.main
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trueup.aws.api import Reply, SignedApi
from trueup.cli import COMMANDS, app, main
from trueup.cli.answers import what_is_wrong

from .test_cli_api import Stage, started
from .test_cli_api import stage as stage

SETTINGS = settings(
    max_examples=40,
    deadline=None,
    # Commands change nothing but the run that was started, and asking again is what people do.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
GROUP: Any = typer.main.get_command(app)
# `up` and `demo` start servers; the files that `new`, `validate` and `estimate` read are nonsense elsewhere.
ASKING = sorted(set(COMMANDS) - {"up", "demo", "new", "validate", "estimate"})
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "numbers",
        "RUN",
        "2013-01-01",
        "a=b",
        "depth=1",
        "@none",
        "@/dev/null",
        "-",
        "--",
        "-1",
        "0",
        "1e9",
        "NaN",
        "ACCEPTED",
        "apply",
        "x" * 5000,
        "a/b",
        "..",
        "?",
        "#",
        "%00",
        "é",
        "\u202e",
        "\ud800",
        "\udcff",
        "\x00",
    ]
) | st.text(max_size=8)


def options_of(name: str) -> st.SearchStrategy[list[str]]:
    """Options of a command with anything as their values; the addresses and those that wait stay away."""
    away = {"--api", "--wait", "--watch", "--every", "--html", "--to", "--help"}
    found = [
        one
        for one in GROUP.commands[name].params
        if one.param_type_name == "option" and not away & set(one.opts)
    ]
    each = [
        st.just([one.opts[0]]) if one.is_flag else TEXTS.map(lambda text, one=one: [one.opts[0], text])
        for one in found
    ]
    return st.lists(st.one_of(each), max_size=4).map(lambda many: [word for one in many for word in one])


def said(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str]:
    """How a command exits, and what it says on standard error: never that it was surprised."""
    with stamina.set_testing(True, attempts=1):
        code = main(arguments)
    told = capsys.readouterr()
    assert code in range(5), (arguments, code)
    assert "Traceback" not in told.err + told.out
    assert "did not expect" not in told.err, (arguments, told.err)
    assert code in (0, 3, 4) or told.err.strip(), arguments
    return code, told.err


@pytest.mark.parametrize("name", ASKING)
def test_whatever_a_person_types(name: str, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = started(capsys)
    stage.finish()

    @SETTINGS
    @given(options=options_of(name), words=st.lists(TEXTS, max_size=2))
    @example(options=[], words=["RUN"])
    def ask(options: list[str], words: list[str]) -> None:
        said(capsys, [name, *options, *(run_id if word == "RUN" else word for word in words)])

    ask()


ANSWERS = {
    "nothing": (200, "application/json", b""),
    "a page": (200, "text/html", b"<html>Welcome to nginx</html>"),
    "bytes": (200, "application/json", bytes(range(256))),
    "another document": (200, "application/json", b"{}"),
    "a list": (200, "application/json", b"[]"),
    "a number": (200, "application/json", b"1"),
    "null": (200, "application/json", b"null"),
    "half a document": (200, "application/json", b'{"run": {}, "runs": [{}], "jobs": [{}], "entries": [{}]}'),
    "a gateway's word": (502, "text/html", b"Bad Gateway"),
    "forbidden": (403, "application/json", b'{"message": "Forbidden"}'),
    "no problem": (400, "application/problem+json", b'{"detail": "it is wrong"}'),
    "a list of problems": (400, "application/json", b"[]"),
    "moved": (302, "text/html", b""),
}


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[str]:
    """A server that gives the same answer to every call."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - http.server's name

        def log_message(self, *told: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_whatever_answers_at_the_address(
    answer: tuple[int, str, bytes],
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with answering(*answer) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        for name in ASKING:
            code, told = said(capsys, [name, *WORDS.get(name, ["r"])])
            assert 0 != code, (name, told)
            assert len(told.splitlines()) == 1
        assert 0 != said(capsys, ["status", "r", "--watch"])[0]
        assert 0 != said(capsys, ["status"])[0]
        assert 0 != said(capsys, ["report", "r", "--html", str(tmp_path / "page.html")])[0]


def _like(value: Any) -> st.SearchStrategy[Any]:
    """A document like one that the API gives, with something of another kind here and there."""
    if isinstance(value, dict) and value:
        made = st.fixed_dictionaries({name: _like(one) for name, one in value.items()})
    elif isinstance(value, list) and value:
        made = st.lists(st.one_of([_like(one) for one in value]), max_size=2)
    else:
        made = st.just(value)
    return st.one_of([made] * 6 + [ANYTHING])


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 2**70, 10**400, 1e300, float("nan"), float("inf"), "", "\ud800", "\x1b[31m"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["run", "next", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
# Everything that a command reads, in one document: each takes what it knows of it.
WHOLE: Any = {
    "run": {"runId": "r", "status": "RUNNING", "kind": "backfill"},
    "runs": [
        {"runId": "r", "partitions": 3, "status": "x", "window": "w", "createdAt": "c", "requester": "q"}
    ],
    "jobs": [{"name": "numbers", "parameters": {"properties": {"a": {"type": "string"}}}}],
    "partitions": [{"partitionId": "p", "records": {"read": 1}, "error": {"kind": "k"}, "updatedAt": None}],
    "rejects": [{"partitionId": "p", "reject": {"a": 1}}],
    "lines": [{"at": "t", "message": "m"}],
    "entries": [{"at": "t", "who": "w", "verb": "v", "subject": "s", "why": "y"}],
    "gates": [
        {"name": "apply", "sha256": "3f9a1c07", "status": "OPEN", "facts": [{"name": "n", "value": "v"}]}
    ],
    "manifest": {"gates": [], "objects": []},
    "eta": {"seconds": 3, "basis": "b"},
    "next": None,
    "location": "/runs/r",
    "detail": "d",
    "remedy": "r",
}
WORDS = {
    "start": ["numbers", "--param", "a=b"],
    "jobs": [],
    "logs": ["r", "--partition", "p"],
    "approve": ["r", "apply", "--sha", "3f9a1c07"],
    "reject": ["r", "apply", "--sha", "3f9a1c07", "--reason", "wrong window"],
    "withdraw": ["r", "3f9a1c07d2e4", "--why", "it is through"],
    "sign": ["r", "--until", "2027-01-31", "--why", "it rounds"],
}


@pytest.mark.parametrize("name", ASKING)
def test_whatever_document_answers_a_command(
    name: str, stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @SETTINGS
    @given(
        document=ANYTHING | _like(WHOLE), status=st.sampled_from([200, 202, 400, 409]), plain=st.booleans()
    )
    @example(document={"run": "x"}, status=200, plain=True)
    @example(document={"runs": {}, "jobs": {"a": 1}, "gates": "x", "entries": [[]]}, status=200, plain=False)
    @example(document=WHOLE | {"next": "again"}, status=200, plain=True)
    def ask(document: Any, status: int, plain: bool) -> None:
        reply = Reply(status, "application/json", json.dumps(document).encode())
        monkeypatch.setattr(SignedApi, "call", lambda *asked, **more: reply)
        code, told = said(capsys, [name, *WORDS.get(name, ["r"]), *([] if plain else ["--json"])])
        assert code in (0, 3, 4) or 1 == len(told.splitlines()), told

    ask()


@pytest.mark.parametrize(
    ("path", "document", "told"),
    [
        ("/runs/r", {"run": "x"}, "something without 'phase'"),
        ("/runs", {"runs": {}}, "something whose 'runs' is no array"),
        ("/runs", {"runs": [{"runId": True}]}, "something without 'runs[0].job'"),
        ("/runs", {"runs": [], "next": 3}, "something whose 'next' is no string"),
        ("/jobs", [], "what is no object"),
        ("/runs", {"runs": [], "next": None, "new": 1}, None),
    ],
)
def test_what_is_no_answer_of_the_api_is_named(path: str, document: Any, told: str | None) -> None:
    assert told == what_is_wrong("GET", path, 200, document)
    assert "302, which it has no reason to" == what_is_wrong("GET", path, 302, document)
