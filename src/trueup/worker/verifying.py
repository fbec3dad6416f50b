"""The phase `verify`: exactly what a repair touched is compared again, at least the lag later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trueup.artifacts.findings import repaired
from trueup.compare import Finding, Key, Kind, State, as_compared, look_again
from trueup.model.base import sha256
from trueup.model.compared import Compared
from trueup.model.ledger import PartitionItem
from trueup.model.plan import Partition
from trueup.model.repair import ACTIONS, TOUCHED, Action, RepairOutcome, Verification, outcomes
from trueup.model.states import Phase
from trueup.worker.batches import Figures, Worked, WorkedBatch
from trueup.worker.confirming import Confirmation, Look
from trueup.worker.intents import as_line
from trueup.worker.repairing import only

_KINDS = {action: Kind(kind) for kind, action in ACTIONS.items()}
_KEPT = ("key", "action", "was", "wanted")
_V = Verification


@dataclass(frozen=True, slots=True)
class Touched:
    """A row that was changed, or may have been, with what is kept of it from one look to the next."""

    key: Key
    action: Action
    line: Mapping[str, Any]

    @property
    def is_untold(self) -> bool:
        """Whether nobody told if it was changed; `was` in its line is then the row before."""
        return "was" in self.line


class Verify(Confirmation):
    """What a task of the phase `verify` reads: what differs is looked at again, as often as the job says."""

    phase, earlier = Phase.VERIFY, Phase.REPAIR

    def count(self, part: Partition) -> int:
        """How many items were touched, as the repair counted them."""
        states = self._before(part).states
        return sum(number for name, number in states.items() if name.partition(" ")[0] in TOUCHED)

    def compared(self, item: PartitionItem) -> Compared | None:
        """What the repair of a partition left, also where it did not get to its end."""
        return repaired(self.tools.artifacts, self.run.run_id, self.earlier, item)

    def first(self, before: Compared) -> Iterator[Touched]:
        """What was touched: where a repair came to its end, what nobody told of was left by the breaker."""
        for item in outcomes(self._lines(before)):
            if item["outcome"] in TOUCHED and f"{item['outcome']} {item['action']}" in before.states:
                yield self.left(self.remembered(item))

    def remembered(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """What a look keeps of an item: hashes, and no value."""
        line = {"key": item["key"], "action": item["action"]}
        if item["outcome"] == RepairOutcome.INTENDED:
            return {**line, "was": self.hash_of(as_line(item["intent"]["before"]))}
        return line

    def left(self, line: Mapping[str, Any]) -> Touched:
        """From what a look kept."""
        kept = {name: line[name] for name in _KEPT if name in line}
        return Touched(tuple(line["key"]), Action(line["action"]), kept)

    def differing(self, chunk: list[Touched]) -> set[Key]:
        """The keys on which both sides differ now."""
        sides = self.sides
        candidates = [Finding(_KINDS[one.action], one.key) for one in chunk]
        found = look_again(self.job, sides.truth, sides.target, candidates, None, sides.fold)
        return {one.key for one in found if one.key is not None and one.state is not State.RESOLVED}

    def not_holding(self, rows: Mapping[Key, str | None]) -> set[Key]:
        """The keys of which the target does not hold the row with this hash."""
        if not rows:
            return set()
        sides = self.sides
        target = as_compared(self.job, sides.truth, sides.target, sides.fold)[1].fetch(list(rows))
        return {key for key, wanted in rows.items() if self.hash_of(only(target.get(key, ()))) != wanted}

    def hash_of(self, line: bytes | None) -> str | None:
        """The hash of what is compared of a row: so no value is in what is left of a look."""
        if line is None:
            return None
        sides = self.sides
        columns = as_compared(self.job, sides.truth, sides.target, sides.fold)[0].layout.columns
        fields = [field for column, field in zip(columns, line.split(b"\t"), strict=False) if column.compared]
        return sha256(b"\t".join(fields))

    def _looked(self, look: Look, chunk: list[Touched]) -> tuple[Look, WorkedBatch]:
        said = self._said(chunk)
        wrong = {key for key, verification in said.items() if verification is not _V.VERIFIED}
        moving = wrong if look.number < self.job.looks else set()
        lines, states = [], Counter(look.states)
        for one in chunk:
            line = {**one.line, "verification": said[one.key], "look": look.number}
            if one.key in moving:
                line["again"] = True
            else:
                states[f"{said[one.key]} {one.action}"] += 1
            lines.append(line)
        final = len(chunk) - len(moving)
        reappeared = 0 if moving else sum(one is _V.REAPPEARED for one in said.values())
        after = replace(look, at=look.at + len(chunk), moving=look.moving + len(moving), states=dict(states))
        figures = Figures(read=final, used=final, produced=reappeared, unchanged=reappeared)
        return after, WorkedBatch(after.cursor(), Worked(figures, {}, lines))

    def _said(self, chunk: list[Touched]) -> dict[Key, Verification]:
        """What is to be said of each row, if this is the last look at it."""
        wrong = self.differing(chunk)
        untold = {one.key: one.line["was"] for one in chunk if one.is_untold and one.key in wrong}
        untouched = untold.keys() - self.not_holding(untold)
        said = {one.key: _V.REAPPEARED if one.key in wrong else _V.VERIFIED for one in chunk}
        return said | dict.fromkeys(untouched, _V.UNTOUCHED)
