"""The API's OpenAPI 3.1 document, made from its routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from trueup.handling.api.problems import UNSIGNED, Forbidden, Problem
from trueup.handling.api.routes import LONGEST_PART, ROUTES, Route
from trueup.model.base import Value

FILE = Path(__file__).with_name("openapi.json")

# What any call may meet: a wrong parameter, nobody's signature, a bug, AWS out of order.
_ANYWHERE = (400, 403, 500, 503)
_REF = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "trueup",
            "version": "1",
            "description": "Starts runs and shows them. Every call is signed with SigV4 (execute-api).",
        },
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}],
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": {"sigv4": _SIGV4}},
    }


def text() -> str:
    """The document as it is checked in."""
    return json.dumps(document(), indent=1) + "\n"


_SIGV4 = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
    "description": "AWS Signature Version 4 for the service execute-api.",
}


def _operation(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    parameters = [*_in_path(route), *_in_query(route)]
    if parameters:
        made["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": {"$ref": _REF.format(model=route.body.__name__)}}}
        made["requestBody"] = {"required": True, "content": content}
    made["responses"] = dict(_responses(route))
    return made


def _in_path(route: Route) -> Iterator[dict[str, Any]]:
    for name in route.pattern.groupindex:
        schema = {"type": "string", "maxLength": LONGEST_PART}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(route: Route) -> Iterator[dict[str, Any]]:
    if route.query is None:
        return
    schema = route.query.model_json_schema(schema_generator=_Plain)
    for name, field in schema["properties"].items():
        required = name in schema.get("required", [])
        yield {"name": name, "in": "query", "required": required, "schema": _inlined(field, schema)}


def _inlined(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema on its own: without null, which a query cannot say, and without references."""
    options = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
    option = dict(options[0])
    if "$ref" in option:
        option = dict(schema["$defs"][option["$ref"].rpartition("/")[2]])
    option.pop("description", None)
    return option if field.get("default") is None else {**option, "default": field["default"]}


def _responses(route: Route) -> Iterator[tuple[str, Any]]:
    for status, model in sorted(route.answers.items()):
        response = _response(status, "application/json", model.__name__)
        if route.html and status == HTTPStatus.OK:
            response["content"]["text/html"] = {"schema": {"type": "string"}}
        if "location" in model.model_fields:
            where = {"schema": {"type": "string"}, "description": "Where to look."}
            response["headers"] = {"Location": where}
        if "run_id" in model.model_fields:
            response["links"] = dict(_links())
        yield str(status), response
    for status in sorted({*_ANYWHERE, *route.problems}):
        response = _response(status, "application/problem+json", Problem.__name__)
        if status == UNSIGNED.status:
            response["content"] |= _response(status, "application/json", Forbidden.__name__)["content"]
        yield str(status), response


def _links() -> Iterator[tuple[str, Any]]:
    """What can be asked about the run that an answer names."""
    for route in ROUTES:
        if "runId" in route.pattern.groupindex:
            yield route.name, {"operationId": route.name, "parameters": {"runId": "$response.body#/runId"}}


def _response(status: int, kind: str, model: str) -> dict[str, Any]:
    content = {kind: {"schema": {"$ref": _REF.format(model=model)}}}
    return {"description": HTTPStatus(status).phrase, "content": content}


def _schemas() -> dict[str, Any]:
    answered: list[type[Value]] = [
        Problem,
        Forbidden,
        *(model for route in ROUTES for model in route.answers.values()),
    ]
    asked = [route.body for route in ROUTES if route.body is not None]
    wanted: list[Any] = [(model, "serialization") for model in answered]
    wanted += [(model, "validation") for model in asked]
    _, made = models_json_schema(wanted, ref_template=_REF, schema_generator=_Plain)
    found: dict[str, Any] = made["$defs"]
    return dict(sorted(found.items()))


class _Plain(GenerateJsonSchema):
    """Without titles, which say nothing that names do not."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
