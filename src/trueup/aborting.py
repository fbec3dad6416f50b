"""Abort rules: bounds on a whole run, asked of the ledger alone (design, section 8).

What they cost does not grow with the run: the run item is at hand, counters are 8 items, the row is one.
A run whose job declares no rules is asked for its hours only, which takes no read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from trueup.clock import Clock
from trueup.errors import RunClosed
from trueup.ledger import Ledger
from trueup.model.job import AbortRule
from trueup.model.jobs import AnyJob
from trueup.model.ledger import Counts, Run
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.planning.estimate import spent

ABORTER = "trueup:abort"

_P = PartitionStatus
FAILURES = (_P.FAILED, _P.REFUSED, _P.REJECTED, _P.STUCK)


class AbortRules:
    """Closes runs that exceed a bound of their job."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def ask(self, run: Run, job: AnyJob) -> Run:
        """The run as it then stands: on its way to ABORTED where a rule is broken, with the reason.

        Asked again, or by two at once, the first reason stands. Raises Stale, StoreUnavailable.
        """
        if run.status is not RunStatus.RUNNING:
            return run
        why = self.broken(run, job)
        if why is None:
            return run
        with suppress(RunClosed):  # A person was faster, with another goal, or another generation is at work.
            return self._ledger.runs.stop(
                run.run_id, RunStatus.ABORTED, who=ABORTER, why=why, generation=run.generation
            )
        return self._ledger.runs.get(run.run_id)

    def broken(self, run: Run, job: AnyJob) -> str | None:
        """The first rule that is broken, with both numbers and what to do now; None where there is none."""
        standing = _Standing(self._ledger, self._clock, run, job)
        for rule in job.abort_rules:
            for seen in _LOOK[rule.of](standing, rule):
                if seen.amount > rule.above:
                    return _told(rule, seen)
        return None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A figure in the rule's unit, and how people read it."""

    amount: float
    told: str


class _Standing:
    """A run as its rules look at it; each item is read once, and only where a rule asks."""

    def __init__(self, ledger: Ledger, clock: Clock, run: Run, job: AnyJob) -> None:
        self._ledger = ledger
        self._clock = clock
        self.run = run
        self.job = job

    @cached_property
    def counts(self) -> Mapping[Phase, Counts]:
        """The counters of each phase of the run."""
        return {phase: self._ledger.verdicts.counts(self.run.run_id, phase) for phase in self.run.phases}

    @property
    def is_all_worked(self) -> bool:
        """Whether no partition is left, in any phase: then there is nothing that could still be spent."""
        ended = {phase: counts.tally().partitions for phase, counts in self.counts.items()}
        return all(ended[phase] >= self.run.expected(phase) for phase in ended)

    @property
    def judged(self) -> int:
        """Partitions that were worked to an end, good or bad, in all phases."""
        return sum(_judged(counts) for counts in self.counts.values())

    @property
    def failed_in_a_row(self) -> int:
        return self._ledger.verdicts.failed_in_a_row(self.run.run_id)

    @property
    def dollars(self) -> float:
        seconds = next(iter(self.counts.values())).task_seconds
        return spent(self.job.task, self.run.launches, seconds)

    @property
    def hours(self) -> float:
        return self.run.open_for(self._clock.now()) / 3600


def _judged(counts: Counts) -> int:
    return counts.tally(_P.ACCEPTED, *FAILURES).partitions


def _failed_partitions(standing: _Standing, rule: AbortRule) -> Iterator[_Seen]:
    for counts in standing.counts.values():
        failed, judged = counts.tally(*FAILURES).partitions, _judged(counts)
        if judged >= rule.minimum:
            yield _share(rule, failed, judged, "partitions that ended")


def _rejects(standing: _Standing, rule: AbortRule) -> Iterator[_Seen]:
    for counts in standing.counts.values():
        records = counts.tally(_P.ACCEPTED, *FAILURES).records
        if records.read >= rule.minimum:
            yield _share(rule, records.rejected + records.refused, records.read, "records that were read")


def _share(rule: AbortRule, some: int, total: int, of: str) -> _Seen:
    if rule.unit == "percent":
        percent = 100 * some / total
        return _Seen(percent, f"{percent:.4g} percent ({some:,} of {total:,} {of})")
    return _Seen(some, f"{some:,} (of {total:,} {of})")


def _consecutive_failures(standing: _Standing, rule: AbortRule) -> Iterator[_Seen]:
    if standing.judged >= rule.minimum:
        row = standing.failed_in_a_row
        yield _Seen(row, f"{row:,} partitions in a row")


def _dollars(standing: _Standing, rule: AbortRule) -> Iterator[_Seen]:
    yield from _while_work_is_left(standing, rule, _Seen(standing.dollars, f"{standing.dollars:.2f} USD"))


def _hours(standing: _Standing, rule: AbortRule) -> Iterator[_Seen]:
    yield from _while_work_is_left(standing, rule, _Seen(standing.hours, f"{standing.hours:.2f} hours"))


def _while_work_is_left(standing: _Standing, rule: AbortRule, seen: _Seen) -> Iterator[_Seen]:
    """What is spent is spent: these rules save what would come on top, so they say nothing at the end."""
    if seen.amount > rule.above and not standing.is_all_worked:
        yield seen


_LOOK: Mapping[str, Callable[[_Standing, AbortRule], Iterator[_Seen]]] = {
    "failedPartitions": _failed_partitions,
    "consecutiveFailures": _consecutive_failures,
    "rejects": _rejects,
    "dollars": _dollars,
    "hours": _hours,
}

_NOW = {
    "failedPartitions": "Read their errors, mend the job or its data",
    "consecutiveFailures": "Look what their errors have in common: the target, the network, the last change",
    "rejects": "Look at the rejects, mend the data or the job",
    "dollars": "Look what the tasks waited for, or allow more in the job file",
    "hours": "Look what the tasks waited for, or allow more in the job file",
}


def _told(rule: AbortRule, seen: _Seen) -> str:
    bound = f"{rule.above:g}" + ("" if rule.unit == "count" else f" {rule.unit}")
    return (
        f"abort rule {rule.of}: {seen.told} > {bound}. "
        f"{_NOW[rule.of]}, and start a new run for the partitions that were not accepted."
    )
