"""The plan: which partitions, with which parameters and code, frozen under one hash."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from trueup.errors import RequestError
from trueup.model.base import sha256
from trueup.model.history import EarlierRun
from trueup.model.jobs import AnyJob
from trueup.model.plan import CodeIdentity, ObjectRef, Partition, Plan
from trueup.model.request import Request
from trueup.planning.lines import write_partitions
from trueup.planning.packing import in_order
from trueup.planning.params import check_params
from trueup.planning.windows import window


def make_plan(
    job: AnyJob,
    request: Request,
    partitions: Iterable[Partition],
    *,
    run_id: str,
    read_code: CodeIdentity,
    write_code: CodeIdentity,
    created_at: datetime,
    key: str | None = None,
    earlier: tuple[EarlierRun, ...] = (),
    known: ObjectRef | None = None,
) -> tuple[Plan, bytes]:
    """The plan of a run, and the JSON Lines of its partitions in plan order, which it names by their hash.

    `partitions` come in the order of their keys, `key` is where the bytes will be stored (default: beside the
    plan). The same inputs give the same bytes. RequestError: a parameter is wrong, or there is nothing to do.
    """
    ordered = in_order(list(partitions), job.order)
    if not ordered:
        raise RequestError(
            f"there is nothing to do: {job.name} has no partitions here.",
            remedy="Check the window, the keys or what lies under the prefix.",
        )
    data = write_partitions(ordered)
    plan = Plan(
        run_id=run_id,
        job=limited(job, request),
        params=check_params(job, request.params),
        window=window(job, request),
        dry_run=request.dry_run,
        read_code=read_code,
        write_code=write_code,
        partitions=ObjectRef(key=key or plan_partitions_key(run_id), sha256=sha256(data), bytes=len(data)),
        partition_count=len(ordered),
        total_weight=round(sum(partition.weight for partition in ordered), 3),
        created_at=created_at,
        earlier=earlier,
        known=known,
    )
    return plan, data


def limited(job: AnyJob, request: Request) -> AnyJob:
    """The job with the request's canary, and its concurrency, which may lower the job's and not raise it."""
    if request.canary is not None:
        approval = job.approval.model_copy(update={"canary": request.canary})
        job = job.model_copy(update={"approval": approval})
    wanted, most = request.max_concurrency, job.limits.max_concurrency
    if wanted is None:
        return job
    if wanted > most:
        raise RequestError(
            f"{wanted} tasks at once are more than the job file allows, {most}.",
            remedy="Ask for fewer, or raise limits.maxConcurrency in the job file.",
            field="maxConcurrency",
        )
    limits = job.limits.model_copy(update={"max_concurrency": wanted})
    return job.model_copy(update={"limits": limits})


def plan_partitions_key(run_id: str) -> str:
    """Where a plan's partitions are stored."""
    return f"runs/{run_id}/partitions.jsonl"
