"""Taking repairs back: where the target still holds what we wrote, it is given back what it was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trueup.artifacts import repair_key
from trueup.compare import Key
from trueup.errors import ArtifactError
from trueup.model.base import sha256
from trueup.model.history import EarlierRun
from trueup.model.plan import Partition
from trueup.model.reconcile_report import ObjectList
from trueup.model.repair import (
    INVERSE,
    SETTLED,
    UNDO_GATE,
    Action,
    Outcomes,
    RepairItem,
    RepairOutcome,
    RepairReport,
    UndoItem,
)
from trueup.model.states import Phase
from trueup.worker.intents import Intent, as_line
from trueup.worker.repairing import Repair
from trueup.worker.verifying import Touched, Verify


class Undo(Repair):
    """What a task does that takes repairs back. The truth is not asked: the row before is wanted."""

    def _approval(self) -> list[ObjectList]:
        undoes = str(self.run.undoes)
        data = self.tools.artifacts.store.get(repair_key(undoes))
        run = self.tools.ledger.runs.get(self.run.run_id)
        self.tools.ledger.gates.check_passed(run, UNDO_GATE, sha256(data))
        report = RepairReport.model_validate_json(data)
        if (report.run_id, run.undoes) != (undoes, undoes):
            raise ArtifactError(f"The repair is that of run {report.run_id}.", remedy="Start the undo again.")
        self._earlier = [self._came_to(one) for one in self._plan.earlier]
        return report.lists

    def _came_to(self, one: EarlierRun) -> RepairReport:
        data = self.tools.artifacts.check(repair_key(one.run_id), one.sha256)
        return RepairReport.model_validate_json(data)

    def items(self, part: Partition) -> Iterator[RepairItem]:
        """The items that were applied, each with the row that was written and the row before it.

        Those too whose outcome was never told: where the target holds what they intended, it is our write.
        What an earlier undo has settled is left out.
        """
        at = 0
        settled = [_Settled(one.run_id, self._settled(one, part)) for one in self._earlier]
        for number, lines in enumerate(self._written(part)):
            left = [line for line in lines if not any(one.takes(line["key"]) for one in settled)]
            items = [_item(at + n, line) for n, line in enumerate(left)]
            at += len(items)
            self._keep(part, number, items)
            yield from items
        for one in settled:
            one.must_be_through()

    def _written(self, part: Partition) -> Iterator[list[dict[str, Any]]]:
        """The items that were applied, or may have been, of each object of a repair."""
        mine = self.signed_of(part, Phase.REPAIR, self.approved)
        outcomes = Outcomes()
        for number, one in enumerate(mine, 1):
            told = outcomes.of(self.signed(one))
            written = [line for line in told if line["outcome"] == RepairOutcome.APPLIED]
            yield written if number < len(mine) else [*written, *outcomes.untold()]

    def _settled(self, report: RepairReport, part: Partition) -> Iterator[list[str]]:
        """The keys that an earlier undo has settled, in the order of its items, which is ours."""
        for one in self.signed_of(part, Phase.REPAIR, report.lists):
            for line in self.signed(one):
                if line.get("outcome") in SETTLED:
                    yield line["key"]

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


class _Settled:
    """Goes along the keys that an earlier undo has settled, which come in the order of a repair's items."""

    def __init__(self, run_id: str, keys: Iterator[list[str]]) -> None:
        self._run_id = run_id
        self._keys = keys
        self._next = next(keys, None)

    def takes(self, key: list[str]) -> bool:
        """Whether it settled the item of this key, which comes after those that were asked about before."""
        if key != self._next:
            return False
        self._next = next(self._keys, None)
        return True

    def must_be_through(self) -> None:
        """Raises ArtifactError where it settled what the repair did not do."""
        if self._next is not None:
            raise ArtifactError(
                f"Run {self._run_id} has settled {', '.join(self._next)}, which the repair did not write.",
                remedy="Its objects were changed: look what the target holds before anything else.",
            )


def _item(at: int, line: Mapping[str, Any]) -> UndoItem:
    return UndoItem(
        at=at,
        key=tuple(line["key"]),
        action=INVERSE[Action(line["action"])],
        wrote=line["intent"]["wanted"],
        before=line["intent"]["before"],
    )


class VerifyUndo(Verify):
    """What a task reads that looks again at what was taken back."""

    def remembered(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """What a look keeps of an item, and the row that was given back."""
        return {**super().remembered(item), "wanted": self.hash_of(as_line(item["intent"]["wanted"]))}

    def differing(self, chunk: list[Touched]) -> set[Key]:
        """The keys of which the target does not hold what was given back."""
        return self.not_holding({one.key: one.line["wanted"] for one in chunk})
