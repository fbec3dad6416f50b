"""Requests: checked against the catalogue before anything is created."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trueup.errors import RequestError
from trueup.jobfile import instead
from trueup.model.jobs import AnyJob
from trueup.model.plan import Window
from trueup.model.reconcile_job import Reconciliation
from trueup.model.request import Request
from trueup.model.verification import Verify
from trueup.planning import check_params, handed_on, in_utf8, limited, window


def check_request(
    data: Mapping[str, Any], catalogue: Mapping[str, AnyJob]
) -> tuple[AnyJob, Request, dict[str, Any]]:
    """The job, the request and its parameters with defaults, from a JSON document with camelCase keys.

    RequestError names the field and the remedy: unknown job or field, a value of the wrong kind, a parameter
    that is unknown, missing or wrong, a window that is malformed, empty or backwards, keys that are unknown,
    a dry run of a job that has none, a verification that could not be asked for.
    """
    request = read_request(data)
    if request.job not in catalogue:
        raise RequestError(
            f"no job is called {request.job!r}.",
            remedy=instead(request.job, list(catalogue), "No jobs are known here."),
            field="job",
        )
    job = limited(catalogue[request.job], request)
    params = check_params(job, request.params)
    covered = window(job, request)
    if job.kind == "backfill" and job.verify and not request.dry_run:
        verifying(job.verify, params, covered, catalogue)
    if request.dry_run and request.canary:
        raise RequestError(
            "a dry run writes nothing, so that there is no canary.",
            remedy="Leave one of them out; `sample` rehearses some partitions first.",
            field="canary",
        )
    if (request.dry_run or request.sample) and job.kind == "reconcile":
        raise RequestError(
            f"{job.name} is a reconciliation, which only reads until somebody approves a repair.",
            remedy="Leave it out.",
            field="dryRun" if request.dry_run else "sample",
        )
    if (request.dry_run or request.sample) and not job.has_dry_run:
        raise RequestError(
            f"{job.name} has no dry run: its only secrets can write.",
            remedy="Give the job file secrets under `secrets.read` too, of a user that cannot write.",
            field="dryRun" if request.dry_run else "sample",
        )
    return job, request, params


def verifying(
    verify: Verify, params: Mapping[str, Any], covered: Window, catalogue: Mapping[str, AnyJob]
) -> tuple[Reconciliation, dict[str, Any]]:
    """The reconciliation that verifies a run of these parameters and this window, and its own parameters.

    RequestError where there is none of that name, or where it cannot be asked for with what is handed on.
    """
    by = catalogue.get(verify.job)
    if by is None or by.kind != "reconcile":
        known = [name for name, job in catalogue.items() if job.kind == "reconcile"]
        raise RequestError(
            f"`verify` names {verify.job}, and no reconcile job is called that.",
            remedy=instead(verify.job, known, "Deploy one, or take `verify` out of the job file."),
            field="job",
        )
    try:
        return by, check_params(by, handed_on(verify, by, params, covered))
    except RequestError as refused:
        raise RequestError(
            f"it is verified by {verify.job}, which cannot be asked for with what is handed on: {refused}",
            remedy="Correct `verify.params` in the job file, or the parameter that it hands on.",
            field="job",
        ) from refused


def read_request(data: Mapping[str, Any]) -> Request:
    """The request in a JSON document. RequestError names the first wrong field, and then the others."""
    for field, value in data.items():
        in_utf8(json.dumps(value, ensure_ascii=False), field)
    try:
        return Request.model_validate_json(json.dumps(dict(data)), strict=True)
    except ValidationError as error:
        (field, what, remedy), *rest = map(_explained, error.errors())
        more = "".join(f"\n{other}: {text} {advice}" for other, text, advice in rest)
        raise RequestError(what, remedy=remedy + more, field=field) from error


def _explained(details: ErrorDetails) -> tuple[str, str, str]:
    field = ".".join(map(str, details["loc"])) or "from"
    if details["type"] == "extra_forbidden":
        known = [info.alias or name for name, info in Request.model_fields.items()]
        return field, "there is no such field.", instead(field, known, "")
    if details["type"] == "missing":
        return field, "it is missing.", f"Give `{field}`."
    if details["type"] == "value_error":
        return field, f"{details['ctx']['error']}.", ""
    message = details["msg"]
    return field, f"{_shown(details['input'])}: {message[:1].lower()}{message[1:]}.", "Correct it."


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]
