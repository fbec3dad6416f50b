"""One partition from its checkpoint to its end: take, then batches, then report."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueup.errors import JobError, Refused, StoreUnavailable, Superseded
from trueup.jobs import Backfill, Batch, Context, overrides
from trueup.ledger import Owner
from trueup.model.base import cut
from trueup.model.ledger import Checkpoint, PartitionItem
from trueup.model.plan import Partition, Plan
from trueup.model.result import (
    LONGEST_KIND,
    LONGEST_LOCATION,
    LONGEST_REASON,
    MOST_OUTPUTS,
    MOST_REASONS,
    Output,
    PartitionError,
    PartitionResult,
    record_counts,
)
from trueup.model.states import PartitionStatus, ResultStatus
from trueup.texts import storable
from trueup.worker.batches import Figures, RecordFailed, Worked, WorkedBatch, work_range, work_records
from trueup.worker.pace import BatchSize, Pace
from trueup.worker.patience import Patience
from trueup.worker.reading import AnyBatch, read_batches
from trueup.worker.rejects import Rejects
from trueup.worker.stopping import Stopped, Stopping
from trueup.worker.telling import describe, told
from trueup.worker.tools import Tools

log = logging.getLogger("trueup.worker")

# What ends the task, not the partition: it is for the loop above to decide what is left of the slice.
ENDS_THE_TASK = (Stopped, Refused, Superseded, StoreUnavailable)

OTHER_REASONS = "other reasons"


@dataclass(frozen=True, slots=True)
class Step:
    """A point that the loop passed: registered, taken, written, advanced, reported, interrupted, stored."""

    name: str
    partition_id: str | None = None


@dataclass(slots=True)
class Bench:
    """What one task shares among its partitions."""

    job: Backfill
    plan: Plan
    owner: Owner
    dry: bool
    stopping: Stopping
    patience: Patience
    pace: Pace
    size: BatchSize
    tools: Tools
    warnings: list[str] = field(default_factory=list)


class Leavings(Protocol):
    """What is kept of records: in parts, stored before the cursor moves and named by its checkpoint."""

    @property
    def are_many(self) -> bool:
        """Whether they should not be held any longer."""

    def add(self, lines: Iterable[dict[str, Any]], /) -> None:
        """Keep some until the next checkpoint."""

    def store(self, seq: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Store what was added, and give the parts that the checkpoint `seq` has to name."""

    def gather(self, parts: tuple[str, ...]) -> str | None:
        """One place for all of them, once the partition ended; None where there are none."""


class PartitionWork:
    """The work on one partition. `entry` is what was reported or saved of it; None where nothing was.

    `kept`: the task leaves by its own doing and moved nothing, so it keeps the partition RUNNING and the
    take counts.
    """

    def __init__(self, bench: Bench, part: Partition) -> None:
        self._bench = bench
        self._part = part
        self._tools = bench.tools
        self._rejects = self._leavings()
        self._item = PartitionItem(partition_id=part.id)
        self._took_over = False
        # Since the start of the partition, what is not saved yet included.
        self._cursor: str | None = None
        self._figures = Figures()
        self._skipped: dict[str, int] = {}
        self._saved_at = 0.0
        self._ranged = False
        self.entry: PartitionResult | None = None
        self.kept = False

    def _leavings(self) -> Leavings:
        """Where what has to be kept of records goes."""
        return Rejects(self._tools.artifacts, self._bench.owner, self._part.id)

    def steps(self) -> Iterator[Step]:
        """Work it to its end, pausing at each point.

        Raises NotTakable where there is nothing to do, Stopped with the progress saved, LostOwnership,
        Superseded or StoreUnavailable with nothing more written.
        """
        yield self._take()
        try:
            yield from self._work()
        except ENDS_THE_TASK as error:
            if isinstance(error, Stopped):
                yield from self._leave(error)
            raise
        except (Exception, SystemExit) as error:  # An author's `sys.exit` is no exit code of ours.
            log.exception("partition %s failed", self._part.id)
            yield from self._flush()
            yield self._report(ResultStatus.FAILED, error=_as_error(error, self._cursor))

    def _take(self) -> Step:
        taken = self._tools.ledger.partitions.take(self._bench.owner, self._part.id, self._part.weight)
        item = self._item = taken.item
        self._took_over = item.took_over or taken.before is PartitionStatus.RUNNING
        self._cursor, self._figures, self._skipped = item.cursor, Figures.of(item.counters), item.skipped
        self._saved_at = self._tools.clock.monotonic()
        self._tools.control.partition = self._part.id
        return Step("taken", self._part.id)

    def _work(self) -> Iterator[Step]:
        ctx = self._context()
        if ctx is not None and overrides(self._bench.job, "raise_fence"):
            self._bench.patience.call("raise_fence", lambda: self._bench.job.raise_fence(self._part, ctx))
        yield from self._work_batches(ctx)
        yield from self._flush()
        yield from self._end(ctx)

    def _work_batches(self, ctx: Context | None) -> Iterator[Step]:
        if self._too_many_rejects():
            return  # The task before this one died between that checkpoint and its report.
        read = read_batches(self._bench.job, self._part, self._item.cursor, self._bench.patience)
        with closing(read) as batches:
            for batch in batches:
                self._work_batch(batch, ctx)
                yield Step("written", self._part.id)
                if self._too_many_rejects():
                    return
                if self._due():
                    yield from self._flush()
                if stop := self._bench.stopping.ask():
                    raise Stopped(stop)

    def _context(self) -> Context | None:
        """None in a rehearsal: without it nothing can call `write`."""
        owner = self._bench.owner
        if self._bench.dry:
            return None
        return Context(owner.run_id, owner.phase, self._part, owner.launch, owner.fence)

    def _work_batch(self, batch: AnyBatch, ctx: Context | None) -> None:
        bench = self._bench
        known = len(batch.records) if isinstance(batch, Batch) else 0
        bench.pace.wait(known)
        started = self._working_time()
        worked = self._worked(batch, ctx)
        seconds = self._working_time() - started
        bench.pace.worked(seconds, unannounced=worked.figures.read - known)
        if warning := bench.size.took(worked.figures.read, seconds):
            bench.warnings.append(f"{self._part.id}: {warning}")
        self._tools.metrics.emit({"BatchSeconds": seconds})
        self._add(worked, batch.cursor)

    def _working_time(self) -> float:
        """The clock, less what was spent on waiting for others: that says nothing about the batch."""
        return self._tools.clock.monotonic() - self._bench.stopping.waited

    def _worked(self, batch: AnyBatch, ctx: Context | None) -> Worked:
        bench = self._bench
        if isinstance(batch, WorkedBatch):
            return batch.worked
        if isinstance(batch, Batch):
            return work_records(bench.job, batch.records, ctx, bench.patience.call)
        if not self._ranged:
            self._ranged = True
            self._must_be_counted()
        return work_range(bench.job, batch, ctx, bench.patience.call)

    def _add(self, worked: Worked, cursor: str) -> None:
        if worked.skipped:
            self._skipped = self._skipped_with(worked.skipped)
        self._rejects.add(worked.rejects)
        self._figures.add(worked.figures)
        self._tools.control.records += worked.figures.read
        self._cursor = cursor

    def _skipped_with(self, more: dict[str, int]) -> dict[str, int]:
        """The reasons with their sums. One a record would not fit the ledger, so the last ones share one."""
        skipped = dict(self._skipped)
        for reason, number in more.items():
            name = cut(storable(reason), LONGEST_REASON)
            if name not in skipped and len(skipped) >= MOST_REASONS - 1:
                self._warn_of_reasons(skipped)
                name = OTHER_REASONS
            skipped[name] = skipped.get(name, 0) + number
        return skipped

    def _warn_of_reasons(self, skipped: dict[str, int]) -> None:
        if OTHER_REASONS not in skipped:
            self._bench.warnings.append(
                f"{self._part.id}: after {len(skipped)} different reasons to skip, more are counted as "
                f"{OTHER_REASONS!r}: name kinds in Skip(reason), and no ids or values of records"
            )

    def _due(self) -> bool:
        elapsed = self._tools.clock.monotonic() - self._saved_at
        return elapsed >= self._tools.checkpoint_seconds or self._rejects.are_many

    def _flush(self) -> Iterator[Step]:
        """Save what was worked since the last checkpoint, if anything was.

        Its rejects are stored before it moves.
        """
        counters, item = self._figures.counters(), self._item
        if self._cursor == item.cursor and counters == item.counters:
            return
        added = counters.minus(item.counters)
        checkpoint = Checkpoint(
            cursor=self._cursor,
            counters=counters,
            skipped=self._skipped,
            replayed=item.replayed + (added["read"] if self._took_over else 0),
            reject_parts=self._rejects.store(item.seq + 1, item.reject_parts),
        )
        started = self._tools.clock.monotonic()
        self._item = self._tools.ledger.partitions.advance(self._bench.owner, item, checkpoint)
        self._took_over = False
        self._saved()
        self._measure(added, self._saved_at - started)
        yield Step("advanced", self._part.id)

    def _saved(self) -> None:
        control = self._tools.control
        control.saved = True
        self._saved_at = control.progressed_at = self._tools.clock.monotonic()

    def _measure(self, added: dict[str, int], seconds: float) -> None:
        self._tools.metrics.emit(
            {
                "RecordsRead": added["read"],
                "RecordsWritten": added["written"],
                "RecordsRejected": added["rejected"] + added["refused"],
                "CheckpointSeconds": seconds,
            }
        )

    def _too_many_rejects(self) -> bool:
        return self._figures.rejected + self._figures.refused > self._bench.plan.job.errors.rejects

    def _end(self, ctx: Context | None) -> Iterator[Step]:
        if self._too_many_rejects():
            yield self._report(ResultStatus.REJECTED, error=self._rejected())
            return
        counted = self._counted()
        outputs: list[Output] = []
        if ctx is not None and overrides(self._bench.job, "finish"):
            self._still_ours()
            outputs = self._bench.patience.call("finish", lambda: self._finish(ctx))
        yield self._report(ResultStatus.SUCCEEDED, counted=counted, outputs=outputs)

    def _still_ours(self) -> None:
        """Outputs have no fence, so who lost the partition since its last batch may not begin on them."""
        item = self._item
        same = Checkpoint(
            cursor=item.cursor,
            counters=item.counters,
            skipped=item.skipped,
            replayed=item.replayed,
            reject_parts=item.reject_parts,
        )
        self._item = self._tools.ledger.partitions.advance(self._bench.owner, item, same)

    def _finish(self, ctx: Context) -> list[Output]:
        given: object = self._bench.job.finish(self._part, ctx)
        if not isinstance(given, Sequence) or not all(isinstance(one, Output) for one in given):
            remedy = "Return a list of Output values; it may be empty."
            raise JobError(f"finish returned {describe(given)}.", remedy=remedy)
        outputs: list[Output] = list(given)
        longest = max((len(output.location.encode()) for output in outputs), default=0)
        if len(outputs) > MOST_OUTPUTS or longest > LONGEST_LOCATION:
            raise JobError(
                f"finish names {len(outputs)} outputs of partition {self._part.id}, with locations of up to "
                f"{longest} bytes; the ledger keeps {MOST_OUTPUTS} of {LONGEST_LOCATION}.",
                remedy="Write one object that lists them, and name that one.",
            )
        return outputs

    def _counted(self) -> int | None:
        counted = self._bench.patience.call("count", lambda: self._bench.job.count(self._part))
        if counted is not None and (type(counted) is not int or counted < 0):
            raise JobError(
                f"count returned {describe(counted)}.", remedy="Return how many records there are, or None."
            )
        return counted

    def _must_be_counted(self) -> None:
        """Before the first range is worked: the count is all that tells whether one was left out."""
        counted = self._counted()
        if counted is None:
            raise JobError(
                "count returned None for a partition that is worked in ranges.",
                remedy="Write `count(part)`: without it nobody could tell whether a range was left out.",
            )
        if self._bench.dry and self._figures.read == 0:
            # A rehearsal shows ranges and counts only: the count stands for what would be read.
            self._figures = Figures(read=counted, used=counted)

    def _rejected(self) -> PartitionError:
        figures, limit = self._figures, self._bench.plan.job.errors.rejects
        return PartitionError(
            kind="TooManyRejects",
            message=f"{figures.rejected} records rejected and {figures.refused} rows refused by the sink; "
            f"the job allows {limit}. Look at the rejects, mend data or job, and retry the partition.",
            batch_after=self._cursor,
        )

    def _report(self, status: ResultStatus, **known: Any) -> Step:
        entry = self._make_entry(status, **known)
        self._item = self._tools.ledger.partitions.report(self._bench.owner, self._item, entry)
        self.entry = entry
        self._saved()
        self._tools.metrics.emit({"PartitionsReported": 1})
        return Step("reported", self._part.id)

    def _leave(self, stopped: Stopped) -> Iterator[Step]:
        """Save, and give the partition back; or keep it, where nothing moved and nobody outside asked."""
        if stopped.stop.signal == "ownership":
            return
        yield from self._flush()
        # A checkpoint sets the takes to zero, so above it nothing moved since the take.
        self.kept = stopped.own_doing and self._item.takes > 0
        if self.kept:
            return
        reason = str(stopped.stop)
        self._item = self._tools.ledger.partitions.interrupt(
            self._bench.owner, self._item, reason, took_over=self._took_over
        )
        self.entry = self._make_entry(ResultStatus.INTERRUPTED)
        yield Step("interrupted", self._part.id)

    def _make_entry(
        self,
        status: ResultStatus,
        *,
        counted: int | None = None,
        outputs: list[Output] | None = None,
        error: PartitionError | None = None,
    ) -> PartitionResult:
        item = self._item
        return PartitionResult(
            partition_id=item.partition_id,
            fence=item.fence,
            status=status,
            cursor=item.cursor,
            records_counted=counted,
            skipped=item.skipped,
            rejects=self._kept(status),
            outputs=outputs or [],
            error=error,
            **record_counts(item.counters),
        )

    def _kept(self, status: ResultStatus) -> str | None:
        """Where what was kept lies, once the partition ended."""
        if status is ResultStatus.INTERRUPTED:
            return None
        return self._rejects.gather(self._item.reject_parts)


def _as_error(error: BaseException, after: str | None) -> PartitionError:
    record = error.record if isinstance(error, RecordFailed) else None
    cause = error.__cause__ if isinstance(error, RecordFailed) and error.__cause__ else error
    kind = cut(storable(type(cause).__name__), LONGEST_KIND)
    return PartitionError(kind=kind, message=told(error), record=record, batch_after=after)
