"""What is handed to a task that names the partitions of a run by the job's own code, and what it leaves."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trueup.model.base import Name, Sha256, Value
from trueup.model.jobs import AnyJob
from trueup.model.plan import CodeIdentity, Partition, Window


class Brief(Value):
    """What partitions are named from. The plan takes job and code from it, whatever is deployed meanwhile."""

    job: AnyJob
    params: dict[str, Any]
    window: Window
    read_code: CodeIdentity
    write_code: CodeIdentity


class NamingOrder(Value):
    """What the task is told: ids and a pointer to its brief, so that it fits ECS overrides."""

    run_id: str
    job: Name
    generation: Annotated[int, Field(ge=1)]
    launch: Annotated[int, Field(ge=1)]
    brief_key: str
    brief_sha256: Sha256


class Named(Value):
    """What the job's code named, or the error that it raised instead."""

    partitions: tuple[Partition | str, ...] = ()
    error: str | None = None
