"""What a reconciliation comes to. Nothing that could not be compared reads as clean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trueup.compare.findings import Counts, Kind, State, Verdict
from trueup.model.reconcile import Exists, Side
from trueup.model.reconcile_job import Reconciliation

__all__ = ["Judgement", "judge", "permitted"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with every reason for it; CLEAN has none but differences that are known."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def judge(
    job: Reconciliation,
    counts: Counts,
    *,
    counted: Mapping[Side, int | None] | None = None,
    settled: Mapping[State, int] | None = None,
    errors: tuple[str, ...] = (),
    unsettled: tuple[str, ...] = (),
) -> Judgement:
    """The verdict over a whole reconciliation.

    `counted` is how many rows each side must have had by its own, independent count; `settled` how many
    candidates the second look put into which state, None where there was none; `errors` say what could not
    be read, and `unsettled` what was left out, or not looked at again.
    Where a lag is declared, candidates need that look: without it they are neither drift nor none.
    """
    incomplete = [
        *_not_compared(job, counts),
        *_not_proved(counts, counted or {}),
        *_not_settled(job, counts, settled),
        *unsettled,
    ]
    drift = list(_drift(job, counts, settled))
    known = list(_known(settled))
    if errors:
        return Judgement(Verdict.ERROR, (*errors, *incomplete, *drift, *known))
    if incomplete:
        return Judgement(Verdict.INCOMPLETE, (*incomplete, *drift, *known))
    return Judgement(Verdict.DRIFT if drift else Verdict.CLEAN, (*drift, *known))


def _not_compared(job: Reconciliation, counts: Counts) -> Iterator[str]:
    if counts.unsorted:
        yield "a side is not in the order of its keys: what follows its first row out of order was left out"
    if counts.duplicates:
        yield f"{counts.duplicates} keys are there more than once on a side, and were not compared"
    if counts.unreadable:
        yield f"{counts.unreadable} keys have a value that is not of its declared type"
    for side, rows in ((Side.TRUTH, counts.truth_unkeyed), (Side.TARGET, counts.target_unkeyed)):
        if rows:
            yield f"{rows} rows of the {side} have no key that can be read"
    if job.empty == "refused":
        for side, rows in ((Side.TRUTH, counts.truth_rows), (Side.TARGET, counts.target_rows)):
            if not rows:
                yield f"the {side} is empty: declare `empty: allowed` if that may be"


def _not_proved(counts: Counts, counted: Mapping[Side, int | None]) -> Iterator[str]:
    if not counts.rows_add_up:
        yield "the counters do not add up: this is a fault of trueup"
    for side, rows in ((Side.TRUTH, counts.truth_rows), (Side.TARGET, counts.target_rows)):
        expected = counted.get(side)
        if expected is not None and expected != rows and not counts.unsorted:
            yield f"{rows} rows of the {side} were read, but it has {expected} by its own count"


def _not_settled(job: Reconciliation, counts: Counts, settled: Mapping[State, int] | None) -> Iterator[str]:
    if settled is None:
        candidates = sum(_differing(job, counts))
        if candidates and (job.lag or counts.newer):
            yield f"{candidates} keys differ and may be in flight: they need a second look"
    elif moving := settled.get(State.MOVING, 0):
        yield f"{moving} keys still differ, each time in another way"


def _known(settled: Mapping[State, int] | None) -> Iterator[str]:
    if known := (settled or {}).get(State.KNOWN, 0):
        yield f"{known} differences are known: they were signed, are as they were, and have not expired"


def _drift(job: Reconciliation, counts: Counts, settled: Mapping[State, int] | None) -> Iterator[str]:
    if settled is not None:
        if confirmed := settled.get(State.CONFIRMED, 0):
            yield f"{confirmed} differences are confirmed"
        return
    missing, extra, mismatched = _differing(job, counts)
    if missing:
        yield f"{missing} keys of the truth are missing in the target"
    if extra:
        yield f"{extra} keys of the target are not in the truth"
    if mismatched:
        yield f"{mismatched} keys have other values"


def _differing(job: Reconciliation, counts: Counts) -> tuple[int, int, int]:
    """Keys that are missing, extra and mismatched, as far as the invariant forbids it."""
    allowed = permitted(job)
    missing = 0 if Kind.MISSING in allowed else counts.missing
    extra = 0 if Kind.EXTRA in allowed else counts.extra
    return missing, extra, counts.mismatched


def permitted(job: Reconciliation) -> frozenset[Kind]:
    """What the invariant does not forbid: one way of existence leaves the other open."""
    ways = job.invariant.ways if isinstance(job.invariant, Exists) else "both"
    return _PERMITTED[ways]


_PERMITTED = {
    "both": frozenset[Kind](),
    "truth-in-target": frozenset({Kind.EXTRA}),
    "target-in-truth": frozenset({Kind.MISSING}),
}
