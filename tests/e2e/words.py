"""Between tasks and Step Functions: words that are lost, said twice, or come late."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .trouble import Troubles, Word, used_up


@dataclass(frozen=True, slots=True)
class Said:
    """A word and what became of it; `answer` is Step Functions' to each time that it arrived.

    "" where it was taken, else the error.
    """

    run_id: str
    kind: str
    how: str
    answer: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    run_id: str
    kind: str
    headers: Mapping[str, str]
    body: bytes


class Words:
    """Passes words on as the runs' trouble says. `to` is Step Functions' endpoint, once it is known."""

    def __init__(self, troubles: Troubles, url: str) -> None:
        self.url = url
        self.to = ""
        self._troubles = troubles
        self._said: list[Said] = []
        self._late: list[_Request] = []

    def said(self, run_id: str) -> list[Said]:
        """What the tasks of a run said, heartbeats apart."""
        return [one for one in self._said if one.run_id == run_id and one.kind != "Heartbeat"]

    def deliver(self, run_id: str) -> None:
        """Pass on what is late of a run."""
        for request in [one for one in self._late if one.run_id == run_id]:
            self._late.remove(request)
            _, _, answer = self._pass_on(request)
            self._said.append(Said(run_id, request.kind, "delivered", (answer,)))

    def take(self, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """A word of a task: status and body of the answer that it gets."""
        run_id = self._troubles.run_of(json.loads(body)["taskToken"])
        kind = headers["X-Amz-Target"].rpartition("SendTask")[2]
        request = _Request(run_id, kind, headers, body)
        word = used_up(self._troubles.of(run_id).words, kind)
        if isinstance(word, Word) and word.how != "twice":
            if word.how == "late":
                self._late.append(request)
            self._said.append(Said(run_id, kind, word.how))
            return 200, b"{}"
        status, answered, first = self._pass_on(request)
        again = (self._pass_on(request)[2],) if word else ()
        self._said.append(Said(run_id, kind, "twice" if word else "once", (first, *again)))
        return status, answered

    def _pass_on(self, request: _Request) -> tuple[int, bytes, str]:
        kept = {name: request.headers[name] for name in ("X-Amz-Target", "Content-Type")}
        asked = urllib.request.Request(self.to, request.body, kept)  # noqa: S310 - the engine's own address
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
                return answer.status, answer.read(), ""
        except urllib.error.HTTPError as refused:
            body = refused.read()
            return refused.code, body, json.loads(body)["__type"].rpartition("#")[2]


@contextmanager
def between_tasks_and_machines(troubles: Troubles) -> Iterator[Words]:
    """Listen while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = words.take(self.headers, body)  # type: ignore[arg-type]
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    words = Words(troubles, f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, name="words", daemon=True)
    thread.start()
    try:
        yield words
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
