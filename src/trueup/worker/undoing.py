"""Taking repairs back: where the target still holds what we wrote, it is given back what it was before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueup.artifacts import repair_key
from trueup.compare import Key, as_compared
from trueup.errors import ArtifactError
from trueup.model.base import sha256
from trueup.model.compared import Compared
from trueup.model.plan import Partition
from trueup.model.reconcile_report import ObjectLine
from trueup.model.repair import (
    INVERSE,
    UNDO_GATE,
    Action,
    RepairItem,
    RepairOutcome,
    RepairReport,
    UndoItem,
    Verification,
)
from trueup.model.states import Phase
from trueup.worker.repairing import Intent, Repair, as_line, only
from trueup.worker.verifying import Touched, Verify


class Undo(Repair):
    """What a task does that takes repairs back. The truth is not asked: the row before is wanted."""

    def _approval(self) -> list[ObjectLine]:
        undoes = str(self.run.undoes)
        data = self.tools.artifacts.store.get(repair_key(undoes))
        run = self.tools.ledger.runs.get(self.run.run_id)
        self.tools.ledger.gates.check_passed(run, UNDO_GATE, sha256(data))
        report = RepairReport.model_validate_json(data)
        if (report.run_id, run.undoes) != (undoes, undoes):
            raise ArtifactError(f"The repair is that of run {report.run_id}.", remedy="Start the undo again.")
        return report.objects

    def items(self, part: Partition) -> Iterator[RepairItem]:
        """The items that were applied, each with the row that was written and the row before it.

        Those too whose outcome was never told: where the target holds what they intended, it is our write.
        """
        at = 0
        mine = [one for one in self.approved if one.partition_id == part.id and one.phase is Phase.REPAIR]
        intents: dict[int, Any] = {}
        for number, one in enumerate(mine, 1):
            items: list[UndoItem] = []
            for line in map(json.loads, self._object(one.location, one.sha256).splitlines()):
                if "outcome" not in line:
                    intents[line["at"]] = line
                    continue
                before = intents.pop(line["at"], None)
                if line["outcome"] == RepairOutcome.APPLIED:
                    items.append(_item(at + len(items), before))
            if number == len(mine):
                untold = [line for line in intents.values() if line["intent"] is not None]
                items += [_item(at + len(items) + n, line) for n, line in enumerate(untold)]
            at += len(items)
            self._keep(part, number - 1, items)
            yield from items

    def truth_of(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """Nothing: it is not asked, and need not be there any more."""
        return {}

    def intent(self, item: RepairItem, truth: bytes | None, target: bytes | None) -> Intent:
        """What is intended: the row before, where the target still holds what we wrote."""
        assert isinstance(item, UndoItem)
        if not self._holds(target, as_line(item.wrote)):
            return Intent(item, stale=RepairOutcome.STALE_TARGET)
        return Intent(item, before=target, wanted=as_line(item.before))

    def is_stale(self, item: RepairItem, truth: bytes | None) -> bool:
        """Never: whatever the truth says by now, what is taken back is our own write."""
        return False


def _item(at: int, line: Mapping[str, Any]) -> UndoItem:
    return UndoItem(
        at=at,
        key=tuple(line["key"]),
        action=INVERSE[Action(line["action"])],
        wrote=line["intent"]["wanted"],
        before=line["intent"]["before"],
    )


@dataclass(frozen=True, slots=True)
class Restored(Touched):
    """A row that was given back what it was."""

    wanted: str | None

    def document(self, verification: Verification) -> dict[str, Any]:
        """The line of it."""
        # Zero arguments would name the class that `slots` replaced.
        return {**Touched.document(self, verification), "wanted": self.wanted}


class VerifyUndo(Verify):
    """What a task reads that looks again at what was taken back."""

    def first(self, before: Compared) -> Iterator[Restored]:
        """What was applied."""
        intents: dict[int, Any] = {}
        for line in self._lines(before):
            if "outcome" not in line:
                intents[line["at"]] = line["intent"]
                continue
            intent = intents.pop(line["at"], None)
            if line["outcome"] == RepairOutcome.APPLIED:
                yield self.left({**line, "wanted": self._compared_part(as_line(intent["wanted"]))})

    def left(self, line: Mapping[str, Any]) -> Restored:
        """From a line of either phase."""
        return Restored(tuple(line["key"]), Action(line["action"]), line["wanted"])

    def differing(self, chunk: list[Any]) -> set[Key]:
        """The keys of which the target does not hold what was given back."""
        sides = self.sides
        target = as_compared(self.job, sides.truth, sides.target, sides.fold)[1].fetch(
            [one.key for one in chunk]
        )
        return {one.key for one in chunk if self._compared_part(only(target.get(one.key, ()))) != one.wanted}

    def _compared_part(self, line: bytes | None) -> str | None:
        """The hash of what is compared of a row: so no value is in what is left of a look."""
        if line is None:
            return None
        sides = self.sides
        columns = as_compared(self.job, sides.truth, sides.target, sides.fold)[0].layout.columns
        fields = [field for column, field in zip(columns, line.split(b"\t"), strict=False) if column.compared]
        return sha256(b"\t".join(fields))
