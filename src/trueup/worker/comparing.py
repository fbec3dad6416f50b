"""The phases of a reconciliation that read: what a task compares, step by step, with a cursor after each.

A cursor holds the key that was reached, and the exact counters up to there, so that both move in one write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from trueup.compare import Counts, Key, Span, Step, reconcile
from trueup.compare.findings import DRIFT
from trueup.errors import JobError
from trueup.jobs import Backfill, Reconcile, Settings
from trueup.model.compared import Compared, Covered
from trueup.model.ledger import Run
from trueup.model.naming import Brief
from trueup.model.plan import Partition, Plan, Window
from trueup.model.reconcile import Side
from trueup.model.reconcile_job import QuantilePartitions, Reconciliation
from trueup.model.result import Output, PartitionError, PartitionResult
from trueup.model.states import Phase, ResultStatus
from trueup.planning.partitions import partition_of
from trueup.worker.batches import Figures, Worked, WorkedBatch
from trueup.worker.findings import Findings
from trueup.worker.partition import PartitionWork
from trueup.worker.sides import Sides, open_sides
from trueup.worker.stopping import Stopped, Stopping
from trueup.worker.tools import Tools

DEFERRED = "changed after the instant that is compared"


def span_of(part: Partition) -> Span:
    """The keys of a partition."""
    return Span(_bound(part.low), _bound(part.high))


def _bound(text: str | None) -> Key | None:
    return None if text is None else tuple(json.loads(text))


@dataclass(frozen=True, slots=True)
class Place:
    """How far a comparison got: everything up to `after` is in the counters.

    `as_of` is the instant that is compared: it stays the same for all that go on from here.
    """

    after: Key | None = None
    counts: Counts = field(default_factory=Counts)
    candidates: int = 0
    scans: int = 0
    covered: dict[Side, Covered] = field(default_factory=dict)
    over: bool = False
    as_of: datetime | None = None

    @classmethod
    def read(cls, cursor: str | None) -> Place:
        """From a cursor; None is the start."""
        if cursor is None:
            return cls()
        found = json.loads(cursor.removeprefix("v1:"))
        return cls(
            after=None if found["after"] is None else tuple(found["after"]),
            counts=Counts.read(found["counts"]),
            candidates=found["candidates"],
            scans=found["scans"],
            covered={Side(side): Covered.model_validate(one) for side, one in found["covered"].items()},
            over=found["over"],
            as_of=datetime.fromisoformat(found["asOf"]) if found["asOf"] else None,
        )

    def cursor(self) -> str:
        """As a cursor."""
        document = {
            "after": self.after,
            "counts": {name: number for name, number in self.counts.document().items() if number},
            "candidates": self.candidates,
            "scans": self.scans,
            "covered": {side.value: one.document() for side, one in self.covered.items()},
            "over": self.over,
            "asOf": self.as_of and self.as_of.isoformat(),
        }
        return f"v1:{json.dumps(document, ensure_ascii=False, separators=(',', ':'))}"

    def plus(self, step: Step) -> Place:
        """After one more step."""
        found = sum(one.kind in DRIFT for one in step.findings)
        return replace(
            self,
            after=self.after if step.cursor is None else step.cursor,
            counts=self.counts.plus(step.counts),
            candidates=self.candidates + found,
        )


def worked(step: Step, shown: bool) -> Worked:
    """What a step comes to in the counters of the result contract (docs/contract.md)."""
    counts = step.counts
    drift = [one for one in step.findings if one.kind in DRIFT]
    deferred = sum(one.newer for one in drift)
    looked_at = counts.matched + counts.candidates
    unkeyed = counts.truth_unkeyed + counts.target_unkeyed
    rejected = counts.unreadable + counts.duplicates + unkeyed + counts.unsorted
    figures = Figures(
        read=looked_at + rejected,
        used=looked_at - deferred,
        skipped=deferred,
        rejected=rejected,
        produced=len(drift),
        unchanged=len(drift),
    )
    reasons = {DEFERRED: deferred} if deferred else {}
    return Worked(figures, reasons, [one.document(shown) for one in step.findings])


class Comparison(Backfill):
    """What a task of the phase `compare` reads; it writes nothing."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        hooks: Reconcile,
        tools: Tools,
        stopping: Stopping,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(settings or Settings(plan.params, tools.secret))
        assert isinstance(plan.job, Reconciliation)
        self.run = run
        self.job = plan.job.filled(plan.params)
        self.tools = tools
        self._plan = plan
        self._hooks = hooks
        self._stopping = stopping
        self._opened: Sides | None = None

    @property
    def sides(self) -> Sides:
        """Both sides."""
        assert self._opened is not None, "it is not open"
        return self._opened

    @property
    def shown(self) -> bool:
        """Whether findings show values."""
        return self.job.values == "shown"

    def open(self) -> None:
        """Open both sides; nothing is connected before it is read."""
        self._opened = open_sides(self.job, self._hooks, self.tools, self._watch)

    def _watch(self) -> None:
        """Called at each block that is read: it is progress, and the moment to leave when asked."""
        self.tools.control.progressed_at = self.tools.clock.monotonic()
        if stop := self._stopping.ask():
            raise Stopped(stop)

    def read(self, part: Partition, after: str | None) -> Iterator[Any]:
        """The steps of the comparison after a cursor; the last one says how far the scans got."""
        place = Place.read(after)
        if place.over:
            return
        sides, span = self.sides, span_of(part)
        unkeyed = (place.counts.truth_unkeyed, place.counts.target_unkeyed)
        if place.after is not None:
            span, unkeyed = span.resumed(place.after), (0, 0)
        as_of = place.as_of or sides.as_of(self._plan.created_at)
        place = replace(place, scans=place.scans + 1, as_of=as_of)
        steps = reconcile(
            self.job,
            sides.truth,
            sides.target,
            span,
            as_of=as_of,
            fold=sides.fold,
            unkeyed=unkeyed,
        )
        for step in steps:
            before, place = place, place.plus(step)
            if place == before:
                continue  # The step before it ended with the last key: there is nothing to save.
            yield WorkedBatch(place.cursor(), worked(step, self.shown))
        place = replace(place, covered=dict(sides.covered), over=True)
        yield WorkedBatch(place.cursor(), Worked(Figures()))

    def ended(self, part: Partition, cursor: str | None) -> Compared:
        """What the comparison of a partition came to, up to a cursor."""
        place = Place.read(cursor)
        return Compared(
            partition_id=part.id,
            phase=Phase.COMPARE,
            as_of=place.as_of,
            finished_at=self.tools.clock.now(),
            counts=place.counts.document(),
            candidates=place.candidates,
            scans=place.scans,
            covered=place.covered,
        )


def make_comparison(
    run: Run,
    plan: Plan,
    phase: Phase,
    hooks: Reconcile,
    tools: Tools,
    stopping: Stopping,
    settings: Settings | None = None,
) -> Comparison:
    """What a task of a phase reads, or repairs."""
    return _kind(phase, bool(run.undoes))(run, plan, hooks, tools, stopping, settings)


def _kind(phase: Phase, undoes: bool) -> type[Comparison]:
    if phase is Phase.CONFIRM:
        from trueup.worker.confirming import Confirmation

        return Confirmation
    if undoes:
        from trueup.worker.undoing import Undo, VerifyUndo

        return Undo if phase is Phase.REPAIR else VerifyUndo
    if phase is Phase.REPAIR:
        from trueup.worker.repairing import Repair

        return Repair
    if phase is Phase.VERIFY:
        from trueup.worker.verifying import Verify

        return Verify
    return Comparison


class ComparisonWork(PartitionWork):
    """The work on one partition of a comparison: findings go to objects, and it ends with a list of those."""

    def _leavings(self) -> Findings:
        return Findings(self._tools.artifacts, self._bench.owner, self._part.id)

    def _make_entry(
        self,
        status: ResultStatus,
        *,
        counted: int | None = None,
        outputs: list[Output] | None = None,
        error: PartitionError | None = None,
    ) -> PartitionResult:
        entry = super()._make_entry(status, counted=counted, outputs=outputs, error=error)
        if status is ResultStatus.INTERRUPTED:
            return entry
        made = self._list()
        bad = entry.records_rejected + entry.records_refused
        return entry.model_copy(update={"outputs": [made], "rejects": made.location if bad else None})

    def _due(self) -> bool:
        """What a repair intends is saved before it is done, and what was done before more is intended."""
        return self._bench.owner.phase is Phase.REPAIR or super()._due()

    def _list(self) -> Output:
        """The partition's output: how it ended, and all its objects."""
        comparison, findings = self._bench.job, self._rejects
        assert isinstance(comparison, Comparison)
        assert isinstance(findings, Findings)
        return findings.close(comparison.ended(self._part, self._item.cursor), self._item.reject_parts)


class Quantiles(Backfill):
    """Names the partitions of a comparison: ranges of keys that both sides cut evenly."""

    def __init__(self, brief: Brief, hooks: Reconcile, tools: Tools) -> None:
        super().__init__(Settings(brief.params, tools.secret))
        assert isinstance(brief.job, Reconciliation)
        self._job = brief.job.filled(brief.params)
        self._sides: Callable[[], Sides] = lambda: open_sides(self._job, hooks, tools, lambda: None)

    def partitions(self, window: Window) -> Iterator[Partition]:
        """The ranges, in order; the first has no lower end and the last no upper one."""
        settings = self._job.partitions
        assert isinstance(settings, QuantilePartitions)
        sides = self._sides()
        # Of a side with a longer key, such as events, the columns that both share: none may be cut in two.
        found = [
            key[: len(self._job.key)]
            for source in (sides.truth, sides.target)
            for key in getattr(source, "quantiles", lambda count: [])(settings.count)
        ]
        if not found:
            raise JobError(
                "Neither side can say where its quantiles are.",
                remedy="Declare `partitions: {by: splits, splits: [...]}`, or leave `partitions` out.",
            )
        cuts = evenly(sorted(set(found), key=sides.truth.layout.order_of_key), settings.count)
        lows: list[Key | None] = [None, *cuts]
        highs: list[Key | None] = [*cuts, None]
        for low, high in zip(lows, highs, strict=True):
            yield partition_of(settings.key, low, high, settings.seconds)


def evenly(keys: list[Key], count: int) -> list[Key]:
    """At most one cut less than `count`, evenly spread over keys in order."""
    wanted = min(count - 1, len(keys))
    return [keys[(number + 1) * len(keys) // (wanted + 1)] for number in range(wanted)] if wanted else []
