"""The phase `repair`: what was approved is done, row by row, where both sides are still as they were signed.

A chunk of items is worked in two checkpoints. The first holds what is intended with the rows as they were,
stored before anything is written; the second what became of each item. Who dies in between leaves the intent
on record: its successor finds the row as intended and knows whose write that was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from trueup.artifacts import comparison_key, repair_plan_key
from trueup.artifacts.findings import lines_of
from trueup.artifacts.store import place as place_of
from trueup.compare import Applied, Change, Key, as_compared, fingerprint, row_document
from trueup.errors import ArtifactError, ArtifactExists, GateRefused, JobError, SourceError, UsageError
from trueup.jobs import Outcome, overrides
from trueup.model.base import sha256
from trueup.model.compared import Compared, FindingsObject
from trueup.model.plan import Partition
from trueup.model.reconcile_report import ObjectList, ReconcileReport
from trueup.model.repair import RepairItem, RepairOutcome, deletes, gate_of, planned
from trueup.model.states import Phase
from trueup.worker.batches import Figures, Worked, WorkedBatch
from trueup.worker.comparing import Comparison
from trueup.worker.intents import Done, Intent, Progress
from trueup.worker.telling import told

AT_ONCE = 250
"""Items between two checkpoints, and between the reading of both sides and the write at most.

A chunk costs some 0.15 s beside its writes, for two objects, two checkpoints and reading both sides twice. Of
50 items that halves the pace where a write takes 2 ms; of 250 it is a quarter, and more would gain little:
but more to try again after a kill, and more that others change between the reading and the write.
"""
FIRST_CHUNK = 10
"""Nothing is known of how large rows are before some were read."""
CHUNK_BYTES = 4 * 2**20
"""Of the rows before and after, as of other objects of findings: a task holds a chunk several times over."""
TRIPPED = "the repair stopped: too many items were stale or failed"
_O = RepairOutcome
_STALE = frozenset({_O.STALE_TRUTH, _O.STALE_TARGET})
_SEVERAL = b"\\?several rows"
"""Stands for a key that is there more than once: it is like no row that was signed."""


class Repair(Comparison):
    """What a task of the phase `repair` does."""

    def open(self) -> None:
        """Open both sides, once the approval was read again. Raises UsageError where there is none."""
        try:
            self.approved = self._approval()
        except GateRefused as refused:
            raise UsageError(str(refused), remedy="Nothing was written.") from refused
        super().open()

    def _approval(self) -> list[ObjectList]:
        """What was approved names, if it is this run's. Raises ArtifactError, NotApproved."""
        settings = self.job.repair
        data = self.tools.artifacts.store.get(comparison_key(self.run.run_id, "json"))
        report = ReconcileReport.model_validate_json(data)
        gate = gate_of(report, settings)
        if gate is None or settings is None:
            raise ArtifactError("The report has nothing to repair.", remedy="It was changed: compare again.")
        run = self.tools.ledger.runs.get(self.run.run_id)
        self.tools.ledger.gates.check_passed(run, gate, sha256(data))
        if (report.run_id, report.plan_sha256) != (run.run_id, run.plan_sha256):
            raise ArtifactError(
                f"The report is that of run {report.run_id} and its plan.", remedy="Compare again."
            )
        self._deletes = deletes(report, settings)
        return report.lists

    def count(self, part: Partition) -> int:
        """How many items there are."""
        return sum(1 for _ in self.items(part))

    def items(self, part: Partition) -> Iterator[RepairItem]:
        """The items of a partition, from the approved report alone; each part of the plan is stored first.

        Raises ArtifactError where an object of findings, or of the plan, is not what it was.
        """
        first = 0
        for number, one in enumerate(self.signed_of(part, Phase.CONFIRM, self.approved)):
            items = list(planned(self.signed(one), deletes=self._deletes, first=first))
            self._keep(part, number, items)
            first += len(items)
            yield from items

    def _keep(self, part: Partition, number: int, items: Sequence[RepairItem]) -> None:
        key = repair_plan_key(self.run.run_id, part.id, number)
        data = b"".join(f"{one.model_dump_json(by_alias=True)}\n".encode() for one in items)
        try:
            self.tools.artifacts.store.put_once(key, data)
        except ArtifactExists as other:
            raise ArtifactError(
                f"{key} is not what the approved report comes to.",
                remedy="Somebody wrote another plan there: find out who; nothing more was written.",
            ) from other

    def signed_of(self, part: Partition, phase: Phase, lists: Iterable[ObjectList]) -> list[FindingsObject]:
        """The objects of a partition, by the lists that were approved. Raises as `signed` does."""
        mine = (one for one in lists if one.partition_id == part.id and one.phase is phase)
        return [there for one in mine for there in Compared.model_validate_json(self._checked(one)).objects]

    def signed(self, one: FindingsObject) -> Iterator[dict[str, Any]]:
        """The lines of an object that what was approved names. Raises ArtifactError where it is another."""
        return map(json.loads, self._checked(one).splitlines())

    def _checked(self, one: ObjectList | FindingsObject) -> bytes:
        remedy = "It was changed after it was signed: nothing is repaired; compare again."
        return self.tools.artifacts.check(place_of(one.location)[1], one.sha256, "as was approved", remedy)

    def read(self, part: Partition, after: str | None) -> Iterator[Any]:
        """The steps of a repair after a cursor; each is done when it is yielded, saved before the next."""
        progress = Progress.read(after)
        if progress.over:
            return
        items = islice(self.items(part), progress.at, None)
        if progress.intended:
            self._beside = self._done_beside(part)
            intents = self._on_record(part, list(islice(items, progress.intended)))
            progress, batch = self._done(progress, intents, again=True)
            yield batch
        size = min(FIRST_CHUNK, AT_ONCE)
        while chunk := list(islice(items, max(1, min(size, self.batch_size)))):
            self._beside = self._done_beside(part)
            if progress.tripped or self._breaker_trips(*self._so_far(progress)):
                left = len(chunk) + sum(1 for _ in items)
                progress = replace(progress, at=progress.at + left, tripped=True)
                yield WorkedBatch(
                    progress.cursor(), Worked(Figures(read=left, skipped=left), {TRIPPED: left})
                )
                break
            intents = self._intents(chunk)
            size = next_size(intents)
            progress = replace(progress, intended=len(chunk))
            yield WorkedBatch(progress.cursor(), Worked(Figures(), {}, [one.document() for one in intents]))
            progress, batch = self._done(progress, intents, again=False)
            yield batch
        yield WorkedBatch(replace(progress, over=True).cursor(), Worked(Figures()))

    def _done_beside(self, part: Partition) -> tuple[int, int]:
        """How many items are in the checkpoints of all other partitions, and how many of them went badly."""
        items = self.tools.ledger.partitions.all(self.run.run_id, Phase.REPAIR)
        beside = [one.counters for one in items if one.partition_id != part.id]
        return sum(one.read for one in beside), sum(one.skipped + one.refused for one in beside)

    def _so_far(self, progress: Progress) -> tuple[int, int]:
        """How many items were done, here and beside this partition, and how many of them badly."""
        items, bad = self._beside
        return progress.at + items, progress.bad + bad

    def _breaker_trips(self, items: int, bad: int) -> bool:
        assert self.job.repair is not None
        return self.job.repair.breaker.trips(items, bad)

    def _on_record(self, part: Partition, items: list[RepairItem]) -> list[Intent]:
        item = self.tools.ledger.partitions.get(self.run.run_id, Phase.REPAIR, part.id)
        wanted = {one.at: one for one in items}
        lines = lines_of(self.tools.artifacts, self.run.run_id, Phase.REPAIR, part.id, item.reject_parts[-1:])
        found = [Intent.read(wanted[line["at"]], line) for line in lines if line["at"] in wanted]
        if [one.item for one in found] != items:
            raise ArtifactError(
                f"The intents of partition {part.id} are not those of its plan.",
                remedy="Their object was changed: look what the target holds before anything else.",
            )
        return found

    def _now(self, keys: list[Key]) -> dict[Key, tuple[bytes | None, bytes | None]]:
        """Both sides of these keys as they are."""
        # The target last: the time between its reading and the write is where others can come in.
        truth, target = self.truth_of(keys), self._target_of(keys)
        return {key: (only(truth.get(key, ())), only(target.get(key, ()))) for key in keys}

    def truth_of(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        """What the truth holds of these keys now."""
        return as_compared(self.job, self.sides.truth, self.sides.target, self.sides.fold)[0].fetch(keys)

    def _target_of(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[bytes]]:
        return as_compared(self.job, self.sides.truth, self.sides.target, self.sides.fold)[1].fetch(keys)

    def _intents(self, chunk: list[RepairItem]) -> list[Intent]:
        now = self._now([one.key for one in chunk])
        return [self.intent(one, *now[one.key]) for one in chunk]

    def intent(self, item: RepairItem, truth: bytes | None, target: bytes | None) -> Intent:
        """What is intended, with both sides as they are now."""
        if self.is_stale(item, truth):
            return Intent(item, stale=_O.STALE_TRUTH)
        if _print(target) != item.target:
            return Intent(item, stale=_O.STALE_TARGET)
        return Intent(item, before=target, wanted=truth)

    def is_stale(self, item: RepairItem, truth: bytes | None) -> bool:
        """Whether the truth is not what was signed."""
        return _print(truth) != item.truth

    def _done(
        self, progress: Progress, intents: list[Intent], *, again: bool
    ) -> tuple[Progress, WorkedBatch]:
        """Do a chunk whose intents are stored. `again`: another task, or a failed try, may have begun."""
        try:
            done = list(self._each(progress, intents, again))
        finally:
            self.sides.let_go()
        left = len(intents) - len(done)
        after = progress.plus(done, left)
        stale = [one for one in done if one.outcome in _STALE]
        refused = sum(one.outcome is _O.FAILED for one in done)
        used = len(done) - len(stale)
        figures = Figures(
            read=len(intents),
            used=used,
            skipped=len(stale) + left,
            produced=used,
            written=used - refused,
            refused=refused,
        )
        reasons = dict(Counter(one.outcome.value for one in stale)) | ({TRIPPED: left} if left else {})
        return after, WorkedBatch(after.cursor(), Worked(figures, reasons, [one.document() for one in done]))

    def _each(self, progress: Progress, intents: list[Intent], again: bool) -> Iterator[Done]:
        """What became of each item; once too much went wrong, of those alone that were done before."""
        now = self._now([one.item.key for one in intents if one.stale is None])
        items, bad = self._so_far(progress)
        for one in intents:
            truth, target = now.get(one.item.key, (None, None))
            if not self._breaker_trips(items, bad):
                done = self._do(one, truth, target, again=again)
                items, bad = items + 1, bad + (done.outcome is not _O.APPLIED)
                yield done
            elif again and one.stale is None and self._holds(target, one.wanted):
                yield Done(one.item, _O.APPLIED)

    def _do(self, intent: Intent, truth: bytes | None, target: bytes | None, *, again: bool) -> Done:
        if intent.stale is not None:
            return Done(intent.item, intent.stale)
        if again and self._holds(target, intent.wanted):
            return Done(intent.item, _O.APPLIED)
        if self.is_stale(intent.item, truth):
            return Done(intent.item, _O.STALE_TRUTH)
        if target != intent.before:
            return Done(intent.item, _O.STALE_TARGET)
        try:
            return self._change(intent)
        except SourceError as refused:
            return Done(intent.item, _O.FAILED, told(refused))

    def _holds(self, line: bytes | None, wanted: bytes | None) -> bool:
        """Whether a row is what is wanted, in the columns that are written."""
        if line is None or wanted is None:
            return line is wanted
        columns = as_compared(self.job, self.sides.truth, self.sides.target, self.sides.fold)[
            0
        ].layout.columns
        fields = zip(columns, line.split(b"\t"), wanted.split(b"\t"), strict=False)
        return all(mine == theirs for column, mine, theirs in fields if column.compared)

    def _change(self, intent: Intent) -> Done:
        if overrides(self._hooks, "repair_one"):
            return self._by_hook(intent)
        target: Any = self.sides.target
        change = Change(intent.item.key, expected=intent.before, wanted=intent.wanted)
        stale = target.apply(change) is Applied.STALE_TARGET
        return Done(intent.item, _O.STALE_TARGET if stale else _O.APPLIED)

    def _by_hook(self, intent: Intent) -> Done:
        """By the owner's write path; what the target holds afterwards is looked at, and not only believed."""
        item = {
            "key": list(intent.item.key),
            "action": intent.item.action.value,
            "values": self._document(intent.wanted),
        }
        outcome: object = self._hooks.repair_one(item, self._document(intent.before))
        if not isinstance(outcome, Outcome) or (
            outcome.written + outcome.unchanged + len(outcome.refused) != 1
        ):
            raise JobError(
                f"repair_one returned {outcome!r}.",
                remedy="Say of the one row: written, unchanged or refused.",
            )
        if outcome.refused:
            return Done(intent.item, _O.FAILED, str(outcome.refused[0][1]))
        if outcome.unchanged:
            return Done(intent.item, _O.STALE_TARGET)
        target = only(self._target_of([intent.item.key]).get(intent.item.key, ()))
        if not self._holds(target, intent.wanted):
            return Done(intent.item, _O.FAILED, "repair_one said written, and the target holds another row")
        return Done(intent.item, _O.APPLIED)

    def _document(self, line: bytes | None) -> dict[str, Any] | None:
        if line is None:
            return None
        layout = as_compared(self.job, self.sides.truth, self.sides.target, self.sides.fold)[0].layout
        return row_document(layout, line.split(b"\t"))

    def ended(self, part: Partition, cursor: str | None) -> Compared:
        """What a repair came to, up to a cursor."""
        progress = Progress.read(cursor)
        states = dict(progress.outcomes)
        if progress.tripped:
            states[f"{TRIPPED} "] = progress.at - sum(states.values())
        return Compared(
            partition_id=part.id, phase=Phase.REPAIR, finished_at=self.tools.clock.now(), states=states
        )


def next_size(intents: Sequence[Intent]) -> int:
    """How many items the next chunk has: as many rows like these as are not too large together."""
    size = sum(one.bytes for one in intents)
    return max(1, min(AT_ONCE, len(intents) * CHUNK_BYTES // max(1, size)))


def only(lines: Any) -> bytes | None:
    """The line of a key; a mark that is like no row where there are several."""
    return None if not lines else bytes(lines[0]) if len(lines) == 1 else _SEVERAL


def _print(line: bytes | None) -> str | None:
    return None if line is None else fingerprint(line)
