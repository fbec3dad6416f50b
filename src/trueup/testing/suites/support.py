"""What the suites share: a scene to act in, threads that start at once, and answers that get lost."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from trueup.errors import StoreUnavailable
from trueup.ledger import Decision, Ledger, Owner
from trueup.ledger.table import Item, Key, Table, Write
from trueup.model.counters import Counters
from trueup.model.job import Guard
from trueup.model.ledger import Checkpoint, PartitionItem, Run, TaskItem
from trueup.model.plan import Window
from trueup.model.result import PartitionResult, record_counts
from trueup.model.states import PartitionStatus, Phase, ResultStatus, RunStatus

E = TypeVar("E", bound=Exception)
T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
JANUARY = Window(kind="date", low="2013-01-01", high="2013-02-01")
FEBRUARY = Window(kind="date", low="2013-02-01", high="2013-03-01")
APPLY = Phase.APPLY


def refusal(kind: type[E], call: Callable[..., Any], *args: Any, **options: Any) -> E:
    """The error of that kind which the call raises. Raises AssertionError where it raises none."""
    try:
        answer = call(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised; the answer was {answer!r}")


def unique(name: str) -> str:
    """A name that nobody else has."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


def in_threads(number: int, act: Callable[[int], T]) -> list[T | Exception]:
    """Call `act(0)` … `act(number - 1)` from as many threads at once; what each returned or raised."""
    barrier = threading.Barrier(number)

    def one(index: int) -> T | Exception:
        barrier.wait()
        try:
            return act(index)
        except Exception as error:  # the caller looks at what was raised
            return error

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


class TickingClock:
    """A clock that moves on by a millisecond whenever it is asked."""

    def __init__(self) -> None:
        self._ticks = 0
        self._skipped = timedelta()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The instant."""
        with self._lock:
            self._ticks += 1
            return START + self._skipped + timedelta(milliseconds=self._ticks)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return (self.now() - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Nothing waits here."""

    def skip(self, time: timedelta) -> None:
        """Let time pass at once."""
        self._skipped += time


class LossyTable:
    """A Table that does what it is asked, and then loses the answer of the call numbered `lose` (from 0).

    A refusal is an answer, too. The caller sees StoreUnavailable and cannot know what happened.
    """

    def __init__(self, table: Table, lose: int) -> None:
        self._table = table
        self._left = lose
        self.lost = False

    def _answer(self, call: Callable[[], T]) -> T:
        try:
            return call()
        finally:
            self._left -= 1
            if self._left == -1:
                self.lost = True
                raise StoreUnavailable("The answer was lost.")

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        return self._answer(lambda: self._table.get(key))

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Those of the items that exist."""
        return self._answer(lambda: self._table.get_many(keys))

    def write(self, write: Write) -> Item | None:
        """Do one write and return the old item."""
        return self._answer(lambda: self._table.write(write))

    def transact(self, writes: Sequence[Write]) -> None:
        """Do all writes or none."""
        self._answer(lambda: self._table.transact(writes))

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        """Items of one partition key, in the order of their sort keys."""
        return iter(self._answer(lambda: list(self._table.query(pk, prefix, after))))


def insist(call: Callable[[], T], times: int = 3) -> T:
    """Call again where the answer was lost, as every caller of a ledger does."""
    for _ in range(times):
        try:
            return call()
        except StoreUnavailable:
            continue
    raise AssertionError(f"no answer after {times} calls")


def a_run(**changes: Any) -> Run:
    """A run that nobody else has, open."""
    defaults: dict[str, Any] = {
        "run_id": unique("run"),
        "job": "flights",
        "request_id": unique("request"),
        "requester": "ann",
        "created_at": START,
        "plan_key": "plan.json",
        "plan_sha256": "0" * 64,
        "partitions": 3,
        "params": {"carrier": "UA", "share": 0.25, "tags": ["a", None, True]},
        "window": JANUARY,
        "target": unique("target"),
        "guard": Guard.FENCE,
    }
    return Run(**{**defaults, **changes})


def a_task(launch: int = 1, task: str = "task-a", generation: int = 1, slice_id: int = 7) -> TaskItem:
    """A task as it registers."""
    return TaskItem(
        phase=APPLY,
        slice_id=slice_id,
        launch=launch,
        generation=generation,
        task=task,
        registered_at=START,
        beat_at=START,
    )


def counted(records: int) -> Counters:
    """Counters after that many records, all of them read, used, produced and written."""
    return Counters(read=records, used=records, produced=records, written=records)


def checkpoint(records: int, **changes: Any) -> Checkpoint:
    """A checkpoint after that many records."""
    defaults: dict[str, Any] = {"cursor": f"v1:{records}", "counters": counted(records)}
    return Checkpoint(**{**defaults, **changes})


def entry_of(item: PartitionItem, status: ResultStatus = ResultStatus.SUCCEEDED) -> PartitionResult:
    """What a task reports of a partition that stands like this."""
    return PartitionResult(
        partition_id=item.partition_id,
        fence=item.fence,
        status=status,
        cursor=item.cursor,
        **record_counts(item.counters),
    )


class Scene:
    """A ledger on a table, with a clock of its own and an open run that nobody else has."""

    def __init__(self, table: Table, run: Run | None = None) -> None:
        self.table = table
        self.clock = TickingClock()
        self.ledger = Ledger(table, self.clock)
        self.run = self.ledger.runs.create(run or a_run())
        self.run_id = self.run.run_id

    def owner(self, launch: int = 1, task: str = "task-a", epoch: int = 0) -> Owner:
        """A task of this run."""
        return Owner(self.run_id, APPLY, launch, task, epoch)

    def get(self, partition_id: str = "p") -> PartitionItem:
        """The partition as it stands."""
        return self.ledger.partitions.get(self.run_id, APPLY, partition_id)

    def take(self, partition_id: str = "p", launch: int = 1, task: str = "task-a") -> PartitionItem:
        """The partition, taken."""
        return self.ledger.partitions.take(self.owner(launch, task), partition_id).item

    def advance(self, item: PartitionItem, records: int) -> PartitionItem:
        """The partition, advanced by its owner."""
        return self.ledger.partitions.advance(self._holder(item), item, checkpoint(records))

    def report(self, item: PartitionItem) -> PartitionItem:
        """The partition, reported by its owner."""
        return self.ledger.partitions.report(self._holder(item), item, entry_of(item))

    def interrupt(self, item: PartitionItem, reason: str = "SIGTERM") -> PartitionItem:
        """The partition, left early by its owner."""
        return self.ledger.partitions.interrupt(self._holder(item), item, reason)

    def decide(self, *items: PartitionItem, to: PartitionStatus) -> None:
        """The partitions, decided."""
        self.ledger.verdicts.decide(self.run_id, APPLY, [Decision(item, to) for item in items])

    def worked(self, partition_id: str, records: int, launch: int = 1) -> PartitionItem:
        """The partition, taken, advanced by that many records and reported."""
        return self.report(self.advance(self.take(partition_id, launch), records))

    def ended(self, partition_id: str, records: int, to: PartitionStatus, launch: int = 1) -> PartitionItem:
        """The partition in an end state, with that many records."""
        item = self.advance(self.take(partition_id, launch), records)
        if to is not PartitionStatus.STUCK:
            item = self.report(item)
        self.decide(item, to=to)
        return self.get(partition_id)

    def succeed(self) -> Run:
        """The run, closed and ended well."""
        self.ledger.runs.stop(self.run_id, RunStatus.SUCCEEDED, who="settler", why="all is well")
        return self.ledger.runs.finish(self.run_id, RunStatus.SUCCEEDED, who="settler")

    def verbs(self) -> list[str]:
        """The audit trail, in brief."""
        return [entry.verb for entry in self.ledger.audit.of(self.run_id)]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Partitions and records read by end state."""
        by_state = self.ledger.verdicts.counts(self.run_id).by_state
        return {status.value: (of.partitions, of.records.read) for status, of in by_state.items()}

    def _holder(self, item: PartitionItem) -> Owner:
        assert item.task is not None
        return self.owner(item.launch, item.task)
