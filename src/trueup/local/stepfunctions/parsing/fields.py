"""Reading the fields of one JSON object: each is asked for by name and kind, and what is left is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from trueup.local.stepfunctions.errors import Problem
from trueup.local.stepfunctions.intrinsics import Call, is_call, parse_call
from trueup.local.stepfunctions.paths import Path, parse_path, parse_reference
from trueup.local.stepfunctions.templates import Template, TemplateError, parse_template
from trueup.local.stepfunctions.values import Json, is_integer, is_number

SCHEMA = "SCHEMA_VALIDATION_FAILED"
UNSUPPORTED = "NOT_IMPLEMENTED"

_NOT_A_PATH = "Value must be a valid JSONPath."
_NOT_A_REFERENCE = "Value is not a Reference Path: {reason}"
"""AWS's own words (aws-cloudformation/cfn-lint#4078, #4076)."""

T = TypeVar("T")


class Fields:
    """The fields of an object at a place in the definition. Problems are collected, none is raised."""

    def __init__(self, raw: Json, location: str, problems: list[Problem], owner: str) -> None:
        self.raw: dict[str, Json] = dict(raw) if isinstance(raw, dict) else {}
        self.location = location
        self.problems = problems
        self.owner = owner
        """Who has these fields, for sentences: "State 'Wait a little' (Wait)"."""
        self._asked: set[str] = set()
        self._missing: list[str] = []
        if not isinstance(raw, dict):
            self.problem(SCHEMA, "Expected value of type Object")

    def problem(self, code: str, message: str, field: str | None = None) -> None:
        """Note that something is wrong with a field, or with the whole."""
        location = f"{self.location}/{field}" if field else self.location
        self.problems.append(Problem(code, message, location or "/"))

    def inner(self, field: str, owner: str | None = None) -> Fields:
        """The fields of an object within this one, which has to be there."""
        if not self.has(field):
            self._missing.append(field)
        return Fields(self.raw.get(field, {}), f"{self.location}/{field}", self.problems, owner or self.owner)

    def has(self, field: str) -> bool:
        """Whether the field is given, be it null."""
        self._asked.add(field)
        return field in self.raw

    def pop(self, field: str) -> bool:
        """Whether a field is given that no state has: it is looked at no further, nor listed as known."""
        return self.raw.pop(field, None) is not None

    def any(self, field: str, default: Json = None) -> Json:
        """The field as it is."""
        self._asked.add(field)
        return self.raw.get(field, default)

    def text(self, field: str, *, required: bool = False) -> str | None:
        """A string; an empty one is not there where it is required."""
        text = self._typed(field, lambda value: isinstance(value, str), "String", required=required)
        if required and text == "":
            self._missing.append(field)
        return text

    def boolean(self, field: str) -> bool:
        """A boolean; false when not given."""
        return bool(self._typed(field, lambda value: isinstance(value, bool), "Boolean"))

    def integer(self, field: str, least: int, most: int) -> int | None:
        """A whole number within bounds."""
        value = self._typed(field, is_integer, "Integer")
        return value if self._within(field, value, least, most) else None

    def number(self, field: str, least: float, most: float) -> float | None:
        """A number within bounds."""
        value = self._typed(field, is_number, "Number")
        return value if self._within(field, value, least, most) else None

    def one_of(self, field: str, choices: Iterable[str], default: str) -> str:
        """One of a few words."""
        value = self.text(field)
        if value is None or value in choices:
            return default if value is None else value
        self.problem(
            UNSUPPORTED,
            f"{self.owner}: {field} '{value}' is not implemented; supported are {', '.join(choices)}",
            field,
        )
        return default

    def list(self, field: str, *, required: bool = False) -> list[Json]:
        """An array."""
        value = self._typed(field, lambda found: isinstance(found, list), "Array", required=required)
        if value is not None and not value and required:
            self.problem(SCHEMA, "The array has to have at least one element", field)
        return value or []

    def path(self, field: str) -> Path | None:
        """A path that a field takes where AWS speaks of reference paths."""
        return self._parsed(field, parse_path, _NOT_A_REFERENCE)

    def selector(self, field: str, default: Path) -> Path | None:
        """InputPath or OutputPath: a path, or null for None."""
        if self.has(field) and self.raw[field] is None:
            return None
        return self._parsed(field, parse_path, _NOT_A_PATH) or default

    def reference(self, field: str) -> tuple[str | int, ...] | None:
        """ResultPath: a reference path; null for None; all of it when not given."""
        if self.has(field) and self.raw[field] is None:
            return None
        return self._parsed(field, parse_reference, _NOT_A_REFERENCE) or ()

    def expression(self, field: str) -> Path | Call | None:
        """A path or an intrinsic function (ErrorPath, CausePath)."""
        return self._parsed(
            field, lambda text: parse_call(text) if is_call(text) else parse_path(text), _NOT_A_PATH
        )

    def template(self, field: str) -> Template | None:
        """A payload template."""
        if not self.has(field):
            return None
        if not isinstance(self.raw[field], dict):
            self.problem(SCHEMA, "Expected value of type Object", field)
            return None
        try:
            return parse_template(self.raw[field])
        except TemplateError as error:
            self.problem(SCHEMA, str(error), field + error.location)
            return None

    def exclusive(self, *fields: str) -> None:
        """Note a problem where more than one of these is given."""
        given = [field for field in fields if self.has(field)]
        if len(given) > 1:
            self.problem(SCHEMA, f"only one of {', '.join(given)} can be given")

    def forget(self) -> None:
        """Finish, whatever else is there: of what it is, nothing is known."""
        self._asked.update(self.raw)
        self.finish()

    def finish(self) -> None:
        """Note what is required and not there, and every field that nobody asked for.

        In AWS's words (aws-cloudformation/cfn-lint#4077; measured: floci-io/floci#2735).
        """
        if self._missing:
            self.problem(SCHEMA, f"These fields are required: [{', '.join(self._missing)}]")
        for field in self.raw:
            if field not in self._asked and field != "Comment":
                self.problem(SCHEMA, f"Field '{field}' is not supported")

    def _typed(
        self, field: str, fits: Callable[[Json], bool], kind: str, *, required: bool = False
    ) -> Json | None:
        if not self.has(field):
            if required and field not in self._missing:
                self._missing.append(field)
            return None
        value = self.raw[field]
        if fits(value):
            return value
        self.problem(SCHEMA, f"Expected value of type {kind}", field)
        return None

    def _within(self, field: str, value: Json, least: float, most: float) -> bool:
        if value is None or least <= value <= most:
            return True
        self.problem(SCHEMA, f"Value has to be between {least} and {most}", field)
        return False

    def _parsed(self, field: str, parse: Callable[[str], T], refusal: str) -> T | None:
        text = self.text(field)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.problem(SCHEMA, refusal.format(reason=error), field)
            return None
