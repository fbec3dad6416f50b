"""The API over a world in memory: calls as API Gateway hands them on, and answers held to the document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from trueup.errors import RequestError
from trueup.handling.api import Api, Services
from trueup.handling.api.openapi import FILE
from trueup.handling.api.routes import ROUTES
from trueup.knowing import Knowing
from trueup.watching import GateViews, Lists, Watch

from .handler_world import World

ANN = "arn:aws:iam::123456789012:user/ann"
OPENAPI = json.loads(FILE.read_text(encoding="utf-8"))
_REGISTRY = Registry().with_resource("openapi", Resource(contents=OPENAPI, specification=DRAFT202012))


class FakeLogs:
    """Two lines for every task, a page each where one is asked for."""

    def lines(
        self, stream: str, *, limit: int, after: str | None
    ) -> tuple[list[tuple[datetime, str]], str | None]:
        if after is not None and not after.isdecimal():
            raise RequestError("it is no token of this log.", remedy="Give `next` unchanged.", field="after")
        start = int(after or 0)
        said = [f"{stream} began", f"{stream} ended"][start : start + limit]
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return [(at, line) for line in said], f"{start + len(said)}" if said else None


def api_of(world: World) -> Api:
    """The API of a world."""
    watch = Watch(world.ledger, world.artifacts, world.clock)
    lists = Lists(world.ledger, world.artifacts)
    gates = GateViews(world.ledger, world.artifacts)
    services = Services(
        world.ledger,
        watch,
        lists,
        world.reports,
        FakeLogs(),
        world.start,
        gates,
        world.gating,
        world.jobs,
        Knowing(world.ledger, world.artifacts, world.clock),
        world.metrics,
    )
    return Api(services)


def event_of(
    method: str,
    path: str,
    query: Mapping[str, str] | None = None,
    body: Any = None,
    caller: str = ANN,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A call in payload format 2.0. A body that is no text is sent as JSON."""
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    return {
        "version": "2.0",
        "routeKey": "ANY /{proxy+}",
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={quote(value)}" for name, value in (query or {}).items()),
        **({"queryStringParameters": dict(query)} if query else {}),
        "headers": dict(headers or {}),
        "requestContext": {
            "http": {"method": method, "path": path},
            **({"authorizer": {"iam": {"userArn": caller}}} if caller else {}),
        },
        **({} if text is None else {"body": text}),
        "isBase64Encoded": False,
    }


@dataclass
class Client:
    """Calls an API, and holds each answer to the document."""

    api: Api

    def call(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """The status and the document of an answer, which the OpenAPI document has to know."""
        answer = self.api.handle(event_of(method, path, **more))
        document = json.loads(answer["body"])
        check_answer(method, path, answer["statusCode"], answer["headers"]["content-type"], document)
        return answer["statusCode"], document

    def get(self, path: str, **query: str) -> Any:
        """The document of a GET that goes well."""
        status, document = self.call("GET", path, query=query)
        assert status == 200, document
        return document

    def problem(self, method: str, path: str, **more: Any) -> tuple[int, str, str, str]:
        """Status, kind, field and the text with the remedy of a call that does not."""
        status, found = self.call(method, path, **more)
        assert status >= 400, found
        kind = found["type"].removeprefix("urn:trueup:problem:")
        return status, kind, found.get("field", ""), f"{found['detail']} {found['remedy']}"


def check_answer(method: str, path: str, status: int, kind: str, document: Any) -> None:
    """Fails where the OpenAPI document does not know of such an answer."""
    routes = [route for route in ROUTES if route.method == method and route.takes(path) is not None]
    if not routes:
        assert status in (403, 404, 405), (method, path, status)
        return
    known = OPENAPI["paths"][routes[0].path][method.lower()]["responses"]
    assert str(status) in known, (method, path, status, document)
    schema = {"$ref": f"openapi{known[str(status)]['content'][kind]['schema']['$ref']}"}
    errors = list(Draft202012Validator(schema, registry=_REGISTRY).iter_errors(document))
    assert not errors, errors[0]
