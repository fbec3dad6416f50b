"""Everything that a report says, from the ledger, the plan and the rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from statistics import median

from trueup.artifacts import Artifacts
from trueup.ledger import Ledger
from trueup.model.ledger import Counts, LaunchLife, PartitionItem, Run
from trueup.model.plan import Plan
from trueup.model.report import ColdStarts, LaunchLine, Reason, Rejected, Report, StateLine, Trouble
from trueup.model.states import PartitionStatus, Phase
from trueup.model.view import Spending
from trueup.planning.estimate import spent
from trueup.reporting.heat import heat_map
from trueup.texts import storable
from trueup.watching.planned import planned_items
from trueup.watching.rejects import lines_from
from trueup.watching.status import troubled_phase

MOST_LAUNCHES = 1_000
MOST_TROUBLES = 500
MOST_REASONS = 50
REJECTS_READ = 20_000
"""So many rejects are read for their reasons: enough to tell what is wrong, few enough to be read at once."""

GOOD = frozenset({PartitionStatus.ACCEPTED, PartitionStatus.SKIPPED})
_CLEAN = ("exit code 0", "exit code 75")


class Gatherer:
    """Reads what a report needs; each partition once."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def report(self, run: Run) -> Report:
        """The report of a run that has ended. Raises StoreUnavailable, ArtifactError."""
        by_phase = self._ledger.verdicts.counts_by_phase(run.run_id)
        last = next((one for one in reversed(run.phases) if one in by_phase), run.phases[0])
        phase = troubled_phase(run, by_phase) or last
        counts = by_phase.get(phase, Counts())
        plan = self._artifacts.plan_of(run) if run.is_planned else None
        items = self._items(run, phase, plan)
        lives = list(self._ledger.tasks.lives(run.run_id))
        lines = [_line(life) for life in lives if life.registered_at or life.how]
        bad = [item for item in items if item.status not in GOOD]
        given_up = [item for item in items if item.status is PartitionStatus.SKIPPED]
        total = counts.tally()
        seconds = next(iter(by_phase.values())).task_seconds if by_phase else 0
        return Report(
            run_id=run.run_id,
            job=run.job,
            status=run.status,
            reason=run.reason,
            requester=run.requester,
            comment=run.request.comment if run.request else "",
            window=str(run.window),
            params=run.params,
            target=run.target,
            guard=run.guard,
            dry_run=run.dry_run,
            phase=phase,
            generation=run.generation,
            created_at=run.created_at,
            ended_at=self._ended_at(run),
            open_seconds=run.open_seconds,
            plan_sha256=run.plan_sha256,
            code=plan.code(phase) if plan else None,
            partitions=len(items),
            states=list(_states(counts, items)),
            records=total.records,
            replayed=total.replayed,
            skipped=_reasons(sum((Counter(item.skipped) for item in items), Counter())),
            rejected=self._rejected(run, phase, items),
            heat_map=heat_map(items),
            launches=run.launches,
            unclean=sum(not line.clean for line in lines),
            throttled=sum(line.throttled for line in lines),
            cold_starts=_cold_starts(lines),
            time_line=lines[:MOST_LAUNCHES],
            launches_left_out=max(0, len(lines) - MOST_LAUNCHES),
            troubles=[_trouble(item) for item in [*bad, *given_up][:MOST_TROUBLES]],
            troubles_left_out=max(0, len(bad) + len(given_up) - MOST_TROUBLES),
            spending=self._spending(run, plan, seconds),
            verification=run.verification,
        )

    def _items(self, run: Run, phase: Phase, plan: Plan | None) -> list[PartitionItem]:
        if plan is None:
            return []
        found = planned_items(self._ledger, self._artifacts, run, phase, plan)
        return [item for item, *_ in found]

    def _ended_at(self, run: Run) -> datetime:
        """When its end was written, as the trail says."""
        verb = run.status.value.lower()
        told = [entry.at for entry in self._ledger.audit.of(run.run_id) if entry.verb == verb]
        return told[-1] if told else run.created_at

    def _rejected(self, run: Run, phase: Phase, items: Iterable[PartitionItem]) -> Rejected:
        reasons: Counter[str] = Counter()
        total = read = 0
        for item in items:
            total += item.counters.rejected + item.counters.refused
            if read < REJECTS_READ:
                for reason, records in self._reasons_of(run, phase, item):
                    reasons[reason] += records
                    read += records
        return Rejected(records=total, read_records=min(read, total), reasons=_reasons(reasons))

    def _reasons_of(self, run: Run, phase: Phase, item: PartitionItem) -> Iterator[tuple[str, int]]:
        for line, _, _ in lines_from(self._artifacts, run.run_id, phase, item, 0, 0):
            if "range" in line:
                yield "of a range, which is told in numbers only", line["rejected"] + line["refused"]
            else:
                # A reason that is no text may become one, in the object, that no report can hold.
                yield storable(str(line.get("reason") or line.get("kind") or "no reason was given")), 1

    def _spending(self, run: Run, plan: Plan | None, task_seconds: int) -> Spending:
        if plan is None:
            return Spending(dollars=0.0, basis="nothing was launched")
        estimate = self._artifacts.estimate(run.run_id)
        return Spending(
            dollars=round(spent(plan.job.task, run.launches, task_seconds), 4),
            estimated=estimate.dollars if estimate else None,
            basis=f"{run.launches:,} launches and {task_seconds:,} s of tasks, at list prices",
        )


def _states(counts: Counts, items: Iterable[PartitionItem]) -> Iterator[StateLine]:
    """By the counters for what ended; partitions that did not are counted as they are."""
    found = Counter(item.status for item in items)
    for status in PartitionStatus:
        tally = counts.tally(status)
        number = tally.partitions or found[status]
        if number:
            yield StateLine(status=status, partitions=number, records=tally.records, replayed=tally.replayed)


def _reasons(counted: Counter[str]) -> list[Reason]:
    """The most frequent ones, and what is left of them in one line."""
    common = counted.most_common(MOST_REASONS)
    left = counted.total() - sum(records for _, records in common)
    found = [Reason(reason=reason, records=records) for reason, records in common]
    return [*found, Reason(reason="other reasons", records=left)] if left else found


def _line(life: LaunchLife) -> LaunchLine:
    how = life.how or "nobody told how it ended"
    return LaunchLine(
        launch=life.launch,
        phase=life.phase,
        slice_id=life.slice_id,
        launched_at=life.launched_at,
        registered_at=life.registered_at,
        ended_at=life.beat_at,
        throttled=life.throttled,
        clean=how.startswith(_CLEAN),
        how=how,
        answer=life.answer,
    )


def _cold_starts(lines: Iterable[LaunchLine]) -> ColdStarts | None:
    seconds = [
        (line.registered_at - line.launched_at).total_seconds()
        for line in lines
        if line.registered_at and line.launched_at
    ]
    if not seconds:
        return None
    return ColdStarts(
        launches=len(seconds),
        median_seconds=round(median(seconds), 1),
        longest_seconds=round(max(seconds), 1),
    )


def _trouble(item: PartitionItem) -> Trouble:
    return Trouble(partition_id=item.partition_id, status=item.status, error=item.error, reason=item.reason)
