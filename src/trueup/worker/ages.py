"""Since when a finding has been there: what earlier runs confirmed, read beside it in the order of keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from trueup.artifacts import Artifacts, comparison_key, plan_key
from trueup.artifacts.findings import listed, standing
from trueup.compare import Finding, Key, Layout, Span, external_sort
from trueup.compare.lines import escape, unescape
from trueup.errors import ArtifactError
from trueup.model.compared import FindingsObject
from trueup.model.history import EarlierRun
from trueup.model.reconcile_report import AGE_NAMES, ObjectList, ReconcileReport
from trueup.model.states import Phase
from trueup.worker.comparing import span_of

_ENDS = dict(zip(AGE_NAMES[1:], (*map(timedelta, (1, 7, 30, 90)), timedelta.max), strict=True))

Same = tuple[str, tuple[str, ...]]
"""What makes two findings of one key the same: the class, and the columns that differ."""


def instant(at: datetime) -> str:
    """An instant to the second, so that texts compare as instants do."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def age_of(first_seen: str, now: datetime) -> str:
    """How old a finding is at an instant, which is "new" where it is seen first then."""
    if first_seen == instant(now):
        return AGE_NAMES[0]
    age = now - datetime.fromisoformat(first_seen)
    return next(name for name, end in _ENDS.items() if age < end)


@dataclass(frozen=True)
class Earlier:
    """The confirmed findings of an earlier run, as its report names them by their hashes."""

    artifacts: Artifacts
    run: EarlierRun
    layout: Layout

    @cached_property
    def _report(self) -> ReconcileReport:
        data = self.artifacts.check(comparison_key(self.run.run_id, "json"), self.run.sha256)
        return ReconcileReport.model_validate_json(data)

    @cached_property
    def _parts(self) -> list[tuple[Span, ObjectList]]:
        """What lies where: its partitions may be others than today's."""
        plan = self.artifacts.plan(plan_key(self.run.run_id), self._report.plan_sha256)
        lists = {one.partition_id: one for one in self._report.lists if one.phase is Phase.CONFIRM}
        parts = self.artifacts.partitions(plan.partitions)
        return [(span_of(part), lists[part.id]) for part in parts if part.id in lists]

    def blocks(self, span: Span, watch: Callable[[], None]) -> Iterator[bytes]:
        """Its findings in a span of keys as lines: the fields of the key, then what is to be known of one.

        They are in no order: each look wrote its own. Raises ArtifactError.
        """
        inside = self.layout.within(span)
        for there, found in self._parts:
            if not _overlap(self.layout, there, span):
                continue
            for one in listed(self.artifacts, found):
                watch()
                lines = [line for line in self._lines(one) if inside(self.layout.order_of(line))]
                yield b"".join(line + b"\n" for line in lines)

    def _lines(self, there: FindingsObject) -> Iterator[bytes]:
        first = instant(self._report.created_at)
        for found in standing(self.artifacts, there):
            names = sorted(one["name"] for one in found.get("fields", ()))
            # Runs from before there were ages say nothing: since that run, then.
            known = json.dumps([found["kind"], names, found.get("firstSeen", first)]).encode()
            yield b"\t".join(map(escape, [*(_text(part) for part in found["key"]), known]))


def _text(part: str) -> bytes:
    return part.encode("utf-8", "surrogateescape")


def _overlap(layout: Layout, one: Span, other: Span) -> bool:
    return _begins_before(layout, one.low, other.high) and _begins_before(layout, other.low, one.high)


def _begins_before(layout: Layout, low: Key | None, high: Key | None) -> bool:
    """Whether a range that begins with `low` reaches into one that ends before `high`.

    Both may be the first columns of a key, which come before all keys that go on from there, as tuples do.
    """
    if low is None or high is None:
        return True
    return bool(layout.order_of_key(low) < layout.order_of_key(high))


class Ages:
    """Says since when findings have been there, which are asked about in the order of their keys.

    What is found now first has been there since `now`. `unread` says why the earlier findings are not known.
    """

    def __init__(
        self,
        earlier: Iterable[Earlier],
        layout: Layout,
        span: Span,
        now: datetime,
        watch: Callable[[], None],
        unread: str = "",
    ) -> None:
        self.unread = unread
        self._layout = layout
        self._now = now
        blocks = (block for one in earlier for block in one.blocks(span, watch) if block)
        self._blocks = external_sort(blocks, layout)
        self._lines = (line for block in self._blocks for line in block.removesuffix(b"\n").split(b"\n"))
        self._head: tuple[object, Same, str] | None = None
        self._begun = False

    def close(self) -> None:
        """Leave no file behind."""
        self._blocks.close()

    def first_seen(self, finding: Finding) -> str:
        """Since when a finding has been there; asked in the order of keys. Raises StoreUnavailable."""
        same = (finding.kind.value, tuple(sorted(one.name for one in finding.differences)))
        assert finding.key is not None, "only keys are looked at again"
        try:
            seen = [first for other, first in self._at(finding.key) if other == same]
        except ArtifactError as gone:
            self.unread, seen = str(gone), []
        return min([*seen, instant(self._now)])

    def _at(self, key: Key) -> list[tuple[Same, str]]:
        if self.unread:
            return []
        if not self._begun:
            self._begun = True
            self._advance()
        order, found = self._layout.order_of_key(key), []
        while self._head is not None and self._head[0] < order:
            self._advance()
        while self._head is not None and self._head[0] == order:
            found.append(self._head[1:])
            self._advance()
        return found

    def _advance(self) -> None:
        line = next(self._lines, None)
        if line is None:
            self._head = None
            return
        kind, names, first = json.loads(unescape(line.rpartition(b"\t")[2]))
        self._head = self._layout.order_of(line), (kind, tuple(names)), first
