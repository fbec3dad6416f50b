"""JSONPath as AWS evaluates it: parsed once, when the machine is created.

A definite path names one node; it has to be there. An indefinite one (wildcard, slice, filter, `..`)
gives the list of what it finds, which may be empty, also where its parent is missing
(recorded on AWS: test_json_path_array_wildcard_or_slice_with_no_input).
The words of the errors are those of the recordings test_invalid_jsonpath.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueup.local.stepfunctions import jsonpath
from trueup.local.stepfunctions.errors import EvaluationError, Missing
from trueup.local.stepfunctions.scope import Scope
from trueup.local.stepfunctions.values import Json, to_text


@dataclass(frozen=True, slots=True)
class Path:
    """A path with its root: `$` the data, `$$` the context object, `$name` a variable."""

    text: str
    root: str
    query: jsonpath.Query

    def find(self, scope: Scope) -> Json:
        """What the path selects. Raises `Missing` where a definite path finds nothing."""
        return self.query.find(self.start(scope))

    def require(self, scope: Scope, field: str) -> Json:
        """What the path selects, for a field of the definition that names it. Raises EvaluationError."""
        try:
            return self.find(scope)
        except Missing as missing:
            raise EvaluationError(
                f"The JSONPath '{self.text}' specified for the field '{field}' could not be found "
                f"in the input '{to_text(self.start(scope))}'"
            ) from missing

    def select(self, scope: Scope) -> Json:
        """What the path selects, for InputPath and OutputPath. Raises EvaluationError."""
        try:
            return self.find(scope)
        except Missing as missing:
            raise EvaluationError(f"Invalid path '{self.text}' : {missing}") from missing

    def start(self, scope: Scope) -> Json:
        """What the path is followed in: data, context object or variable. Raises EvaluationError."""
        if self.root == "$":
            return scope.data
        if self.root == "$$":
            return scope.context()
        try:
            return scope.variables.find(self.root[1:])
        except KeyError as missing:
            raise EvaluationError(
                f"The variable '{self.root}' has not been assigned", error="States.QueryEvaluationError"
            ) from missing


def parse_path(text: str) -> Path:
    """Parse a path with its root. Raises ValueError with what is wrong with it."""
    root, rest = _split_root(text)
    return Path(text, root, jsonpath.parse(rest))


def parse_reference(text: str) -> tuple[str | int, ...]:
    """Parse a reference path (ResultPath): keys and indexes only, from `$`. Raises ValueError."""
    path = parse_path(text)
    keys = path.query.keys()
    if path.root != "$" or keys is None:
        raise ValueError("it has to be a reference path from $, which names one node")
    return keys


def _split_root(text: str) -> tuple[str, str]:
    if text.startswith("$$"):
        return "$$", text[2:]
    if not text.startswith("$"):
        raise ValueError("Reference path didn't start with '$'")
    end = 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[:end], text[end:]


def place(keys: tuple[str | int, ...], document: Json, value: Json) -> Json:
    """A copy of a document with a value at a reference path (ResultPath); nodes on the way are created.

    Raises EvaluationError (States.ResultPathMatchFailure) where a node in between is of another kind.
    """
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(key, int):
        return _put_in_array(key, rest, document, value)
    return _put(key, rest, document, value)


def _put(key: str, rest: tuple[str | int, ...], document: Json, value: Json) -> Json:
    if not isinstance(document, dict):
        raise _mismatch(key, document)
    return {**document, key: place(rest, document.get(key, {}) if rest else None, value)}


def _put_in_array(index: int, rest: tuple[str | int, ...], document: Json, value: Json) -> Json:
    if not isinstance(document, list) or not 0 <= index < len(document):
        raise _mismatch(index, document)
    return [*document[:index], place(rest, document[index], value), *document[index + 1 :]]


def _mismatch(key: str | int, document: Json) -> EvaluationError:
    return EvaluationError(
        f'Unable to apply step "{key}" to input {to_text(document)}', error="States.ResultPathMatchFailure"
    )
