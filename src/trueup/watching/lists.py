"""Lists, page by page: runs, partitions, rejects, the trail. Tokens are opaque, and stay good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from trueup.artifacts import Artifacts
from trueup.ledger import Ledger
from trueup.model.jobs import AnyJob
from trueup.model.ledger import AuditEntry, PartitionItem, Run
from trueup.model.plan import Partition
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.model.view import (
    AuditList,
    JobList,
    JobView,
    PartitionList,
    PartitionView,
    RejectList,
    RejectView,
    RunList,
    RunView,
)
from trueup.watching import tokens
from trueup.watching.planned import Placed, planned_items
from trueup.watching.rejects import lines_from
from trueup.watching.room import Room
from trueup.watching.status import current_phase, view

MOST_AT_ONCE = 1_000
LOOKED_AT = 2_000
"""Items that one page of a filtered list looks at: rather a short page than a long wait."""
_BATCH = 100


def jobs(catalogue: Mapping[str, AnyJob]) -> JobList:
    """The jobs that can be started, by name."""
    return JobList(jobs=[_job(job) for _, job in sorted(catalogue.items())])


class Lists:
    """Reads lists. All raise NotFound, RequestError for a token that is none, StoreUnavailable."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts

    def runs(
        self,
        *,
        job: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> RunList:
        """Runs, the newest first, of a job or in a state."""
        mark = str(tokens.read(after, at="")["at"])
        found: list[RunView] = []
        room = Room()
        looked_at, more = 0, True
        while more and len(found) < limit and looked_at < LOOKED_AT:
            page = list(islice(self._ledger.runs.newest(mark), _BATCH))
            more = len(page) == _BATCH
            for run, at in self._ledger.runs.many(page):
                wanted = job in (None, run.job) and status in (None, run.status)
                if wanted and not room.takes(one := view(run)):
                    return RunList(runs=found, next=tokens.write(at=mark))
                mark, looked_at = at, looked_at + 1
                if wanted:
                    found.append(one)
                if len(found) == limit:
                    more = True
                    break
        return RunList(runs=found, next=tokens.write(at=mark) if more else None)

    def audit(self, run_id: str, *, limit: int = 100, after: str | None = None) -> AuditList:
        """The trail of a run, oldest first."""
        self._ledger.runs.get(run_id)
        mark = str(tokens.read(after, at="")["at"])
        found: list[AuditEntry] = []
        room = Room()
        for entry, at in self._ledger.audit.after(run_id, mark):
            if len(found) == limit or not room.takes(entry):
                return AuditList(entries=found, next=tokens.write(at=mark))
            found.append(entry)
            mark = at
        return AuditList(entries=found)

    def partitions(
        self,
        run_id: str,
        *,
        phase: Phase | None = None,
        state: PartitionStatus | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> PartitionList:
        """Partitions of a phase (default: the one at work) in the plan's order, also those not begun."""
        run = self._ledger.runs.get(run_id)
        phase = phase or self._phase(run)
        start = tokens.read(after, offset=0, seen=0)
        found: list[PartitionView] = []
        behind, room = start, Room()
        for item, offset, seen, planned in self._items(run, phase, start["offset"], start["seen"]):
            if state in (None, item.status):
                one = _partition(item, planned)
                if not room.takes(one):
                    return PartitionList(phase=phase, partitions=found, next=tokens.write(**behind))
                found.append(one)
            behind = {"offset": offset, "seen": seen}
            if len(found) == limit or seen - start["seen"] >= LOOKED_AT:
                more = None if seen >= run.expected(phase) else tokens.write(**behind)
                return PartitionList(phase=phase, partitions=found, next=more)
        return PartitionList(phase=phase, partitions=found)

    def rejects(
        self,
        run_id: str,
        *,
        phase: Phase | None = None,
        partition: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> RejectList:
        """Rejected records and refused rows, of one partition or of all in the plan's order."""
        run = self._ledger.runs.get(run_id)
        phase = phase or self._phase(run)
        start = tokens.read(after, offset=0, seen=0, object=0, byte=0)
        if partition is not None:
            items: Iterator[Placed] = iter([Placed(self._ledger.partitions.get(run_id, phase, partition))])
        else:
            items = self._items(run, phase, start["offset"], start["seen"])
        return self._rejects(run_id, phase, items, start, limit)

    def _rejects(
        self,
        run_id: str,
        phase: Phase,
        items: Iterator[Placed],
        start: Mapping[str, int],
        limit: int,
    ) -> RejectList:
        found: list[RejectView] = []
        room = Room()
        offset, seen = start["offset"], start["seen"]
        place, byte = start["object"], start["byte"]
        for item, behind, seen_then, _ in items:
            for line, at, next_byte in lines_from(self._artifacts, run_id, phase, item, place, byte):
                one = RejectView(partition_id=item.partition_id, reject=line)
                fits = room.takes(one)
                if fits:
                    found.append(one)
                    place, byte = at, next_byte
                if not fits or len(found) == limit:
                    more = tokens.write(offset=offset, seen=seen, object=place, byte=byte)
                    return RejectList(rejects=found, next=more)
            offset, seen, place, byte = behind, seen_then, 0, 0
            if seen - start["seen"] >= LOOKED_AT:
                return RejectList(
                    rejects=found, next=tokens.write(offset=offset, seen=seen, object=0, byte=0)
                )
        return RejectList(rejects=found)

    def with_rejects(self, run: Run) -> list[str]:
        """The ids of the partitions of a run that were rejected, refused, or that hold rejects."""
        phase = run.phases[-1]
        return [item.partition_id for item, *_ in self._items(run, phase, 0, 0) if holds_rejects(item)]

    def _phase(self, run: Run) -> Phase:
        return current_phase(run, self._ledger.verdicts.counts_by_phase(run.run_id))

    def _items(self, run: Run, phase: Phase, offset: int, seen: int) -> Iterator[Placed]:
        """Partitions in the plan's order, as the ledger has them; with the position behind each."""
        if not run.is_planned or phase not in run.phases:
            return
        plan = self._artifacts.plan_of(run)
        yield from planned_items(self._ledger, self._artifacts, run, phase, plan, offset, seen)


def holds_rejects(item: PartitionItem) -> bool:
    """Whether a partition was rejected or refused, or left records behind."""
    left = item.counters.rejected + item.counters.refused
    return bool(left) or item.status in (PartitionStatus.REJECTED, PartitionStatus.REFUSED)


def _partition(item: PartitionItem, planned: Partition | None) -> PartitionView:
    return PartitionView(
        input=planned.input if planned else None,
        weight=planned.weight if planned else None,
        partition_id=item.partition_id,
        status=item.status,
        records=item.counters,
        skipped=item.skipped,
        replayed=item.replayed,
        launch=item.launch,
        task=item.task,
        cursor=item.cursor,
        updated_at=item.updated_at,
        error=item.error,
        reason=item.reason,
        rejects=item.entry.rejects if item.entry else None,
    )


def _job(job: AnyJob) -> JobView:
    return JobView(
        name=job.name,
        kind=job.kind,
        description=job.description,
        by=job.partitions.by,
        target=job.writes_to.name,
        guard=job.writes_to.guard,
        has_dry_run=job.has_dry_run,
        parameters=job.parameters,
    )
