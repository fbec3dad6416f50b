"""From a job file's `class: module:Class` to the class."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from trueup.errors import JobFileError
from trueup.jobs import Backfill, Reconcile
from trueup.model.job import JobFile
from trueup.model.jobs import AnyJob
from trueup.model.reconcile_job import Reconciliation


def load_class(job: JobFile, folder: Path) -> type[Backfill]:
    """The author's class; `folder` (where job.yaml lies) goes to the front of the module path.

    Raises JobFileError where the module does not import, the name is not there, or it is no Backfill.
    """
    if job.job_class is None:
        raise JobFileError(
            f"Job {job.name} runs a command, not a class.",
            remedy="Nothing runs commands yet: declare `class: module:Class`.",
        )
    return _checked(_imported(job, job.job_class, folder), job)


def load_hooks(job: Reconciliation, folder: Path) -> type[Reconcile]:
    """The hooks of a reconciliation: the author's class, or the one that leaves everything as it is.

    Raises JobFileError as `load_class` does.
    """
    if job.job_class is None:
        return Reconcile
    found = _imported(job, job.job_class, folder)
    if not (isinstance(found, type) and issubclass(found, Reconcile)):
        raise JobFileError(
            f"class {job.job_class!r} of job {job.name} is no Reconcile.", remedy="Subclass trueup.Reconcile."
        )
    return found


def load(job: AnyJob, folder: Path) -> type[Backfill] | type[Reconcile]:
    """What the author wrote for a job of any kind. Raises JobFileError."""
    return load_hooks(job, folder) if isinstance(job, Reconciliation) else load_class(job, folder)


def _imported(job: AnyJob, named: str, folder: Path) -> object:
    module, _, name = named.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise JobFileError(
            f"class {named!r} of job {job.name} cannot be loaded: {error}.",
            remedy=f"Put {name} into {module.replace('.', '/')}.py beside the job file, "
            "and install what it imports.",
        ) from error
    except (Exception, SystemExit) as error:  # the author's module may raise anything while it is imported
        raise JobFileError(
            f"{named} cannot be imported: {type(error).__name__}: {error}.",
            remedy="Correct the module.",
        ) from error


def _checked(found: object, job: JobFile) -> type[Backfill]:
    if not (isinstance(found, type) and issubclass(found, Backfill)):
        raise JobFileError(
            f"class {job.job_class!r} of job {job.name} is no Backfill.", remedy="Subclass trueup.Backfill."
        )
    missing = [hook for hook in ("read", "write") if getattr(found, hook) is getattr(Backfill, hook)]
    if missing:
        raise JobFileError(
            f"class {job.job_class!r} of job {job.name} has no {' and no '.join(missing)}.",
            remedy="Both `read` and `write` are required.",
        )
    if job.target.guard == "transaction" and found.raise_fence is Backfill.raise_fence:
        raise JobFileError(
            f"Job {job.name} has the guard `transaction`, but {job.job_class!r} has no raise_fence.",
            remedy="Write raise_fence(part, ctx): it raises the partition's fence row right after the take.",
        )
    return found
