"""The ECS task metadata endpoint (version 4) for tasks that run as processes: who a task is, what it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trueup.model.plan import CodeIdentity


class Metadata:
    """Task documents by the task's id, served at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._tasks: dict[str, dict[str, Any]] = {}

    def add(self, arn: str, code: CodeIdentity) -> str:
        """Serve a task, and give what its ECS_CONTAINER_METADATA_URI_V4 must be."""
        family, _, revision = code.task_definition.rpartition("/")[2].partition(":")
        task_id = arn.rpartition("/")[2]
        self._tasks[task_id] = {
            "TaskARN": arn,
            "Family": family,
            "Revision": revision,
            "Containers": [{"ImageID": code.image_digest}],
        }
        return f"{self.address}/v4/{task_id}"

    def find(self, path: str) -> dict[str, Any] | None:
        """The document at a path; None where there is none."""
        parts = path.strip("/").split("/")
        return (
            self._tasks.get(parts[1]) if len(parts) == 3 and (parts[0], parts[2]) == ("v4", "task") else None
        )


@contextmanager
def metadata_endpoint() -> Iterator[Metadata]:
    """Serve task metadata on a free loopback port while the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.metadata = Metadata(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, name="metadata", daemon=True)
    thread.start()
    try:
        yield server.metadata
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    metadata: Metadata


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with a task's document."""
        assert isinstance(self.server, _Server)
        found = self.server.metadata.find(self.path)
        body = json.dumps(found or {"error": "no such task"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        """Requests are not worth a line."""
