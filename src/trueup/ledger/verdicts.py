"""End states, and the verbs that undo them. Each moves partitions and a counter item in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trueup.clock import Clock
from trueup.errors import Stale, UsageError
from trueup.ledger import keys
from trueup.ledger.audit import Audit
from trueup.ledger.counting import count, follow, row_of, tally
from trueup.ledger.partitions import instant, read
from trueup.ledger.table import MAX_TRANSACTION, Clause, ConditionFailed, Table, TransactionFailed, Write
from trueup.model import states
from trueup.model.base import cut
from trueup.model.counters import Counters
from trueup.model.ledger import Counts, PartitionItem
from trueup.model.result import LONGEST_MESSAGE, PartitionError
from trueup.model.states import PartitionStatus, Phase

# DynamoDB takes 4 MB of items a transaction. Ours are measured as JSON, which is about as long.
BYTES_PER_TRANSACTION = 3_000_000

_P = PartitionStatus
DECIDED = frozenset({_P.ACCEPTED, _P.REFUSED, _P.FAILED, _P.REJECTED, _P.STUCK})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Decision:
    """What a partition, as it was read, becomes; with the error that people will read."""

    item: PartitionItem
    status: PartitionStatus
    error: PartitionError | None = None


@dataclass(frozen=True, slots=True)
class _Verb:
    """What an operator asks for: from which states, to which, and what else changes."""

    name: str
    allowed: frozenset[PartitionStatus]
    status: PartitionStatus
    change: Callable[[PartitionItem], dict[str, Any]]
    who: str
    why: str


class Verdicts:
    """Accept, and the operators' retry and skip.

    `transaction_size` is how many writes go into one transaction, among them the counter item and a verb's
    audit entry: so up to 99 decisions, or 98 retries.
    """

    def __init__(self, table: Table, clock: Clock, audit: Audit) -> None:
        self._table = table
        self._clock = clock
        self._audit = audit
        self.transaction_size = MAX_TRANSACTION

    def decide(
        self, run_id: str, phase: Phase, decisions: Iterable[Decision], *, follow_failures: bool = False
    ) -> None:
        """Write end states, each if the partition is as it was read. Repeated, it changes nothing.

        `follow_failures`: also keep how many failed in a row, for `failed_in_a_row`. It is one item for the
        whole run, so only runs pay for it that ask.
        Raises ValueError for an arrow that is not there or a partition named twice; nothing is written then.
        Raises Stale where a partition moved on to something else: nothing of its transaction is written, but
        those before it are.
        """
        todo = [one for one in decisions if one.item.status is not one.status]
        _check(todo)
        for chunk in _chunks(todo, lambda one: one.item, self.transaction_size - 1 - follow_failures):
            left = chunk
            while left and (refused := self._decide_chunk(run_id, phase, left, follow_failures)):
                left = _without_those_that_arrived(left, refused, run_id, phase)

    def _decide_chunk(
        self, run_id: str, phase: Phase, chunk: Sequence[Decision], follow_failures: bool
    ) -> TransactionFailed | None:
        writes = [self._write(run_id, phase, one.item, _decided(one)) for one in chunk]
        moves = [(one.item, one.status) for one in chunk]
        row = [follow(run_id, moves)] if follow_failures else []
        return self._transact([*writes, *count(run_id, phase, moves), *row])

    def _transact(self, writes: Sequence[Write]) -> TransactionFailed | None:
        try:
            self._table.transact(writes)
        except TransactionFailed as refused:
            return refused
        return None

    def _write(self, run_id: str, phase: Phase, item: PartitionItem, sets: dict[str, Any]) -> Write:
        always = {"partitionId": item.partition_id, "seq": item.seq + 1, "updatedAt": instant(self._clock)}
        key = keys.partition(run_id, phase, item.partition_id)
        return Write(key, sets={**sets, **always}, clauses=as_read(item))

    def counts(self, run_id: str, phase: Phase | None = None) -> Counts:
        """Partitions by end state with their records, of one phase or of all.

        These are 8 small items, whatever the number of partitions.
        """
        shards = self._table.get_many([keys.count(run_id, number) for number in range(keys.SHARDS)])
        return tally(list(shards.values()), phase)

    def failed_in_a_row(self, run_id: str) -> int:
        """Partitions that failed since one was last accepted, in the order in which their ends were written.

        0 where decisions were not asked to follow it.
        """
        return row_of(self._table.get(keys.row(run_id)))

    def counts_by_phase(self, run_id: str) -> dict[Phase, Counts]:
        """The same for every phase in which something ended, by one read of the 8 items."""
        shards = list(self._table.get_many([keys.count(run_id, n) for n in range(keys.SHARDS)]).values())
        return {phase: found for phase in Phase if (found := tally(shards, phase)).is_begun}

    def retry(self, run_id: str, phase: Phase, partition_ids: Sequence[str], *, who: str, why: str) -> None:
        """Make refused, failed, stuck and rejected partitions PENDING again.

        REFUSED and REJECTED begin from the start with counters at zero, but a repair goes on from where it
        was: rows as they were are stored up to there. The fence stays. Those that are PENDING already stay
        as they are. Raises UsageError where one of them is in no such state, or was repaired and is looked at
        again by now (nothing is changed then), Stale where one moved meanwhile.
        """
        if phase is Phase.REPAIR:
            self._must_not_be_looked_at(run_id, partition_ids)
        verb = _Verb("retry", states.RETRYABLE, _P.PENDING, _again(phase), who, why)
        self._operate(run_id, phase, partition_ids, verb)

    def _must_not_be_looked_at(self, run_id: str, partition_ids: Sequence[str]) -> None:
        """What would be repaired now, nobody would look at again."""
        for item in self._read_all(run_id, Phase.VERIFY, partition_ids):
            if item.seq or item.status is not _P.PENDING:
                raise UsageError(
                    f"What was repaired of partition {item.partition_id} is looked at again already: "
                    f"its phase verify is {item.status}.",
                    remedy="Let the run end; a new one finds what is left, and asks for it to be approved.",
                )

    def skip(self, run_id: str, phase: Phase, partition_ids: Sequence[str], *, who: str, why: str) -> None:
        """Leave partitions out, with a reason. Raises UsageError and Stale as `retry` does."""
        if not why:
            raise UsageError(
                "A partition is skipped for a reason.", remedy="Give one; the report will name it."
            )
        verb = _Verb("skip", states.SKIPPABLE, _P.SKIPPED, _left_out(why), who, why)
        self._operate(run_id, phase, partition_ids, verb)

    def _operate(self, run_id: str, phase: Phase, partition_ids: Sequence[str], verb: _Verb) -> None:
        todo = [
            item for item in self._read_all(run_id, phase, partition_ids) if item.status is not verb.status
        ]
        _check_allowed(todo, verb)
        for chunk in _chunks(todo, lambda item: item, self.transaction_size - 2):
            writes = [self._write(run_id, phase, item, verb.change(item)) for item in chunk]
            moves = [(item, verb.status) for item in chunk]
            trail = self._trail(run_id, phase, chunk, verb)
            if refused := self._transact([*writes, *count(run_id, phase, moves), trail]):
                raise _moved(refused.refusals[0]) from refused

    def _trail(self, run_id: str, phase: Phase, chunk: Sequence[PartitionItem], verb: _Verb) -> Write:
        return self._audit.entry(
            run_id,
            who=verb.who,
            verb=verb.name,
            subject=f"{phase.value}: " + ", ".join(item.partition_id for item in chunk),
            why=verb.why,
            before={item.partition_id: item.status.value for item in chunk},
            after=verb.status.value,
        )

    def _read_all(self, run_id: str, phase: Phase, partition_ids: Sequence[str]) -> list[PartitionItem]:
        by_key = {keys.partition(run_id, phase, one): one for one in partition_ids}
        found = self._table.get_many(list(by_key))
        return [read(found.get(key), one) for key, one in by_key.items()]


def as_read(item: PartitionItem) -> tuple[Clause, ...]:
    """The clauses that hold while a partition is as it was read. What was never written may be absent.

    Every take moves `seq`, so its launch need not be asked for.
    """
    pending = item.status is _P.PENDING
    return (
        Clause("its state is the one that was read", "status", "=", item.status.value, or_absent=pending),
        Clause("nobody moved it since it was read", "seq", "=", item.seq, or_absent=item.seq == 0),
    )


def _check(decisions: Sequence[Decision]) -> None:
    for one in decisions:
        before, after = one.item.status, one.status
        if after not in DECIDED or not states.may_become(before, after):
            raise ValueError(f"{one.item.partition_id} is {before} and cannot be decided to be {after}")
    ids = [one.item.partition_id for one in decisions]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise ValueError(f"{twice} is decided twice at once")


def _check_allowed(items: Sequence[PartitionItem], verb: _Verb) -> None:
    wrong = next((item for item in items if item.status not in verb.allowed), None)
    if wrong is not None:
        raise UsageError(
            f"Partition {wrong.partition_id} is {wrong.status}; "
            f"{verb.name} takes {', '.join(sorted(verb.allowed))}.",
            remedy="Leave it out of the list.",
        )


def _chunks(things: Sequence[_T], item_of: Callable[[_T], PartitionItem], most: int) -> Iterator[list[_T]]:
    """The things in order, in lists that fit into one transaction each."""
    chunk: list[_T] = []
    weight = 0
    for thing in things:
        size = len(item_of(thing).model_dump_json())
        if chunk and (len(chunk) == most or weight + size > BYTES_PER_TRANSACTION):
            yield chunk
            chunk, weight = [], 0
        chunk.append(thing)
        weight += size
    if chunk:
        yield chunk


def _decided(one: Decision) -> dict[str, Any]:
    error = {} if one.error is None else {"error": one.error.document()}
    return {"status": one.status.value, **error}


def _again(phase: Phase) -> Callable[[PartitionItem], dict[str, Any]]:
    return lambda item: _retried(item, restarts=phase is not Phase.REPAIR)


def _retried(item: PartitionItem, *, restarts: bool) -> dict[str, Any]:
    cleared: dict[str, Any] = {
        "status": _P.PENDING.value,
        "takes": 0,
        "idle": 0,
        "faults": 0,
        "entry": None,
        "error": None,
        "reason": None,
    }
    if item.status not in states.RESTARTED or not restarts:
        return cleared
    fresh = PartitionItem(partition_id=item.partition_id, counters=Counters()).document()
    return cleared | {
        name: fresh[name] for name in ("cursor", "counters", "skipped", "replayed", "rejectParts")
    }


def _left_out(why: str) -> Callable[[PartitionItem], dict[str, Any]]:
    return lambda item: {"status": _P.SKIPPED.value, "reason": cut(why, LONGEST_MESSAGE)}


def _without_those_that_arrived(
    chunk: Sequence[Decision], refused: TransactionFailed, run_id: str, phase: Phase
) -> list[Decision]:
    """The decisions that are still to be written. Raises Stale where one was refused for any other reason."""
    left = []
    for one in chunk:
        refusal = refused.of(keys.partition(run_id, phase, one.item.partition_id))
        if refusal is None:
            left.append(one)
        elif not _arrived(one, read(refusal.old, one.item.partition_id)):
            raise _moved(refusal) from refused
    return left


def _arrived(one: Decision, found: PartitionItem) -> bool:
    return (found.status, found.seq, found.launch) == (one.status, one.item.seq + 1, one.item.launch)


def _moved(refusal: ConditionFailed) -> Stale:
    return Stale(
        f"{refusal.write.key[1]} moved while it was decided: {refusal} does not hold.",
        clause=str(refusal),
        wanted=refusal.clause.value if refusal.clause else None,
        found=refusal.old,
        remedy="Read it again and decide again.",
    )
