"""The two sides of a reconciliation as a task reads them: opened, watched, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from trueup.compare import Applied, Change, FoldHook, Key, Layout, Scan, Source, Span, plan
from trueup.errors import JobError, SourceError
from trueup.jobs import Reconcile, overrides
from trueup.model.compared import Covered
from trueup.model.reconcile import Side
from trueup.model.reconcile_job import Reconciliation
from trueup.worker.tools import Tools

__all__ = ["Sides", "open_sides"]


@dataclass(slots=True)
class Sides:
    """Both sides; `covered` says of each how far its last scan got, and what it was counted to be."""

    job: Reconciliation
    truth: Source
    target: Source | None
    fold: FoldHook | None
    covered: dict[Side, Covered] = field(default_factory=dict)

    def as_of(self, now: datetime) -> datetime:
        """The instant whose state is compared: the lag before now, or what a picture shows that is older."""
        moments = [now - timedelta(seconds=self.job.lag)]
        for source in (self.truth, self.target):
            taken: Callable[[], datetime] | None = getattr(source, "taken", None)
            if taken is not None:
                moments.append(taken())
        return min(moments)

    def let_go(self) -> None:
        """Have the target give back what it keeps between two changes."""
        close: Callable[[], None] | None = getattr(self.target, "close", None)
        if close is not None:
            close()


def open_sides(job: Reconciliation, hooks: Reconcile, tools: Tools, watch: Callable[[], None]) -> Sides:
    """The sides of a job whose parameters are filled in; `watch` is called at each block that is read.

    Raises JobError where a secret is not there.
    """
    opener = tools.sources or _opener()
    fold = hooks.fold if overrides(hooks, "fold") else None
    readings = plan(job, fold)
    layouts: Mapping[Side, Layout | None] = {Side.TRUTH: readings.truth, Side.TARGET: readings.target}
    covered: dict[Side, Covered] = {}
    opened: dict[Side, Any] = {}
    for side, layout in layouts.items():
        spec = job.source(side)
        if spec is None or layout is None:
            opened[side] = None
            continue
        source = opener(spec, layout, side, tools.secret, _normalise(hooks, side))
        watched = _WatchedPicture if hasattr(source, "taken") else _Watched
        opened[side] = watched(source, side, covered, watch)
    return Sides(job, opened[Side.TRUTH], opened[Side.TARGET], fold, covered)


def _opener() -> Any:
    from trueup.sources.opening import open_source  # with AWS, which a test has no need of

    return open_source


def _normalise(hooks: Reconcile, side: Side) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
    if not overrides(hooks, "normalise"):
        return None
    return lambda row: hooks.normalise(side.value, row)


@dataclass(frozen=True)
class _Watched:
    """A source that tells of each block, and proves the number of its rows where it knows that."""

    source: Source
    side: Side
    covered: dict[Side, Covered]
    watch: Callable[[], None]

    @property
    def layout(self) -> Layout:
        """That of the source."""
        return self.source.layout

    def scan(self, span: Span, as_of: datetime | None = None) -> Scan:
        """The same rows. SourceError after the last one where the source counts others."""
        scan = self.source.scan(span, as_of)
        return replace(scan, blocks=self._blocks(scan))

    def _blocks(self, scan: Scan) -> Iterator[bytes]:
        rows = 0
        for block in scan.blocks:
            self.watch()
            rows += block.count(b"\n")
            if block:
                yield block
        if scan.counted not in (None, rows):
            raise SourceError(
                f"{rows} rows of the {self.side} were read, and it has {scan.counted} by its own count.",
                remedy="Look whether something hides rows, or an index is broken; then retry the partition.",
            )
        self.covered[self.side] = Covered(rows=rows, counted=scan.counted)

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """The same."""
        self.watch()
        return self.source.fetch(keys)

    def apply(self, change: Change) -> Applied:
        """The same, without a look at who wants to stop: a chunk is done whole.

        Raises JobError where the source cannot be changed.
        """
        made: Callable[[Change], Applied] | None = getattr(self.source, "apply", None)
        if made is None:
            raise JobError(
                f"The {self.side} cannot be changed by trueup.", remedy="Write the job's `repair_one`."
            )
        return made(change)

    def close(self) -> None:
        """Give back what is kept from change to change, where the source keeps something."""
        close: Callable[[], None] | None = getattr(self.source, "close", None)
        if close is not None:
            close()

    def quantiles(self, count: int) -> list[Key]:
        """Keys that cut the rows into so many parts; none where the source cannot say."""
        found: Callable[[int], list[Key]] | None = getattr(self.source, "quantiles", None)
        return [] if found is None else found(count)


@dataclass(frozen=True)
class _WatchedPicture(_Watched):
    """A source that is a picture of an earlier moment."""

    def taken(self) -> datetime:
        """When it was taken."""
        found: datetime = self.source.taken()  # type: ignore[attr-defined]
        return found
