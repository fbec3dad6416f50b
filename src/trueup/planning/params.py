"""Parameters of a request, checked against the job file's JSON Schema, with its defaults filled in."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from trueup.errors import RequestError
from trueup.model.base import canonical
from trueup.model.jobs import AnyJob
from trueup.model.request import MOST_PARAM_BYTES

_JSON_TYPES = {"integer", "number", "boolean", "array", "object", "null"}


def check_params(job: AnyJob, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with defaults filled in, in the order of their names.

    RequestError lists every parameter that is unknown, missing or of the wrong kind, or says that they are
    too much for the ledger.
    """
    try:
        return _checked(job, params)
    except RecursionError as error:
        what = "the parameters are nested too deeply, or their schema refers to itself without an end."
        raise RequestError(what, remedy="Make them flatter.", field="params") from error


def _checked(job: AnyJob, params: Mapping[str, Any]) -> dict[str, Any]:
    filled = with_defaults(job.parameters, dict(params))
    # The schema says "required" once for each that is missing, and we name them together.
    problems = list(dict.fromkeys([*_unknown(job, params), *_invalid(job, filled)]))
    if problems:
        field, what, remedy = problems[0]
        rest = "".join(f"\n{name}: {more} {advice}".rstrip() for name, more, advice in problems[1:])
        raise RequestError(what, remedy=remedy + rest, field=field)
    _must_fit(filled)
    return dict(sorted(filled.items()))


def _must_fit(params: dict[str, Any]) -> None:
    try:
        json.dumps(params, allow_nan=False)
    except ValueError as error:
        what = "one of the parameters is NaN or infinite, which JSON does not have."
        raise RequestError(what, remedy="Give a finite number.", field="params") from error
    size = len(canonical(params))
    if size > MOST_PARAM_BYTES:
        raise RequestError(
            f"the parameters have {size:,} bytes as JSON, and the ledger keeps {MOST_PARAM_BYTES:,}.",
            remedy="Put what is large into an object in S3, and let a parameter name it.",
            field="params",
        )


def with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """A copy of the value with the defaults of the schema's `properties`, nested ones too."""
    if not isinstance(value, dict):
        return value
    filled = copy.deepcopy(value)
    for name, part in schema.get("properties", {}).items():
        if not isinstance(part, Mapping):
            continue
        if name not in filled and "default" in part:
            filled[name] = copy.deepcopy(part["default"])
        if name in filled:
            filled[name] = with_defaults(part, filled[name])
    return filled


def read_param(schema: Mapping[str, Any], name: str, text: str) -> Any:
    """A parameter typed on a command line: text where the job's schema wants text, else JSON."""
    part = schema.get("properties", {}).get(name, {})
    types = part.get("type", "string") if isinstance(part, Mapping) else "string"
    wanted = {types} if isinstance(types, str) else set(types)
    if not wanted & _JSON_TYPES:
        return text
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return text  # the schema refuses it, and says what it wants
    return value


def _unknown(job: AnyJob, params: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    known = list(job.parameters.get("properties", {}))
    if job.parameters.get("additionalProperties", False) or "patternProperties" in job.parameters:
        return []  # the schema itself says what else may come
    return [
        (f"params.{name}", f"{job.name} has no such parameter.", _instead(name, known))
        for name in params
        if name not in known
    ]


def _instead(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1)
    if close:
        return f"Did you mean `{close[0]}`?"
    return f"It has: {', '.join(sorted(known))}." if known else "It has none."


def _invalid(job: AnyJob, params: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    if not job.parameters:
        return []
    from jsonschema import Draft202012Validator  # slow to import, and most commands do not need it

    errors = sorted(Draft202012Validator(job.parameters).iter_errors(dict(params)), key=lambda e: e.json_path)
    return [_explained(error) for error in errors if error.path or error.validator != "additionalProperties"]


def _explained(error: Any) -> tuple[str, str, str]:
    field = ".".join(["params", *map(str, error.absolute_path)])
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        verb, which = ("is", "it") if len(missing) == 1 else ("are", "them")
        options = " ".join(f"--param {name}=VALUE" for name in missing)
        return field, f"{_ticked(missing)} {verb} missing.", f"Give {which}, like {options}."
    if error.validator == "type":
        wanted = (
            error.validator_value
            if isinstance(error.validator_value, str)
            else _ticked(error.validator_value)
        )
        return (
            field,
            f"{json.dumps(error.instance)} is not of type {wanted}.",
            f"Give {_article(wanted)} {wanted}.",
        )
    return field, f"{error.message}.", "The job file's `parameters` say what is allowed."


def _ticked(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _article(word: str) -> str:
    return "an" if word[:1] in "aeio" else "a"
