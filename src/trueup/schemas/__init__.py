"""The published JSON Schemas, and the one strict way to read a document.

The models are the source. `python -m trueup.schemas` writes the files from them and a test holds the two
equal, so that an editor, a container in another language and trueup itself agree on every document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import InitErrorDetails

from trueup.model.base import Value
from trueup.model.job import JobFile
from trueup.model.reconcile_job import Reconciliation
from trueup.model.request import Request
from trueup.model.result import ResultContract
from trueup.schemas.texts import BEYOND_SCHEMA, DESCRIPTIONS, TITLES

V = TypeVar("V", bound=Value)

MODELS: Mapping[str, type[Value]] = {
    "job": JobFile,
    "reconcile": Reconciliation,
    "request": Request,
    "result": ResultContract,
}
FOLDER = Path(__file__).parent


def schema(name: str) -> dict[str, Any]:
    """The published schema called `name`, one of `MODELS`. Raises KeyError for any other name."""
    document: dict[str, Any] = json.loads((files(__name__) / file_name(name)).read_text(encoding="utf-8"))
    return document


def read(model: type[V], document: object) -> V:
    """A JSON document as a value, exactly where the schema accepts it; raises pydantic's ValidationError.

    Unlike the model's constructor it takes camelCase names only and guesses nothing: "720" and true are no
    counts. 720.0 is one, because to JSON Schema a whole number is an integer however it is written.
    """
    plain = json.loads(json.dumps(document, allow_nan=False), parse_float=_whole_where_whole)
    value = model.model_validate_json(json.dumps(plain), strict=True, by_alias=True, by_name=False)
    if strange := list(_strange(value, plain)):
        raise ValidationError.from_exception_data(model.__name__, strange)
    return value


def file_name(name: str) -> str:
    """The file that the schema called `name` is published in. Raises KeyError for any other name."""
    MODELS[name]
    return f"{name}.v1.schema.json"


def published(name: str) -> str:
    """The text of the schema file as the model has it now."""
    body = MODELS[name].model_json_schema(schema_generator=_Plain)
    for title, part in _objects(body):
        _describe(title, part)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trueup:schema:{name}:v1",
        "title": TITLES[name],
    }
    return (
        json.dumps({**head, **{key: part for key, part in body.items() if key != "title"}}, indent=2) + "\n"
    )


_REPORT_TITLES = {
    "report": "trueup report of a run",
    "comparison": "trueup report of a reconciliation",
    "repair": "trueup report of a repair",
    "evidence": "trueup manifest of the evidence of a reconciliation",
}
REPORT_FILES = {name: f"{name}.v1.schema.json" for name in _REPORT_TITLES}


def published_report(name: str = "report") -> str:
    """The text of the schema of a document that trueup leaves, one of `REPORT_FILES`, as its model has it.

    They are written by trueup alone and read by others, so it says what one holds, and no more.
    """
    from trueup.model.evidence import Evidence
    from trueup.model.reconcile_report import ReconcileReport
    from trueup.model.repair import RepairReport
    from trueup.model.report import Report

    models: dict[str, type[Value]] = {
        "report": Report,
        "comparison": ReconcileReport,
        "repair": RepairReport,
        "evidence": Evidence,
    }
    model = models[name]
    body = model.model_json_schema(schema_generator=_Plain, mode="serialization")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trueup:schema:{name}:v1",
        "title": _REPORT_TITLES[name],
    }
    return (
        json.dumps({**head, **{key: part for key, part in body.items() if key != "title"}}, indent=2) + "\n"
    )


def _whole_where_whole(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _strange(value: object, document: Any, path: tuple[str | int, ...] = ()) -> Iterator[InitErrorDetails]:
    """Names of no field: some releases of pydantic drop `dry_run` in silence where `dryRun` is meant."""
    if isinstance(value, Value):
        names = {field.alias: name for name, field in type(value).model_fields.items()}
        for key, part in document.items():
            if key in names:
                yield from _strange(getattr(value, names[key]), part, (*path, key))
            else:
                yield InitErrorDetails(type="extra_forbidden", loc=(*path, key), input=part)
    elif isinstance(value, list | tuple):
        for index, (one, part) in enumerate(zip(value, document, strict=True)):
            yield from _strange(one, part, (*path, index))


def _objects(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object that the schema defines, with the name of its model."""
    yield body["title"], body
    yield from ((name, part) for name, part in body.get("$defs", {}).items() if "properties" in part)


def _describe(model: str, part: dict[str, Any]) -> None:
    """Say what each field is for, and which rules hold beyond what a schema can say."""
    for name, field in part["properties"].items():
        field["description"] = DESCRIPTIONS[model][name]
    if rules := BEYOND_SCHEMA.get(model):
        part["$comment"] = "Beyond this schema: " + "; ".join(rules.values()) + "."


class _Plain(GenerateJsonSchema):
    """Without what other validators trip over or readers learn nothing from."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A version is always said, although code that builds a value need not say it."""
        return super().field_is_required(field, total) or field.get("validation_alias") == "schemaVersion"

    def get_default_value(self, schema: Any) -> Any:
        """Also what a model makes by itself for a part that is left out, with all of that part's defaults."""
        factory = schema.get("default_factory")
        if isinstance(factory, type) and issubclass(factory, Value):
            return factory()
        return super().get_default_value(schema)

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """Without `discriminator`, a word of OpenAPI that strict validators refuse."""
        union = super().tagged_union_schema(schema)
        union.pop("discriminator", None)
        return union
