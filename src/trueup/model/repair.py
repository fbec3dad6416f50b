"""A repair: what is planned from an approved report, what became of each item, and what is found later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal

from trueup.model.base import Count, Instant, Sha256, Value
from trueup.model.plan import CodeIdentity
from trueup.model.reconcile import RepairSettings
from trueup.model.reconcile_report import ObjectList, ReconcileReport

REPAIR_GATE = "repair"
"""The gate before rows are inserted and updated."""
DELETE_GATE = "repair-and-delete"
"""The gate before rows are deleted, too: its name is what a person has to type."""
UNDO_GATE = "undo"


class Action(StrEnum):
    """What an item does to a row of the target."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


ACTIONS: Mapping[str, Action] = {
    "MISSING": Action.INSERT,
    "MISMATCHED": Action.UPDATE,
    "EXTRA": Action.DELETE,
}


class RepairOutcome(StrEnum):
    """What became of an item."""

    APPLIED = "APPLIED"  # the target holds what was intended, by our own write
    STALE_TRUTH = "STALE_TRUTH"  # the truth is not as it was signed: nothing was changed
    STALE_TARGET = "STALE_TARGET"  # the target is not as it was signed: nothing was changed
    FAILED = "FAILED"  # the target did not take the row
    INTENDED = "INTENDED"  # the run ended before it was told whether the target took the row


SETTLED = (RepairOutcome.APPLIED, RepairOutcome.STALE_TARGET)
"""What an undo has done with a row for good: it was given back, or somebody else had changed it.

Whatever the target holds there later is its owner's, even where it looks like what we wrote.
"""


TOUCHED = frozenset({RepairOutcome.APPLIED, RepairOutcome.INTENDED})
"""Of these the target may hold our write: they are looked at again, and can be taken back."""


class Verification(StrEnum):
    """What a later look says of an item that was applied, or whose outcome nobody told."""

    VERIFIED = "VERIFIED"  # both sides agree
    REAPPEARED = "REAPPEARED"  # they differ again
    UNTOUCHED = "UNTOUCHED"  # they differ still: the row is as it was before it was to be changed


class RepairItem(Value):
    """One row to repair. `truth` and `target` are the fingerprints that were signed, None for no row.

    What the row will hold is what has the fingerprint `truth`: a report shows no value, and needs none.
    """

    at: Count
    key: tuple[str, ...]
    action: Action
    truth: str | None = None
    target: str | None = None


class UndoItem(RepairItem):
    """One repair to take back: the row that was written, and the row before it, as canonical lines."""

    wrote: str | None = None
    before: str | None = None


INVERSE: Mapping[Action, Action] = {
    Action.INSERT: Action.DELETE,
    Action.UPDATE: Action.UPDATE,
    Action.DELETE: Action.INSERT,
}


def planned(findings: Iterable[Mapping[str, Any]], *, deletes: bool, first: int = 0) -> Iterator[RepairItem]:
    """The items of a report's findings: the confirmed ones alone; rows are deleted only where that is said.

    `first` is the place of the first one in its partition.
    """
    at = first
    for one in findings:
        action = ACTIONS.get(one["kind"])
        if one.get("state") != "CONFIRMED" or one.get("again") or one["key"] is None or action is None:
            continue
        if action is Action.DELETE and not deletes:
            continue
        yield RepairItem(
            at=at, key=tuple(one["key"]), action=action, truth=one["truth"], target=one["target"]
        )
        at += 1


class Outcomes:
    """Puts the lines of a partition's repair together: each item with its intent, and what became of it.

    A chunk's intents are stored together, and so are its outcomes: what has none beside others was left.
    """

    def __init__(self) -> None:
        self._intended: dict[int, Mapping[str, Any]] = {}
        self._told = False

    def of(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The items whose outcome is told by these lines, which come after those that were given before."""
        for line in lines:
            if "outcome" in line:
                self._told = True
                yield {**self._intended.pop(line["at"], {}), **line}
                continue
            if self._told:  # another chunk begins
                self._intended, self._told = {}, False
            self._intended[line["at"]] = line

    def untold(self) -> Iterator[dict[str, Any]]:
        """Those that were to be changed and of which nobody told whether they were, so far as was read."""
        for line in () if self._told else self._intended.values():
            if line["intent"] is not None:
                yield {**line, "outcome": RepairOutcome.INTENDED}


def outcomes(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every item of a partition's repair, from all of its lines."""
    found = Outcomes()
    yield from found.of(lines)
    yield from found.untold()


def confirmed(report: ReconcileReport) -> dict[Action, int]:
    """How many confirmed findings of a report there are for each action."""
    found = dict.fromkeys(Action, 0)
    for line in report.states:
        if line.state == "CONFIRMED" and line.kind in ACTIONS:
            found[ACTIONS[line.kind]] += line.findings
    return found


def deletes(report: ReconcileReport, settings: RepairSettings) -> bool:
    """Whether rows are deleted: where the job asks for it, and all of both sides was compared."""
    asked = settings.deletes == "asked" and report.verdict == "DRIFT"
    return asked and confirmed(report)[Action.DELETE] > 0


def gate_of(report: ReconcileReport, settings: RepairSettings | None) -> str | None:
    """The gate that stands before the repair of a report; None where nothing of it is repaired."""
    if settings is None or report.verdict not in ("DRIFT", "INCOMPLETE"):
        return None
    if deletes(report, settings):
        return DELETE_GATE
    found = confirmed(report)
    return REPAIR_GATE if found[Action.INSERT] + found[Action.UPDATE] else None


class OutcomeLine(Value):
    """So many items of an action came to an outcome, or to a verification."""

    outcome: str
    action: Action
    items: Count


RepairVerdict = Literal["REPAIRED", "UNDONE", "REAPPEARED", "UNREPAIRED", "PARTIAL"]


class RepairReport(Value):
    """What a repair came to.

    REPAIRED: every item was applied, is right at a later look, and leaves nothing of the report. REAPPEARED:
    some differ again. UNREPAIRED: none does, and some items were stale or failed, or the repair ended before
    them, or rows differ still that were not to be deleted. PARTIAL: none of that, and something could not be
    compared, so that nobody can say what else differs. UNDONE is what REPAIRED is for a run that takes
    repairs back.
    `subject_sha256` is what was approved: the report's hash, or that of the repair that is undone.
    """

    schema_version: Literal[1] = 1
    run_id: str
    job: str
    verdict: RepairVerdict
    reasons: list[str]
    gate: str
    approved_by: str
    approved_at: Instant
    subject_sha256: Sha256
    undoes: str | None = None
    plan_sha256: Sha256
    code: CodeIdentity
    finished_at: Instant | None = None
    items: Count
    outcomes: list[OutcomeLine]
    verified: list[OutcomeLine]
    lists: list[ObjectList]

    @property
    def to_undo(self) -> int:
        """How many items an undo has to look at: what was applied, and what may have been."""
        return self._items(*TOUCHED)

    @property
    def settled(self) -> int:
        """Of an undo: how many items another one leaves alone, since they were given back or are not ours."""
        return self._items(*SETTLED)

    def _items(self, *outcomes: RepairOutcome) -> int:
        return sum(one.items for one in self.outcomes if one.outcome in outcomes)

    @property
    def line(self) -> str:
        """The verdict in a line: what speaks against it and, where nothing reappeared, what was seen."""
        told = ": ".join([self.verdict, *self.reasons[:1]])
        if self.verdict not in ("UNREPAIRED", "PARTIAL") or not self.verified:
            return told
        seen: Counter[str] = Counter()
        for one in self.verified:
            seen[one.outcome] += one.items
        return f"{told}; looked at again: " + ", ".join(f"{number} {said}" for said, number in seen.items())
