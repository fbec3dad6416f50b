"""Marks that a reader gives back unread to go on where a page ended."""

from __future__ import annotations

import base64
import json
from typing import Any

from trueup.errors import RequestError


def write(**position: Any) -> str:
    """A position as a token."""
    return base64.urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode().rstrip("=")


def read(token: str | None, **beginning: Any) -> dict[str, Any]:
    """The position in a token; `beginning` where there is none. RequestError for what is no token of ours.

    A token has the names of `beginning`, and values of their kinds.
    """
    if not token:
        return beginning
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, TypeError) as error:
        raise _strange() from error
    if not isinstance(found, dict) or found.keys() != beginning.keys():
        raise _strange()
    if any(
        type(found[name]) is not type(value) or _is_negative(found[name]) for name, value in beginning.items()
    ):
        raise _strange()
    return found


def _is_negative(value: object) -> bool:
    return isinstance(value, int) and value < 0


def _strange() -> RequestError:
    return RequestError(
        "it is no token of this list.", remedy="Give `next` of the page before, unchanged.", field="after"
    )
