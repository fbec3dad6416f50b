"""An estimate: what a run will take, as it was worked out before the run was started."""

from __future__ import annotations

from pydantic import Field

from trueup.model.base import Count, Value
from trueup.model.job import Guard


class Figure(Value):
    """One figure of an estimate: a name, how much, of what, and what it was worked out from."""

    name: str
    value: float
    unit: str
    basis: str
    usd: float | None = Field(default=None, description="None where it costs nothing of its own")


class Estimate(Value):
    """What a run will take. Minutes are wall time and, summed over tasks, billed time."""

    job: str
    partitions: Count
    slices: Count
    first: str
    last: str
    first_input: str | None = Field(default=None, description="What the first partition would read")
    last_input: str | None = None
    tasks: Count
    wall_minutes: float
    billed_minutes: float
    transitions: Count
    dynamodb_writes: Count
    dynamodb_reads: Count
    s3_requests: Count
    dollars: float
    figures: list[Figure]
    guard: Guard
    cannot_prevent: str
    dry_run: bool
    prices_as_of: str
