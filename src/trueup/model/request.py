"""A request: one person's or schedule's wish to do a job over a window or a set of keys."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from trueup.model.base import Name, Value

# A run's item in the ledger holds its request, its parameters and its window, and takes 400 KB.
MOST_KEY_BYTES = 128 * 1024
MOST_PARAM_BYTES = 64 * 1024
Bound = Annotated[str, Field(max_length=1_000)]


class Wish(Value):
    """What is to be done, without who asks. `from` is included, `to` is not."""

    job: Name
    start: Bound | None = Field(default=None, alias="from")
    end: Bound | None = Field(default=None, alias="to")
    keys: tuple[str, ...] | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = False
    sample: Annotated[int, Field(ge=1)] | None = None
    canary: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    undo: Bound | None = None

    @model_validator(mode="after")
    def _a_window_or_keys(self) -> Self:
        if self.keys is not None and (self.start is not None or self.end is not None):
            raise ValueError("give a window (`from` and `to`) or `keys`, not both")
        if (self.start is None) != (self.end is None):
            raise ValueError("a window needs both ends: give `from` and `to`")
        if self.undo is not None and (self.keys is not None or self.start is not None):
            raise ValueError("an undo takes back what that run repaired: give no window and no keys")
        return self


Comment = Annotated[str, Field(max_length=4_000)]
RequestId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:/-]+$")]


class Request(Wish):
    """Asking twice with the same `requestId` starts one run. `from` is included, `to` is not."""

    request_id: RequestId
    requester: Annotated[str, Field(min_length=1, max_length=1_000)]
    comment: Comment = ""


class StartBody(Wish):
    """What the API is asked to start; who asks is the caller's own identity, never a part of it.

    `rejectsOf` names a run: its partitions that were rejected or refused, or that left rejects, are worked
    again, with its parameters unless others are given.
    """

    request_id: RequestId
    rejects_of: Bound | None = None
    comment: Comment = ""
