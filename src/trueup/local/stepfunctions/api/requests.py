"""Reading a request, and answering it page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TypeVar

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.names import check_arn, check_role
from trueup.local.stepfunctions.values import Json

T = TypeVar("T")

Body = Mapping[str, Json]


def required(body: Body, name: str, *kinds: str) -> str:
    """A string that is there, as `validation` has seen; an ARN may be of more `kinds` than is usual.

    Raises ApiError (InvalidArn).
    """
    value = str(body[name])
    if name == "roleArn":
        return check_role(value)
    return check_arn(value, name, *kinds) if name.endswith("Arn") else value


def page(body: Body, items: Sequence[T], *, default: int = 100) -> tuple[Sequence[T], str | None]:
    """The part of a list that maxResults and nextToken ask for, and the token of the next part."""
    size = body.get("maxResults") or default  # 0 stands for the default too [botocore]
    start = _position(body.get("nextToken"))
    end = start + size
    return items[start:end], (_token(end) if end < len(items) else None)


def _token(position: int) -> str:
    return base64.b64encode(f"position:{position}".encode()).decode()


def _position(token: Json) -> int:
    if token is None:
        return 0
    try:
        name, _, position = base64.b64decode(str(token), validate=True).decode().partition(":")
        if name == "position":
            return int(position)
    except (binascii.Error, ValueError, UnicodeDecodeError):
        pass
    raise ApiError("InvalidToken", "Invalid Token: 'Invalid token'")


def answer_page(name: str, items: Sequence[Json], token: str | None) -> dict[str, Json]:
    """A page as the API answers it."""
    return {name: list(items)} if token is None else {name: list(items), "nextToken": token}
