"""Checkpoints: take, advance, report, interrupt. One conditional write each, by the task that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trueup.clock import Clock
from trueup.errors import LostOwnership, NotTakable
from trueup.ledger import keys
from trueup.ledger.table import Clause, ConditionFailed, Item, Key, Table, Write
from trueup.model.ledger import Checkpoint, PartitionItem
from trueup.model.result import PartitionResult
from trueup.model.states import TAKABLE, PartitionStatus, Phase

FENCE_EPOCH = 2**32


@dataclass(frozen=True, slots=True)
class Owner:
    """Who works: a task under a launch, in a phase of a run. `epoch` is the lock's, 0 where none is held."""

    run_id: str
    phase: Phase
    launch: int
    task: str
    epoch: int = 0

    @property
    def fence(self) -> int:
        """Grows across the runs on a target, so that a sink can refuse a zombie."""
        return self.epoch * FENCE_EPOCH + self.launch

    def key(self, partition_id: str) -> Key:
        """Where the ledger keeps a partition of this run and phase."""
        return keys.partition(self.run_id, self.phase, partition_id)


@dataclass(frozen=True, slots=True)
class Taken:
    """A partition that was taken, and what it was before: RUNNING means that work may be repeated."""

    item: PartitionItem
    before: PartitionStatus


class Partitions:
    """The PART items. Workers only take, advance, report and interrupt; end states are others' to set."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def get(self, run_id: str, phase: Phase, partition_id: str) -> PartitionItem:
        """The partition as it stands; PENDING where the ledger has nothing."""
        return read(self._table.get(keys.partition(run_id, phase, partition_id)), partition_id)

    def get_many(self, run_id: str, phase: Phase, partition_ids: Sequence[str]) -> dict[str, PartitionItem]:
        """The partitions as they stand, by id, in the order asked for."""
        by_key = {keys.partition(run_id, phase, one): one for one in partition_ids}
        found = self._table.get_many(list(by_key))
        return {one: read(found.get(key), one) for key, one in by_key.items()}

    def all(self, run_id: str, phase: Phase) -> Iterator[PartitionItem]:
        """Every partition that the ledger knows of, shard by shard."""
        for pk in keys.partition_shards(run_id, phase):
            for item in self._table.query(pk, "PART#"):
                yield read(item, item["SK"].removeprefix("PART#"))

    def take(self, owner: Owner, partition_id: str, work: float = 0.0) -> Taken:
        """Become the partition's owner; no clock is asked, the higher launch wins.

        `work` is the plan's estimate, in seconds, for whoever watches.
        Raises NotTakable where it is finished, LostOwnership where a later launch has it.
        """
        write = _take(owner, partition_id, self._now(), round(work * 1000))
        try:
            old = self._table.write(write)
        except ConditionFailed as refusal:
            return _taken_before(owner, partition_id, refusal)
        return Taken(read(write.applied_to(old), partition_id), read(old, partition_id).status)

    def advance(self, owner: Owner, item: PartitionItem, to: Checkpoint) -> PartitionItem:
        """Move cursor and counters together. Raises LostOwnership; then nothing more may be written."""
        return self._move(owner, item, {**_checkpoint(to), "takes": 0, "idle": 0, "tookOver": False})

    def report(self, owner: Owner, item: PartitionItem, entry: PartitionResult) -> PartitionItem:
        """Say that the partition is done, good or bad. Not yet a fact. Raises LostOwnership."""
        error = entry.error and entry.error.document()
        sets = {"status": PartitionStatus.REPORTED.value, "entry": entry.document(), "error": error}
        return self._move(owner, item, sets)

    def interrupt(
        self, owner: Owner, item: PartitionItem, reason: str, *, took_over: bool = False
    ) -> PartitionItem:
        """Leave early with the cursor saved. It costs no take: it came from outside. Raises LostOwnership.

        `took_over`: a task before died at work, and no checkpoint came since; what it did may be repeated.
        """
        sets = {
            "status": PartitionStatus.INTERRUPTED.value,
            "reason": reason,
            "takes": max(0, item.takes - 1),
            "tookOver": took_over,
        }
        return self._move(owner, item, sets)

    def _move(self, owner: Owner, item: PartitionItem, sets: dict[str, Any]) -> PartitionItem:
        # Absolute values under `seq = n`: repeated after a lost answer it finds its own effect.
        wanted = {**sets, "seq": item.seq + 1}
        write = Write(
            owner.key(item.partition_id),
            sets={**wanted, "updatedAt": self._now()},
            clauses=(
                Clause("the launch is still ours", "launch", "=", owner.launch),
                Clause("the task is still us", "task", "=", owner.task),
                Clause("the partition is running", "status", "=", PartitionStatus.RUNNING.value),
                Clause("nobody moved it since", "seq", "=", item.seq),
            ),
        )
        try:
            old = self._table.write(write)
        except ConditionFailed as refusal:
            if _is_own_effect(owner, wanted, refusal.old):
                return read(refusal.old, item.partition_id)
            raise lost(owner, item.partition_id, refusal) from refusal
        return read(write.applied_to(old), item.partition_id)

    def forgive(self, run_id: str, phase: Phase, item: PartitionItem) -> None:
        """Take back what a take cost whose task was ended from outside (Spot, a stop): once per launch.

        Where the partition moved on meanwhile, or was forgiven already, nothing changes, which is right.
        """
        write = Write(
            keys.partition(run_id, phase, item.partition_id),
            sets={"takes": max(0, item.takes - 1), "forgiven": item.launch},
            clauses=(
                Clause("the launch is the one that ended", "launch", "=", item.launch),
                Clause("nobody moved it since", "seq", "=", item.seq),
                Clause("this launch was not forgiven before", "forgiven", "<", item.launch, or_absent=True),
            ),
        )
        try:
            self._table.write(write)
        except ConditionFailed:
            return

    def fault(self, run_id: str, phase: Phase, partition_id: str, launch: int) -> int:
        """Count a launch that ended before any take, on the partition that it would have taken first.

        Once per launch. Returns the faults so far.
        """
        return self._ended_before_any_take(
            run_id, phase, partition_id, launch, {"faults": 1, "idle": 1}
        ).faults

    def idled(self, run_id: str, phase: Phase, partition_id: str, launch: int) -> None:
        """Count a launch that was ended from outside before any take: no fault, and no progress either.

        Once per launch, on the partition that it would have taken first.
        """
        self._ended_before_any_take(run_id, phase, partition_id, launch, {"idle": 1})

    def _ended_before_any_take(
        self, run_id: str, phase: Phase, partition_id: str, launch: int, adds: dict[str, int]
    ) -> PartitionItem:
        write = Write(
            keys.partition(run_id, phase, partition_id),
            sets={"partitionId": partition_id, "faulted": launch},
            adds=adds,
            clauses=(
                Clause(
                    "nobody took it under this launch or a later one", "launch", "<", launch, or_absent=True
                ),
                Clause("this launch was not counted before", "faulted", "<", launch, or_absent=True),
            ),
        )
        try:
            old = self._table.write(write)
        except ConditionFailed as refusal:
            return read(refusal.old, partition_id)
        return read(write.applied_to(old), partition_id)

    def _now(self) -> str:
        return instant(self._clock)


def instant(clock: Clock) -> str:
    """Now, as the ledger writes it."""
    return clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read(item: Item | None, partition_id: str) -> PartitionItem:
    """A stored item as a value; PENDING where there is none."""
    known = {name: value for name, value in (item or {}).items() if name != "SK" and value is not None}
    return PartitionItem.model_validate({**known, "partitionId": partition_id})


def lost(owner: Owner, partition_id: str, refusal: ConditionFailed) -> LostOwnership:
    """The error for a write that this task may not make any more, with both sides in it."""
    found = read(refusal.old, partition_id)
    return LostOwnership(
        f"Partition {partition_id}: {refusal} does not hold. Ours is launch {owner.launch} of {owner.task}; "
        f"the ledger has launch {found.launch} of {found.task}, {found.status}, checkpoint {found.seq}.",
        clause=str(refusal),
        wanted={"launch": owner.launch, "task": owner.task},
        found=refusal.old,
        remedy="Stop: the newer owner goes on from the last checkpoint.",
    )


def _take(owner: Owner, partition_id: str, now: str, work: int) -> Write:
    takable = sorted(status.value for status in TAKABLE)
    return Write(
        owner.key(partition_id),
        sets={
            "partitionId": partition_id,
            "status": PartitionStatus.RUNNING.value,
            "launch": owner.launch,
            "task": owner.task,
            "fence": owner.fence,
            "work": work,
            "takenAt": now,
            "updatedAt": now,
        },
        adds={"takes": 1, "idle": 1, "seq": 1},
        removes=("reason",),
        clauses=(
            Clause("the partition is not finished", "status", "in", takable, or_absent=True),
            Clause("no later launch has it", "launch", "<", owner.launch, or_absent=True),
        ),
    )


def _taken_before(owner: Owner, partition_id: str, refusal: ConditionFailed) -> Taken:
    found = read(refusal.old, partition_id)
    if found.launch > owner.launch:
        raise lost(owner, partition_id, refusal) from refusal
    if (found.launch, found.task, found.status) == (owner.launch, owner.task, PartitionStatus.RUNNING):
        # The answer to our own take was lost, and with it what was there before: work may be repeated.
        return Taken(found, PartitionStatus.RUNNING)
    raise NotTakable(
        f"Partition {partition_id} is {found.status} by launch {found.launch}.",
        clause=str(refusal),
        wanted=owner.launch,
        found=refusal.old,
        remedy="Go on with the next one.",
    ) from refusal


def _checkpoint(to: Checkpoint) -> dict[str, Any]:
    document = to.document()
    return {name: document[name] for name in ("cursor", "counters", "skipped", "replayed", "rejectParts")}


def _is_own_effect(owner: Owner, wanted: dict[str, Any], old: Item | None) -> bool:
    """Whether the item found is what this very call would have made of it."""
    if old is None or old.get("launch") != owner.launch or old.get("task") != owner.task:
        return False
    return all(old.get(name) == value for name, value in wanted.items())
