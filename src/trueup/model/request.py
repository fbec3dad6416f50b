"""A request: one person's or schedule's wish to do a job over a window or a set of keys."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from trueup.model.base import Name, Value


class Request(Value):
    """Asking twice with the same `requestId` starts one run. `from` is included, `to` is not."""

    job: Name
    request_id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:/-]+$")]
    requester: Annotated[str, Field(min_length=1)]
    start: str | None = Field(default=None, alias="from")
    end: str | None = Field(default=None, alias="to")
    keys: tuple[str, ...] | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = False
    sample: Annotated[int, Field(ge=1)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    comment: str = ""

    @model_validator(mode="after")
    def _a_window_or_keys(self) -> Self:
        if self.keys is not None and (self.start is not None or self.end is not None):
            raise ValueError("give a window (`from` and `to`) or `keys`, not both")
        if (self.start is None) != (self.end is None):
            raise ValueError("a window needs both ends: give `from` and `to`")
        return self
