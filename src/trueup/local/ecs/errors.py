"""How the API refuses, and how a container does not start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """An answer that boto3 raises: the error's name, its message, and what else the error's shape has."""

    def __init__(
        self, name: str, message: str, *, status: int = 400, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message
        self.status = status
        self.more = dict(more or {})


def invalid(message: str) -> ApiError:
    """The commonest refusal."""
    return ApiError("InvalidParameterException", message)


def not_implemented(what: str, supported: str) -> ApiError:
    """What this stack does not do, said in one sentence instead of pretending."""
    return ApiError(
        "UnsupportedFeatureException",
        f"{what} is not implemented in the local stack. Supported: {supported}.",
    )


class CannotStart(Exception):
    """A task fails to start; `reason` is what ECS tells: `CannotPullContainerError: …` and its like."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
