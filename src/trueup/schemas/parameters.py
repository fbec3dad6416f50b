"""The JSON Schema that a job file gives for its parameters: right, whole, and true of its defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any
from urllib.parse import unquote

from trueup.yamlfile import Document, Path

_SCHEMA_WORDS = frozenset(
    """
    type properties required additionalProperties patternProperties description title default examples enum
    const allOf anyOf oneOf not if then else dependentRequired dependentSchemas propertyNames minProperties
    maxProperties unevaluatedProperties $schema $id $defs $ref $comment
    """.split()  # noqa: SIM905 - one word a line would be longer than the rest of the module
)


def note_parameters(schema: dict[str, Any], document: Document) -> None:
    """Note what is wrong with a job file's `parameters`."""
    for word in schema:
        if word not in _SCHEMA_WORDS:
            close = get_close_matches(word, _SCHEMA_WORDS, 1, 0.75)
            remedy = f"Did you mean `{close[0]}`?" if close else f"Put `{word}` under `properties`."
            document.add(("parameters", word), "this is not a word of JSON Schema.", remedy)
    if schema.get("type", "object") != "object":
        document.add(("parameters", "type"), "parameters are an object.", "Write `type: object`.")
    clean = json.loads(json.dumps(schema, default=lambda _: None))
    errors = list(_schema_of_schemas().iter_errors(clean))
    for error in errors:
        path = ("parameters", *error.absolute_path)
        what = f"this is not valid JSON Schema: {error.message}."
        document.add(path, what, "See json-schema.org, 2020-12.")
    if not errors and _references_lead_somewhere(clean, document):
        try:
            _note_defaults(clean, document)
        except RecursionError:
            what = "a default meets a `$ref` that refers to itself without an end."
            document.add(("parameters",), what, "Let it refer to something else.")


@cache
def _schema_of_schemas() -> Any:
    from jsonschema import Draft202012Validator  # slow to import, and only jobs with parameters need it

    checker = Draft202012Validator.FORMAT_CHECKER  # patterns are regular expressions
    return Draft202012Validator(Draft202012Validator.META_SCHEMA, format_checker=checker)


def _references_lead_somewhere(schema: dict[str, Any], document: Document) -> bool:
    """Whether each `$ref` leads to a part of this schema: a validator would fetch others from the network."""
    lost = [(path, text) for path, text in _references(schema) if not _leads_somewhere(text, schema)]
    for path, text in lost:
        remedy = "Refer to something in `parameters`, like #/$defs/name."
        document.add(("parameters", *path), f"{text} leads nowhere.", remedy)
    return not lost


def _references(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    steps = list(enumerate(schema)) if isinstance(schema, list) else []
    for step, part in schema.items() if isinstance(schema, dict) else steps:
        if step in ("$ref", "$dynamicRef") and isinstance(part, str):
            yield (*path, step), part
        elif step not in ("const", "default", "enum", "examples"):  # these hold values, not schemas
            yield from _references(part, (*path, step))


def _leads_somewhere(reference: str, schema: Any) -> bool:
    start, *steps = unquote(reference).split("/")
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(schema, dict) or name not in schema:
            return False
        schema = schema[name]
    return start == "#" and isinstance(schema, dict | bool)


def _note_defaults(schema: dict[str, Any], document: Document) -> None:
    from jsonschema import Draft202012Validator

    whole = Draft202012Validator(schema)
    for name, part in schema.get("properties", {}).items():
        if not isinstance(part, dict) or "default" not in part:
            continue
        for error in whole.descend(part["default"], part):
            path: Path = ("parameters", "properties", name, "default")
            document.add(path, f"the default breaks its own schema: {error.message}.", "Correct one of them.")
