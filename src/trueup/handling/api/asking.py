"""One call of the API, read from payload format 2.0."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from trueup.errors import RequestError
from trueup.jobfile import instead
from trueup.model.base import Value

V = TypeVar("V", bound=Value)


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, with what. `caller` is the identity that signed the call, empty where nobody did."""

    method: str
    path: str
    caller: str
    query: Mapping[str, str]
    accept: str
    body: str

    def of_query(self, model: type[V]) -> V:
        """The query's parameters as a value. RequestError names the one that is wrong."""
        _known(self.query, model)
        try:
            return model.model_validate(dict(self.query))
        except ValidationError as error:
            raise _wrong(error) from error

    def body_of(self, model: type[V]) -> V:
        """The body as a value. RequestError names the field that is wrong."""
        try:
            return model.model_validate(self.document(model))
        except ValidationError as error:
            raise _wrong(error) from error

    def document(self, model: type[Value]) -> dict[str, Any]:
        """The body, a JSON object with no other fields than the model has. RequestError where it is none."""
        try:
            found = json.loads(self.body or "null")
        except ValueError as error:
            raise RequestError(f"the body is no JSON: {error}.", remedy="Send a JSON object.") from error
        if not isinstance(found, dict):
            raise RequestError("the body is no JSON object.", remedy="Send a JSON object.")
        _known(found, model)
        return found


def call_of(event: Mapping[str, Any]) -> Call:
    """The call in an event. RequestError where its body is not UTF-8."""
    context = event.get("requestContext") or {}
    http = context.get("http") or {}
    iam = (context.get("authorizer") or {}).get("iam") or {}
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return Call(
        method=str(http.get("method", "")).upper(),
        path=str(event.get("rawPath") or "/"),
        caller=str(iam.get("userArn") or ""),
        query=dict(event.get("queryStringParameters") or {}),
        accept=str(headers.get("accept", "")),
        body=_body(event),
    )


def _body(event: Mapping[str, Any]) -> str:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body)
    try:
        return base64.b64decode(body).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise RequestError("the body is not UTF-8.", remedy="Send JSON in UTF-8.") from error


def _known(given: Mapping[str, Any], model: type[Value]) -> None:
    names = [field.alias or name for name, field in model.model_fields.items()]
    for name in given:
        if name not in names:
            remedy = instead(name, names, "It takes none.")
            raise RequestError("there is no such field.", remedy=remedy, field=name)


def _wrong(error: ValidationError) -> RequestError:
    first = error.errors()[0]
    field, message = str(first["loc"][0]) if first["loc"] else "", first["msg"]
    if first["type"] == "missing":
        return RequestError("it is missing.", remedy=f"Give `{field}`.", field=field)
    what = f"{str(first['input'])[:80]!r}: {message[:1].lower()}{message[1:]}."
    return RequestError(what, remedy="Correct it.", field=field)
