"""What a reconciliation knows of those before it: which runs, and what may be compared with what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.model.base import Sha256, Value, canonical, sha256

if TYPE_CHECKING:
    from trueup.model.plan import Window
    from trueup.model.reconcile_job import Reconciliation


class EarlierRun(Value):
    """An earlier run of the same reconciliation, and the SHA-256 of its report."""

    run_id: str
    sha256: Sha256


def scope_of(job: Reconciliation, window: Window | None = None) -> str:
    """What two runs share whose findings are about the same rows: the target, by which key, which part of it.

    `job` has its parameters filled in. Conservation has no target: there it is the truth.
    """
    source = (job.target or job.truth).document()
    # How it is proved says nothing of which rows they are.
    source.pop("count", None)
    about = {
        "source": source,
        "key": [[name, job.column(name).type.value] for name in job.key],
        "window": window and window.document(),
    }
    return sha256(canonical(about))[:32]
