"""The phase `verify`: exactly what a repair touched is compared again, at least the lag later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trueup.compare import Finding, Key, Kind, State, look_again
from trueup.model.compared import Compared
from trueup.model.plan import Partition
from trueup.model.repair import ACTIONS, Action, RepairOutcome, Verification
from trueup.model.states import Phase
from trueup.worker.batches import Figures, Worked, WorkedBatch
from trueup.worker.confirming import Confirmation, Look

_KINDS = {action: Kind(kind) for kind, action in ACTIONS.items()}
_APPLIED = RepairOutcome.APPLIED


@dataclass(frozen=True, slots=True)
class Touched:
    """A row that was changed."""

    key: Key
    action: Action

    def document(self, verification: Verification) -> dict[str, Any]:
        """The line of it."""
        return {"key": list(self.key), "action": self.action, "verification": verification}


class Verify(Confirmation):
    """What a task of the phase `verify` reads: what differs is looked at again, as often as the job says."""

    phase, earlier = Phase.VERIFY, Phase.REPAIR

    def count(self, part: Partition) -> int:
        """How many items were applied, as the repair counted them."""
        states = self._before(part).states
        return sum(number for name, number in states.items() if name.startswith(f"{_APPLIED} "))

    def first(self, before: Compared) -> Iterator[Touched]:
        """What was applied."""
        for line in self._lines(before):
            if line.get("outcome") == _APPLIED:
                yield self.left(line)

    def left(self, line: Mapping[str, Any]) -> Touched:
        """From a line of either phase."""
        return Touched(tuple(line["key"]), Action(line["action"]))

    def differing(self, chunk: list[Touched]) -> set[Key]:
        """The keys on which both sides differ now."""
        sides = self.sides
        candidates = [Finding(_KINDS[one.action], one.key) for one in chunk]
        found = look_again(self.job, sides.truth, sides.target, candidates, None, sides.fold)
        return {one.key for one in found if one.key is not None and one.state is not State.RESOLVED}

    def _looked(self, look: Look, chunk: list[Touched]) -> tuple[Look, WorkedBatch]:
        differing = self.differing(chunk)
        is_last = look.number >= self.job.looks
        lines, states, again = [], Counter(look.states), 0
        for one in chunk:
            is_wrong = one.key in differing
            verification = Verification.REAPPEARED if is_wrong else Verification.VERIFIED
            line = {**one.document(verification), "look": look.number}
            if is_wrong and not is_last:
                lines.append({**line, "again": True})
                again += 1
                continue
            lines.append(line)
            states[f"{verification} {one.action}"] += 1
        final = len(chunk) - again
        wrong = 0 if not is_last else len(differing)
        after = replace(look, at=look.at + len(chunk), moving=look.moving + again, states=dict(states))
        figures = Figures(read=final, used=final, produced=wrong, unchanged=wrong)
        return after, WorkedBatch(after.cursor(), Worked(figures, {}, lines))
