"""Job files together: whether what one names to verify it is there, and can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trueup.errors import JobFileError
from trueup.jobfile.checking import instead
from trueup.model.jobs import AnyJob
from trueup.model.reconcile_job import Reconciliation
from trueup.model.verification import Verify

Problem = tuple[str, str]
"""What is wrong, and what to do."""


def check_verification(job: AnyJob, others: Mapping[str, AnyJob], file: Path) -> None:
    """Raises JobFileError where a backfill names a verification that could never be run."""
    if job.kind != "backfill" or job.verify is None:
        return
    by = others.get(job.verify.job)
    known = [name for name, one in others.items() if one.kind == "reconcile"]
    if by is None:
        what = f"there is no reconcile job {job.verify.job!r}."
        raise _refusal(file, what, instead(job.verify.job, known, "There are no reconcile jobs here."))
    if by.kind != "reconcile":
        what = f"{by.name} is a {by.kind}, which compares nothing."
        raise _refusal(file, what, instead("", known, "There are no reconcile jobs here."))
    if problem := _params_problem(job, job.verify, by):
        raise _refusal(file, *problem)


def _params_problem(job: AnyJob, verify: Verify, by: Reconciliation) -> Problem | None:
    """A parameter that the reconciliation does not have, or one that it needs and would not get."""
    known = by.parameters.get("properties", {})
    is_open = by.parameters.get("additionalProperties", False) or "patternProperties" in by.parameters
    for name in verify.params if not is_open else ():
        if name not in known:
            return f"{by.name} has no parameter {name}.", instead(name, list(known), "It has none.")
    given = {*verify.params, *job.parameters.get("properties", {})}
    for name in by.parameters.get("required", ()):
        if name not in given and "default" not in known.get(name, {}):
            return f"{by.name} needs {name}.", f'Add it: `params: {{{name}: "..."}}`.'
    return None


def _refusal(file: Path, what: str, remedy: str) -> JobFileError:
    return JobFileError(f"verify: {what}", remedy=remedy, file=str(file), line=line_of(file, "verify"))


def line_of(file: Path, field: str) -> int | None:
    """The line on which a field of a job file begins."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith(field)), None)
