"""What a request would take, planned in memory: nothing is looked up and nothing is created."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trueup.errors import RequestError
from trueup.model.estimate import Estimate
from trueup.model.jobs import AnyJob
from trueup.model.plan import CodeIdentity
from trueup.planning import make_plan, partitions
from trueup.planning.forecast import forecast
from trueup.requests import check_request

_NO_CODE = CodeIdentity(task_definition="not-deployed:0", image_digest=f"sha256:{'0' * 64}")
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def estimate_request(data: Mapping[str, Any], catalogue: Mapping[str, AnyJob]) -> Estimate:
    """The estimate for a request's document (without `requestId` and `requester`).

    Raises RequestError as `check_request` does, and where the partitions are known to S3 or to the job alone.
    """
    asked = {**data, "requestId": "estimate", "requester": "estimate"}
    job, request, _ = check_request(asked, catalogue)
    named = [] if request.keys is None else list(request.keys)
    _can_be_planned_here(job, named)
    parts = list(partitions(job, request, listing=_as_listing(job, named), named=named))
    plan, _ = make_plan(
        job, request, parts, run_id="estimate", read_code=_NO_CODE, write_code=_NO_CODE, created_at=_ANY_TIME
    )
    return forecast(plan, parts)


def _can_be_planned_here(job: AnyJob, keys: list[str]) -> None:
    if (job.named_by_task or job.partitions.by == "s3-prefix") and not keys:
        what = "what lies in S3" if job.partitions.by == "s3-prefix" else "what the job's own code names"
        raise RequestError(
            f"the partitions of {job.name} are {what}, and an estimate looks at neither.",
            remedy="Give keys, or start a dry run.",
            field="keys",
        )


def _as_listing(job: AnyJob, keys: list[str]) -> list[tuple[str, int]]:
    if job.partitions.by != "s3-prefix":
        return []
    prefix = job.partitions.prefix.removeprefix("s3://").partition("/")[2]
    labels = [key.removeprefix(f"{job.partitions.key}=") for key in keys]
    # Sizes are not known, so each counts as the job file's seconds at the pace that bytes are given.
    size = round(job.partitions.seconds * 5_000_000)
    return [(prefix + label, size) for label in labels]
