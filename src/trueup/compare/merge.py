"""The comparer: two streams of canonical lines, merged by key.

Where both sides give the same bytes, a stretch costs a comparison of memory and no loop over its rows. Only
around differences are rows looked at one by one, and only rows that differ are taken apart into columns.
Nothing accumulates: findings leave in steps, and counters are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from trueup.compare.findings import Counts, Difference, Finding, Kind, fingerprint
from trueup.compare.layout import Key, Layout
from trueup.compare.lines import UNREADABLE, is_unreadable
from trueup.compare.streams import Lines, common_prefix
from trueup.compare.values import differences
from trueup.model.reconcile import Side

__all__ = ["Step", "compare"]

FINDINGS_A_STEP = 1_000
ROWS_A_STEP = 200_000  # of both sides together
# After a difference so many rows must match before a stretch is tried again: a vain try costs as much.
_CALM = 16


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a comparison found: all keys up to `cursor` are done on both sides.

    `counts` are the step's own. `cursor` is None where the step met no key.
    """

    findings: tuple[Finding, ...]
    counts: Counts
    cursor: Key | None


def compare(
    truth: Iterable[bytes],
    target: Iterable[bytes],
    layout: Layout,
    *,
    as_of: datetime | None = None,
    proved: bool = False,
    permitted: frozenset[Kind] = frozenset(),
) -> Iterator[Step]:
    """Merge two sides, each blocks of whole lines in ascending order of their keys.

    `proved`: at least one side is known to have ascending keys, each once; otherwise that is looked at in
    every stretch. A side that is not in order ends the comparison with a finding UNSORTED.
    Rows of which either version is later than `as_of` are marked as newer.
    Kinds that are `permitted` are counted and not reported.
    """
    merge = _Merge(Lines(truth, layout), Lines(target, layout), layout, as_of)
    merge.proved, merge.permitted = proved, permitted
    return merge.steps()


class _Merge:
    proved = False
    permitted: frozenset[Kind] = frozenset()

    def __init__(self, truth: Lines, target: Lines, layout: Layout, as_of: datetime | None) -> None:
        self._truth = truth
        self._target = target
        self._layout = layout
        self._as_of = as_of
        self._differences = differences(layout)
        self._calm = _CALM
        self._counts = Counts()
        self._findings: list[Finding] = []
        self._last: bytes | None = None
        self._told = (0, 0)

    def steps(self) -> Iterator[Step]:
        truth, target = self._truth, self._target
        while truth.line is not None or target.line is not None:
            if truth.unsorted or target.unsorted:
                self._stop()
                break
            if self._calm < _CALM or not self._pass_equal_stretch():
                self._merge_row()
            rows = truth.rows + target.rows - sum(self._told)
            if len(self._findings) >= FINDINGS_A_STEP or rows >= ROWS_A_STEP:
                yield self._step()
        yield self._step()

    def _step(self) -> Step:
        counts = self._counts
        rows = (self._truth.rows, self._target.rows)
        counts.truth_rows, counts.target_rows = rows[0] - self._told[0], rows[1] - self._told[1]
        cursor = None if self._last is None else self._layout.key_of(self._last)
        step = Step(tuple(self._findings), counts, cursor)
        self._told, self._counts, self._findings = rows, Counts(), []
        return step

    def _pass_equal_stretch(self) -> bool:
        """Pass the lines from here on that are the same bytes on both sides, all but the last.

        The last stays to be merged as a row, because its key may go on in what follows.
        """
        truth, target = self._truth, self._target
        if truth.order is None or target.order is None:
            return False
        block, start = truth.block, truth.start
        same = common_prefix(block, start, target.block, target.start)
        end = block.rfind(b"\n", start, start + same) + 1
        last = block.rfind(b"\n", start, max(end - 1, start)) + 1
        if last <= start:
            if same < min(len(block) - start, len(target.block) - target.start):
                self._calm = 0
            return False
        lines = block[start:end]
        rows = lines.count(b"\n") - 1
        if is_unreadable(lines) or not (self.proved or self._layout.ascends(lines)):
            self._calm = _CALM - rows  # row by row, which names what is wrong
            return False
        self._last = block[block.rfind(b"\n", start, last - 1) + 1 or start : last - 1]
        truth.jump(last - start, rows)
        target.jump(last - start, rows)
        self._counts.matched += rows
        return True

    def _merge_row(self) -> None:
        truth, target = self._truth, self._target
        for side, lines in ((Side.TRUTH, truth), (Side.TARGET, target)):
            if lines.line is not None and lines.order is None:
                return self._unkeyed(side, lines)
            if lines.again:
                return self._again(side, lines)
        ours, theirs = truth.order, target.order
        if ours is not None and ours == theirs:
            return self._both(truth, target)
        if theirs is None or (ours is not None and ours < theirs):
            return self._one(Side.TRUTH, truth)
        return self._one(Side.TARGET, target)

    def _both(self, truth: Lines, target: Lines) -> None:
        ours, theirs = truth.line or b"", target.line or b""
        self._last = ours
        rows, other_rows = truth.take(), target.take()
        if rows > 1 or other_rows > 1:
            return self._duplicate(ours, rows, other_rows)
        if ours == theirs and not is_unreadable(ours):
            self._counts.matched += 1
            self._calm += 1
            return None
        found = self._differences(ours, theirs)
        if not found:
            self._counts.matched += 1
            self._calm = 0
            return None
        return self._differ(ours, theirs, found)

    def _differ(self, ours: bytes, theirs: bytes, found: tuple[Difference, ...]) -> None:
        if any(UNREADABLE in (one.truth[:2], one.target[:2]) for one in found):
            kind = Kind.UNREADABLE
            self._counts.unreadable += 1
        else:
            kind = Kind.MISMATCHED
            self._counts.mismatched += 1
        self._find(kind, ours, theirs, found)

    def _one(self, side: Side, lines: Lines) -> None:
        """A key that only one side has."""
        line = lines.line or b""
        self._last = line
        rows = lines.take()
        if rows > 1:
            return self._duplicate(line, *((rows, 0) if side is Side.TRUTH else (0, rows)))
        if side is Side.TRUTH:
            self._counts.missing += 1
            return self._find(Kind.MISSING, line, None)
        self._counts.extra += 1
        return self._find(Kind.EXTRA, None, line)

    def _find(
        self, kind: Kind, ours: bytes | None, theirs: bytes | None, found: tuple[Difference, ...] = ()
    ) -> None:
        self._calm = 0
        if kind in self.permitted:
            return
        lines = [line for line in (ours, theirs) if line is not None]
        newer = self._as_of is not None and any(self._is_newer(line) for line in lines)
        self._counts.newer += newer
        truth, target = (None if line is None else fingerprint(line) for line in (ours, theirs))
        self._findings.append(Finding(kind, self._layout.key_of(lines[0]), truth, target, found, newer))

    def _is_newer(self, line: bytes) -> bool:
        version = self._layout.version_of(line)
        return version is not None and self._as_of is not None and version > self._as_of

    def _duplicate(self, line: bytes, truth_rows: int, target_rows: int) -> None:
        self._calm = 0
        self._counts.duplicates += 1
        self._counts.truth_duplicate_rows += truth_rows
        self._counts.target_duplicate_rows += target_rows
        detail = f"{truth_rows} rows in truth, {target_rows} in target"
        self._findings.append(Finding(Kind.DUPLICATE, self._layout.key_of(line), detail=detail))

    def _again(self, side: Side, lines: Lines) -> None:
        """More rows of a key that was done, after one that could not be read."""
        line = lines.line or b""
        rows = lines.take()
        self._duplicate(line, *((rows, 0) if side is Side.TRUTH else (0, rows)))

    def _unkeyed(self, side: Side, lines: Lines) -> None:
        text = self._layout.why_unkeyed(lines.line or b"")
        lines.advance()
        if side is Side.TRUTH:
            self._counts.truth_unkeyed += 1
        else:
            self._counts.target_unkeyed += 1
        self._findings.append(Finding(Kind.UNREADABLE, None, detail=text, side=side))

    def _stop(self) -> None:
        side, lines = (Side.TRUTH, self._truth) if self._truth.unsorted else (Side.TARGET, self._target)
        self._counts.unsorted += 1
        self._findings.append(
            Finding(
                Kind.UNSORTED,
                self._layout.key_of(lines.line or b""),
                detail="its key is lower than that of the row before it; what follows was not compared",
                side=side,
            )
        )
