"""What all values share: frozen, camelCase in JSON, no unknown keys."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

NAME = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$"

Name = Annotated[str, Field(pattern=NAME, description="lower case letters, digits and dashes; at most 40")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# The upper end is the largest whole number that every JSON reader keeps exact.
Count = Annotated[int, Field(ge=0, le=2**53 - 1, strict=True)]

INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _from_rfc_3339(value: object) -> object:
    """Text is read in the one form that the schema names; pydantic alone would read "1750000000" too."""
    if not isinstance(value, str):
        return value
    try:
        if re.fullmatch(INSTANT, value):
            return datetime.fromisoformat(value)
    except ValueError:  # the right form, but no such day or hour
        pass
    raise PydanticCustomError("instant", "Input should be a date and time with a zone: 2026-07-06T01:00:00Z")


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_from_rfc_3339),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": INSTANT}),
]


class Value(BaseModel):
    """A frozen value that crosses a boundary. Python names in code, camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        protected_namespaces=(),
        defer_build=True,  # a task uses half of the models, and should start quickly
    )

    def document(self) -> dict[str, Any]:
        """The JSON document of this value, as plain Python data with camelCase keys."""
        return self.model_dump(mode="json", by_alias=True)


def cut(text: str, most: int) -> str:
    """The text, or its beginning with a mark at the end where it has more than so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def canonical(document: object) -> bytes:
    """The one byte string for a JSON document: sorted keys, no spaces, UTF-8. What gets hashed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    """SHA-256 of bytes, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
