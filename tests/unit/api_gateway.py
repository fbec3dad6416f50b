"""API Gateway before the API, as a WSGI application: who did not sign is refused, the rest handed on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from trueup.handling.api import Api

from .api_cases import event_of

SIGNED = "AWS4-HMAC-SHA256 Credential=ann"
"""Stands for a signature that is right; any other is wrong. `api_server` checks real ones."""


def gateway(api: Api, before: Callable[[], None] = lambda: None) -> Callable[..., Iterable[bytes]]:
    """An application that asks the API; `before` is called before each call."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_AUTHORIZATION") == SIGNED:
            before()
            answer = api.handle(_event(environ))
        else:
            body = json.dumps({"message": "Forbidden"})
            answer = {"statusCode": 403, "headers": {"content-type": "application/json"}, "body": body}
        status = HTTPStatus(answer["statusCode"])
        start_response(f"{status.value} {status.phrase}", list(answer["headers"].items()))
        return [answer["body"].encode()]

    return app


def _event(environ: dict[str, Any]) -> dict[str, Any]:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    # WSGI hands paths and queries on as Latin-1.
    path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
    query = environ["QUERY_STRING"].encode("latin-1").decode(errors="replace")
    return event_of(
        environ["REQUEST_METHOD"],
        path,
        query=dict(parse_qsl(query, keep_blank_values=True)),
        body=body.decode(errors="replace") if body else None,
        headers={"accept": environ.get("HTTP_ACCEPT", "")},
    )
