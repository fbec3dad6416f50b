"""Reading a request: what is required, and which page of a list is meant."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from trueup.local.ecs.errors import invalid

T = TypeVar("T")

Body = Mapping[str, Any]
Answer = dict[str, Any]
MAX_PAGE = 100
"""Results of one call of a List operation [botocore ecs]."""


def required(body: Body, name: str) -> str:
    """A text that has to be there. Raises ApiError."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise invalid(f"{name} can not be blank.")
    return value


def page(body: Body, items: Sequence[T]) -> tuple[list[T], dict[str, str]]:
    """The part of a list that maxResults and nextToken ask for, and where the rest begins, if any is left."""
    size = body.get("maxResults") or MAX_PAGE
    if not 1 <= size <= MAX_PAGE:
        raise invalid(f"maxResults must be between 1 and {MAX_PAGE}")
    start = _position(body.get("nextToken"))
    end = start + size
    return list(items[start:end]), ({"nextToken": _token(end)} if end < len(items) else {})


def _token(position: int) -> str:
    return base64.b64encode(f"position:{position}".encode()).decode()


def _position(token: str | None) -> int:
    if token is None:
        return 0
    try:
        name, _, position = base64.b64decode(token, validate=True).decode().partition(":")
        if name == "position":
            return int(position)
    except (binascii.Error, ValueError):
        pass
    raise invalid("Invalid token.")
