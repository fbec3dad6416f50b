"""Comparing a source of truth with what is derived from it: pure, streaming, exact.

Sources give rows as canonical lines of bytes in the order of their keys (`lines`, `canonical`, `sorting`);
`merge` compares two such streams; `folding` and `invariants` make the five invariants of it; `confirming`
tells what was in flight from what is real; `judging` says what it comes to.
"""

from trueup.compare.canonical import Missing, reader
from trueup.compare.columns import ReadAll, column_reader
from trueup.compare.confirming import confirm
from trueup.compare.findings import Counts, Difference, Finding, Kind, State, Verdict, fingerprint, json_lines
from trueup.compare.folding import Fold, FoldHook, row_document
from trueup.compare.invariants import Summary, as_compared, examine, look_again, plan, reconcile
from trueup.compare.judging import Judgement, judge
from trueup.compare.layout import Key, Layout, Span
from trueup.compare.merge import Step, compare
from trueup.compare.sorting import external_sort, in_blocks
from trueup.compare.source import Applied, Change, Repairable, Scan, Source, in_order

__all__ = [
    "Applied",
    "Change",
    "Counts",
    "Difference",
    "Finding",
    "Fold",
    "FoldHook",
    "Judgement",
    "Key",
    "Kind",
    "Layout",
    "Missing",
    "ReadAll",
    "Repairable",
    "Scan",
    "Source",
    "Span",
    "State",
    "Step",
    "Summary",
    "Verdict",
    "as_compared",
    "column_reader",
    "compare",
    "confirm",
    "examine",
    "external_sort",
    "fingerprint",
    "in_blocks",
    "in_order",
    "json_lines",
    "judge",
    "look_again",
    "plan",
    "reader",
    "reconcile",
    "row_document",
]
