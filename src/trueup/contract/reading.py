"""From bytes to a contract: every way in which a document cannot be read has its own rule."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trueup import schemas
from trueup.contract.rules import Refusal, Rule, show
from trueup.model.result import ResultContract

VERSION = 1
MAX_SCHEMA_REFUSALS = 20

_STORE_JSON = (
    "Fix what the task writes: one JSON object, as schemas/result.v1.schema.json has it; then retry."
)

READING: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "result-fits",
            "The document is no larger than the caller allows.",
            "Write fewer warnings and shorter errors, or make slices smaller; then retry.",
        ),
        Rule("result-is-utf-8", "The document is text in UTF-8.", _STORE_JSON),
        Rule("result-is-json", "The document is JSON.", _STORE_JSON),
        Rule("result-is-an-object", "The document is one JSON object.", _STORE_JSON),
        Rule(
            "keys-are-unique",
            "No object has a key twice: readers would disagree on which one counts.",
            _STORE_JSON,
        ),
        Rule("numbers-are-finite", "Every number is one: JSON has no NaN and no infinity.", _STORE_JSON),
        Rule(
            "schema-version-is-known",
            "The document says its schemaVersion, and this release reads it.",
            "Let the task write schemaVersion 1, or deploy the release that its image was built with.",
        ),
        Rule("schema", "The document is as the schema has it.", _STORE_JSON),
    )
}


class _UnreadableError(Exception):
    """Reading stops here; carries the refusal."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.refusal = READING[rule].refuse(message)


def parse(data: bytes, max_bytes: int) -> ResultContract | list[Refusal]:
    """The contract that the bytes hold, or every reason why they hold none. Raises nothing."""
    try:
        document = _object(_text(data, max_bytes))
        _known_version(document)
    except _UnreadableError as unreadable:
        return [unreadable.refusal]
    try:
        return schemas.read(ResultContract, document)
    except ValidationError as invalid:
        return _schema_refusals(invalid)


def _text(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise _UnreadableError(
            "result-fits", f"the document has {len(data)} bytes, and {max_bytes} are allowed"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _UnreadableError(
            "result-is-utf-8", f"byte {error.start} of {len(data)} is not UTF-8"
        ) from error


def _object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_not_a_number, parse_float=_finite
        )
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _UnreadableError("result-is-utf-8", "the document escapes half of a surrogate pair") from error
    except RecursionError as error:
        raise _UnreadableError("result-is-json", "the document is nested too deeply to be read") from error
    except ValueError as error:
        raise _UnreadableError(
            "result-is-json", f"the {len(text)} characters are not JSON: {error}"
        ) from error
    if not isinstance(document, dict):
        raise _UnreadableError(
            "result-is-an-object", f"the document is {show(document)}, and must be an object"
        )
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _UnreadableError(
                "keys-are-unique", f"{key} is there twice: {show(found[key])} and {show(value)}"
            )
        found[key] = value
    return found


def _not_a_number(text: str) -> float:
    raise _UnreadableError("numbers-are-finite", f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _UnreadableError("numbers-are-finite", f"{show(text)} is beyond every number that can be held")
    return number


def _known_version(document: Mapping[str, Any]) -> None:
    version = document.get("schemaVersion")
    if "schemaVersion" not in document:
        raise _UnreadableError(
            "schema-version-is-known", f"schemaVersion is missing, and {VERSION} can be read"
        )
    if isinstance(version, bool) or version != VERSION:
        raise _UnreadableError(
            "schema-version-is-known", f"schemaVersion is {show(version)}, and {VERSION} can be read"
        )


def _schema_refusals(invalid: ValidationError) -> list[Refusal]:
    errors = invalid.errors(include_url=False, include_context=False)
    refusals = [READING["schema"].refuse(_sentence(error)) for error in errors[:MAX_SCHEMA_REFUSALS]]
    if more := len(errors) - len(refusals):
        refusals.append(READING["schema"].refuse(f"{more} more fields are wrong"))
    return refusals


def _sentence(error: ErrorDetails) -> str:
    """The field's path, what is there and what is expected."""
    path = _path(error["loc"])
    if error["type"] == "missing":
        return f"{path} is missing"
    if error["type"] == "extra_forbidden":
        return f"{path} is {show(error['input'])}, and the contract has no such field"
    expected = error["msg"].removeprefix("Input should ").removeprefix("String should ")
    return f"{path} is {show(error['input'])}, and should {expected}"


def _path(loc: tuple[int | str, ...]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".") or "the document"
