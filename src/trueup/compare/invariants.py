"""The five invariants on one engine: each makes of its sources two streams of lines that must be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import tee
from pathlib import Path

from trueup.compare.confirming import confirm
from trueup.compare.findings import Counts, Finding
from trueup.compare.folding import Fold, FoldHook
from trueup.compare.judging import Judgement, judge, permitted
from trueup.compare.layout import Key, Layout, Span
from trueup.compare.merge import Step, compare
from trueup.compare.sorting import without_unkeyed
from trueup.compare.source import Scan, Source, in_order
from trueup.errors import TrueupError
from trueup.model.reconcile import (
    Aggregates,
    Column,
    ColumnType,
    Conservation,
    Derived,
    Exists,
    Figure,
)
from trueup.model.reconcile_job import Reconciliation

__all__ = ["Folded", "Plan", "Summary", "as_compared", "examine", "look_again", "plan", "reconcile"]

WHOLE = Span()


@dataclass(frozen=True)
class Plan:
    """What is read of each side, and what the lines that are compared look like."""

    compared: Layout
    truth: Layout
    target: Layout | None
    truth_fold: Fold | None = None
    target_fold: Fold | None = None


def plan(job: Reconciliation, fold: FoldHook | None = None) -> Plan:
    """The layouts of a reconciliation; `fold` is the job's own code for a derived value."""
    key = tuple(job.column(name) for name in job.key)
    values = tuple(column for column in job.columns if column.name not in job.key)
    rows = Layout(key, values, job.version)
    invariant = job.invariant
    if isinstance(invariant, Exists):
        kept = tuple(carried(column) for column in values if column.name == job.version)
        rows = Layout(key, kept, job.version)
    if isinstance(invariant, Derived):
        return _derived(rows, invariant, fold)
    if isinstance(invariant, Aggregates):
        return _aggregates(rows, invariant.figures)
    if isinstance(invariant, Conservation):
        figures = {name: Figure(op="sum", of=name) for name in invariant.sums}
        return replace(_aggregates(rows, figures), target=None, target_fold=None)
    return Plan(rows, rows, rows)


def carried(column: Column) -> Column:
    """The column, carried along only."""
    return column.model_copy(update={"compared": False})


def _derived(rows: Layout, invariant: Derived, fold: FoldHook | None) -> Plan:
    of = {column.name: column for column in invariant.events}
    order = tuple(of[name] for name in invariant.order)
    others = tuple(column for column in invariant.events if column.name not in invariant.order)
    events = Layout(rows.key + order, others)
    # What is only carried is nothing that events could give.
    own = None if invariant.figures else fold
    names = {column.name for column in rows.values if column.compared} if own else set(invariant.figures)
    result = Layout(rows.key, tuple(column for column in rows.values if column.name in names))
    return Plan(result, events, result, truth_fold=Fold(events, result, invariant.figures, own))


def _aggregates(rows: Layout, figures: Mapping[str, Figure]) -> Plan:
    needed = {figure.of for figure in figures.values()}
    read = Layout(rows.key, tuple(column for column in rows.values if column.name in needed))
    of = {column.name: column for column in rows.values}
    result = Layout(rows.key, tuple(_figure(name, figure, of) for name, figure in figures.items()))
    fold = Fold(read, result, figures)
    return Plan(result, read, read, fold, fold)


def _figure(name: str, figure: Figure, columns: Mapping[str, Column]) -> Column:
    if figure.of is None:
        return Column(name=name, type=ColumnType.INTEGER)
    return columns[figure.of].model_copy(update={"name": name})


@dataclass(frozen=True)
class Folded:
    """A source whose rows are what a fold makes of another's."""

    source: Source
    fold: Fold
    folder: Path | None = None

    @property
    def layout(self) -> Layout:
        """That of the results."""
        return self.fold.result

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The results whose keys are in the span, each once and in order."""
        scan = self.source.scan(span, as_of)
        blocks = self.fold.blocks(in_order(scan, self.fold.rows, self.folder))
        return Scan(blocks, ordered=True, distinct=True, as_of=scan.as_of)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The results of these keys as their rows are now."""
        found = {key: self.fold.line(rows) for key, rows in self.source.fetch(keys).items()}
        return {key: [line] for key, line in found.items() if line is not None}


@dataclass(frozen=True)
class Zeros:
    """The other side of a conservation: the keys of a source, with zeros."""

    source: Source

    @property
    def layout(self) -> Layout:
        """That of the source."""
        return self.source.layout

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The zeros of those keys that the source has."""
        return {key: [self.line(row) for row in rows] for key, rows in self.source.fetch(keys).items()}

    def blocks(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks with zeros."""
        for block in blocks:
            lines = block.removesuffix(b"\n").split(b"\n")
            yield b"\n".join(map(self.line, lines)) + b"\n"

    def line(self, line: bytes) -> bytes:
        """The same line with zeros, or the line itself where it has no key."""
        keys, zeros = len(self.layout.key), [b"0"] * len(self.layout.values)
        fields = line.split(b"\t")
        return b"\t".join(fields[:keys] + zeros) if len(fields) == keys + len(zeros) else line


def reconcile(
    job: Reconciliation,
    truth: Source,
    target: Source | None,
    span: Span,
    *,
    as_of: datetime | None = None,
    folder: Path | None = None,
    fold: FoldHook | None = None,
    unkeyed: tuple[int, int] = (0, 0),
) -> Iterator[Step]:
    """Compare two sources, which read what `plan(job)` says, over a span of keys; `folder` is for sorting.

    Raises SourceError where a side cannot be read, or gave other than its own count; steps that came before
    stay true. `compare` says what a step is, and `span.resumed(step.cursor)` goes on after one. `fold` is
    the job's own code for a derived value; of each side the first so many rows without a key, `unkeyed`, were
    told before.
    """
    readings = plan(job, fold)
    ours = Folded(truth, readings.truth_fold, folder) if readings.truth_fold else truth
    scan = ours.scan(span, as_of)
    blocks = without_unkeyed(in_order(scan, ours.layout, folder), ours.layout, unkeyed[0])
    if target is None:
        one, other = tee(blocks)
        sides, proved = (one, Zeros(ours).blocks(other)), scan.distinct
    else:
        theirs = Folded(target, readings.target_fold, folder) if readings.target_fold else target
        other_scan = theirs.scan(span, as_of)
        others = in_order(other_scan, theirs.layout, folder)
        sides = (blocks, without_unkeyed(others, theirs.layout, unkeyed[1]))
        proved = scan.distinct or other_scan.distinct
    yield from compare(*sides, readings.compared, as_of=as_of, proved=proved, permitted=permitted(job))


def as_compared(
    job: Reconciliation, truth: Source, target: Source | None, fold: FoldHook | None = None
) -> tuple[Source | Folded, Source | Folded | Zeros]:
    """Both sides, to be fetched as the lines that are compared: folded where the invariant says so."""
    readings = plan(job, fold)
    ours = Folded(truth, readings.truth_fold) if readings.truth_fold else truth
    if target is None:
        return ours, Zeros(ours)
    return ours, Folded(target, readings.target_fold) if readings.target_fold else target


def look_again(
    job: Reconciliation,
    truth: Source,
    target: Source | None,
    candidates: Sequence[Finding],
    as_of: datetime | None = None,
    fold: FoldHook | None = None,
) -> Iterator[Finding]:
    """Candidates of a reconciliation after the lag: see `confirm`. Raises SourceError like `reconcile`."""
    readings = plan(job, fold)
    ours, theirs = as_compared(job, truth, target, fold)
    keys = [one.key for one in candidates if one.key is not None]
    return confirm(candidates, ours.fetch(keys), theirs.fetch(keys), readings.compared, as_of)


@dataclass(frozen=True)
class Summary:
    """A comparison of one span: the counters, the verdict over it, and how far it got."""

    counts: Counts
    judgement: Judgement
    cursor: Key | None


def examine(
    job: Reconciliation,
    truth: Source,
    target: Source | None,
    tell: Callable[[Finding], object],
    span: Span = WHOLE,
    *,
    as_of: datetime | None = None,
    folder: Path | None = None,
) -> Summary:
    """Compare a span from end to end, tell each finding, judge. What cannot be read is an ERROR."""
    counts, cursor, errors = Counts(), None, []
    try:
        for step in reconcile(job, truth, target, span, as_of=as_of, folder=folder):
            counts, cursor = counts.plus(step.counts), step.cursor or cursor
            for finding in step.findings:
                tell(finding)
    except TrueupError as error:
        errors.append(str(error))
    return Summary(counts, judge(job, counts, errors=tuple(errors)), cursor)
