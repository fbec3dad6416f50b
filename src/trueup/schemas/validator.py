"""A JSON Schema validator that reads the published schemas as the standard means them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from trueup.schemas import schema

_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_a_real_instant(value: object) -> bool:
    """The pattern holds the form; this refuses 30 February. jsonschema brings no checker of its own."""
    return not isinstance(value, str) or datetime.fromisoformat(value) is not None


def _pattern(_: Validator, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    """As ECMA-262 means it: `$` is the very end, where Python would let a line feed follow."""
    if isinstance(value, str) and not re.search(pattern.replace("$", r"\Z"), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_Validator: type[Validator] = extend(  # type: ignore[no-untyped-call]  # the stubs leave `extend` untyped
    Draft202012Validator, {"pattern": _pattern}
)


def validator(name: str) -> Validator:
    """A validator for the schema called `name`. Raises KeyError where there is none."""
    return _Validator(schema(name), format_checker=_FORMATS)
