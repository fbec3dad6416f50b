"""A small job, its sink with a witness, and runs of it, for the tests of the worker and of what judges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from trueup import Backfill, Batch, Context, Outcome, Partition, Superseded
from trueup.artifacts.store import MemoryStore
from trueup.errors import StoreUnavailable
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Write
from trueup.model.job import JobFile
from trueup.model.ledger import PartitionItem
from trueup.model.result import ResultContract
from trueup.testing import LocalRun, LocalTask


class Sink:
    """A target with the guard `fence`. `witness` only grows: who applied what, in order."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Any], Any] = {}
        self.fences: dict[str, int] = {}
        self.witness: list[tuple[str, Any, int]] = []

    def put(self, rows: list[Any], ctx: Context) -> Outcome:
        """Write rows; those that are there already count as unchanged."""
        part = ctx.partition.id
        if self.fences.get(part, 0) > ctx.fence:
            raise Superseded("A newer task was here.", ours=ctx.fence, theirs=self.fences[part])
        self.fences[part] = ctx.fence
        new = [row for row in rows if (part, row) not in self.rows]
        self.rows.update({(part, row): row for row in rows})
        self.witness += [(part, row, ctx.launch) for row in rows]
        return Outcome(written=len(new), unchanged=len(rows) - len(new))

    def applied_again(self) -> int:
        """How many different rows were applied more than once."""
        applied = Counter((part, row) for part, row, _ in self.witness)
        return sum(times > 1 for times in applied.values())


def position(cursor: str | None) -> int:
    """The number after `v1:`; 0 at the start."""
    return int(cursor[3:]) if cursor else 0


class Numbers(Backfill):
    """Works the numbers 0 to `size` of each partition, `per_batch` at a time."""

    size = 12
    per_batch = 3
    sink: Sink

    def count(self, part: Partition) -> int | None:
        return self.size

    def read(self, part: Partition, after: str | None) -> Iterator[Any]:
        for low in range(position(after), self.size, self.per_batch):
            high = min(self.size, low + self.per_batch)
            yield Batch(list(range(low, high)), f"v1:{high}")

    def write(self, rows: Any, ctx: Context) -> Any:
        return self.sink.put(rows, ctx)


def job_of(**members: Any) -> type[Numbers]:
    """A job of its own, with a sink of its own; `members` are its attributes and hooks."""
    return type("Job", (Numbers,), {"sink": Sink(), **members})


def job_file(**sections: Any) -> JobFile:
    """A job file; every section can be given."""
    known: dict[str, Any] = {
        "name": "numbers",
        "class": "numbers:Job",
        "partitions": {"by": "list", "key": "item"},
        "order": "oldest",
        "target": {"name": "numbers", "guard": "fence"},
        "limits": {"max_concurrency": 1},
    }
    return JobFile.model_validate({**known, **sections})


def run_of(
    job: type[Backfill], *, keys: str = "a", sections: dict[str, Any] | None = None, **more: Any
) -> LocalRun:
    """A run over one partition for each letter of `keys`, in one slice unless `sections` say otherwise."""
    return LocalRun(job, job_file(**(sections or {})), keys=list(keys), **more)


def slices(number: int) -> dict[str, Any]:
    """The section of a job file that makes so many slices of as many partitions."""
    return {"limits": {"max_concurrency": number}}


def step_until(run: LocalRun, name: str, times: int = 1) -> None:
    """Step until the point of that name was passed so often. Fails where the run ends first."""
    for _ in range(times):
        while (step := run.step()) is not None and step.name != name:
            pass
        assert step is not None, f"the run ended before {name!r} was passed"


def item(run: LocalRun, key: str = "a") -> PartitionItem:
    """The partition of a key, as the ledger has it."""
    return run.partition(f"item={key}")


def error(run: LocalRun, key: str = "a") -> str:
    """What the ledger holds as the partition's error: kind, message and record."""
    found = item(run, key).error
    return "" if found is None else f"{found.kind} | {found.message} | {found.record}"


def contracts(run: LocalRun) -> list[ResultContract]:
    """Every result that was stored, in the order of launches."""
    store = run.artifacts.store
    keys = store.list(f"runs/{run.run_id}/{run.phase.value}/results/")
    found = [ResultContract.model_validate_json(store.get(key)) for key in keys]
    return sorted(found, key=lambda one: one.launch)


def last(run: LocalRun) -> LocalTask:
    """The task that was launched last."""
    return run.tasks[-1]


class FailingTable(MemoryTable):
    """A table that does not answer while `down(write)` says so, or dies at the write of a number (from 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.down: Callable[[Write], bool] = lambda write: False
        self.writes = 0
        self.dies_at = 0

    def _count(self) -> None:
        self.writes += 1
        if self.writes == self.dies_at:
            raise Died

    def write(self, write: Write) -> Any:
        if self.down(write):
            raise StoreUnavailable("The table does not answer.")
        done = super().write(write)
        self._count()
        return done

    def transact(self, writes: Any) -> None:
        if any(map(self.down, writes)):
            raise StoreUnavailable("The table does not answer.")
        super().transact(writes)
        self._count()


class Died(BaseException):
    """The process ended here; nobody catches it."""


class FailingStore(MemoryStore):
    """A store that does not answer for keys of which `down` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.down: Callable[[str], bool] = lambda key: False

    def put(self, key: str, data: bytes) -> None:
        if self.down(key):
            raise StoreUnavailable("The store does not answer.")
        super().put(key, data)

    def put_once(self, key: str, data: bytes) -> None:
        if self.down(key):
            raise StoreUnavailable("The store does not answer.")
        super().put_once(key, data)

    def get(self, key: str) -> bytes:
        if self.down(key):
            raise StoreUnavailable("The store does not answer.")
        return super().get(key)
