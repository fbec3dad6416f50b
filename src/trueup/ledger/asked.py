"""What makes two requests with one id the same: what is to be done, and how much of it at once."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.errors import RequestError
from trueup.model.base import canonical, sha256
from trueup.model.ledger import Run


def fingerprint(run: Run) -> str:
    """What is stored with a request's id: a hash of what its run is to do."""
    asked = run.document()
    # Only where it is one, so that requests from before there were undos are still known again.
    undoes = ("undoes",) if run.undoes else ()
    return sha256(canonical({name: asked[name] for name in ("job", "window", "params", "dryRun", *undoes)}))


def check_the_same(before: Run, run: Run) -> None:
    """Raises RequestError where two runs of one request id, and one fingerprint, were bounded otherwise.

    It is asked of the run that is there, not of the fingerprint: so runs that were stored before these bounds
    were looked at are known again.
    """
    if other := next(_other_bounds(before, run), None):
        raise asked_otherwise(run, before.run_id, other)


def asked_otherwise(run: Run, before: object, what: str) -> RequestError:
    """The error for a request id that was used for something else."""
    return RequestError(
        f"{run.request_id!r} started run {before} for another {what}.",
        field="requestId",
        remedy="Use a new request id for a new request, or leave it out.",
    )


def _other_bounds(before: Run, run: Run) -> Iterator[str]:
    """Bounds that were asked for in other words, which come to something else.

    The same words are the same request, whatever the job file has made its defaults meanwhile; and a default
    that is asked for by its number is what it is without.
    """
    said, says = before.request, run.request
    if said is None or says is None:
        return
    if said.sample != says.sample:
        yield f"sample ({said.sample or 'none'}, not {says.sample or 'none'})"
    if said.canary != says.canary and before.canary != run.canary:
        yield f"canary ({before.canary or 'none'}, not {run.canary or 'none'})"
    most, wanted = before.limits.max_concurrency, run.limits.max_concurrency
    if said.max_concurrency != says.max_concurrency and most != wanted:
        yield f"maxConcurrency ({most}, not {wanted})"
