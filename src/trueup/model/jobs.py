"""Job files of every kind."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from trueup.model.job import JobFile
from trueup.model.reconcile_job import Reconciliation


def kind_of(job: object) -> str:
    """The kind of a job file, or of the document of one: a backfill where it does not say."""
    found = job.get("kind", "backfill") if isinstance(job, dict) else getattr(job, "kind", "")
    return str(found)


AnyJob = Annotated[
    Annotated[JobFile, Tag("backfill")] | Annotated[Reconciliation, Tag("reconcile")], Discriminator(kind_of)
]
