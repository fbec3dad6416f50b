"""The second look: what was in flight, and what is real."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from trueup.compare.findings import Finding, State
from trueup.compare.layout import Key, Layout
from trueup.compare.merge import compare
from trueup.compare.sorting import in_blocks

__all__ = ["confirm"]

Rows = Mapping[Key, Sequence[bytes]]


def confirm(
    candidates: Sequence[Finding], truth: Rows, target: Rows, layout: Layout, as_of: datetime | None = None
) -> Iterator[Finding]:
    """Candidates with what a second look at both sides says of each: CONFIRMED, RESOLVED or MOVING.

    `truth` and `target` are the lines of the candidates' keys as they are now, at least the declared lag
    after they were found; a key that is not there has no row. Each candidate comes out once, in the order
    of their keys; a MOVING one comes as it is now, so that the next look compares with this one.
    Rows that changed after `as_of` are moving, whatever they say. Findings without a key are handed on.
    """
    now = {finding.key: finding for finding in _looked_at(candidates, truth, target, layout, as_of)}
    for candidate in candidates:
        if candidate.key is None:
            yield candidate
            continue
        found = now.get(candidate.key)
        if found is None:
            yield candidate.settled(State.RESOLVED)
        elif found.newer or _pair(found) != _pair(candidate):
            yield found.settled(State.MOVING)
        else:
            yield found.settled(State.CONFIRMED)


def _pair(finding: Finding) -> tuple[object, ...]:
    return finding.kind, finding.truth, finding.target, finding.detail


def _looked_at(
    candidates: Iterable[Finding], truth: Rows, target: Rows, layout: Layout, as_of: datetime | None
) -> Iterator[Finding]:
    keys = sorted({one.key for one in candidates if one.key is not None}, key=layout.order_of_key)
    for step in compare(_blocks(keys, truth), _blocks(keys, target), layout, as_of=as_of):
        yield from step.findings


def _blocks(keys: Sequence[Key], rows: Rows) -> Iterator[bytes]:
    return in_blocks(line for key in keys for line in rows.get(key, ()))
