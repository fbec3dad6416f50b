"""Whatever happens to the tasks of a small run, at its end every record is accounted for once.

`EXAMPLES=2000` tries more than CI does, and other ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trueup import Batch, Reject, Skip
from trueup.testing import LocalRun, LocalTask, ManualClock

from .worker_cases import Numbers, job_file, job_of, position

MORE = os.environ.get("EXAMPLES")
given_time = settings(max_examples=int(MORE or 150), derandomize=MORE is None, deadline=None)

# What becomes of a record: a row, two rows, none, left out, bad.
USED, TWICE, NONE, SKIPPED, REJECTED = range(5)
RECORDS = st.lists(st.sampled_from([USED, USED, TWICE, NONE, SKIPPED, REJECTED]), max_size=7)

ACTIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(1, 6)),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 2.0, 4.0])),
    st.tuples(st.sampled_from(["kill", "interrupt", "freeze"]), st.just(0)),
    st.tuples(st.just("wake"), st.integers(1, 4)),
)


@dataclass
class Case:
    """A small job, how it is run, and what happens on the way."""

    partitions: list[list[int]]
    per_batch: int
    concurrency: int
    checkpoint_seconds: float
    seed: int
    actions: list[tuple[str, Any]] = field(default_factory=list)

    def sums(self) -> tuple[int, ...]:
        """read, used, skipped, rejected, produced: what must come out."""
        kinds = [kind for part in self.partitions for kind in part]
        used = sum(kind in (USED, TWICE, NONE) for kind in kinds)
        rows = kinds.count(USED) + 2 * kinds.count(TWICE)
        return (len(kinds), used, kinds.count(SKIPPED), kinds.count(REJECTED), rows)

    def rows(self) -> set[tuple[str, Any]]:
        """What must lie in the target."""
        found: set[tuple[str, Any]] = set()
        for key, part in enumerate(self.partitions):
            for number, kind in enumerate(part):
                copies = {USED: 1, TWICE: 2}.get(kind, 0)
                found |= {(f"item={key}", (number, copy)) for copy in range(copies)}
        return found


CASES = st.builds(
    Case,
    partitions=st.lists(RECORDS, min_size=1, max_size=3),
    per_batch=st.integers(1, 3),
    concurrency=st.integers(1, 3),
    checkpoint_seconds=st.sampled_from([0.0, 3.0]),
    seed=st.integers(0, 3),
    actions=st.lists(ACTIONS, max_size=25),
)


def job_for(case: Case) -> type[Numbers]:
    """The job of a case. Its sink checks that nobody writes what the ledger has behind its checkpoint."""

    class Job(Numbers):
        sink = job_of().sink
        run: LocalRun

        def count(self, part: Any) -> int:
            return len(case.partitions[int(part.label)])

        def read(self, part: Any, after: str | None) -> Iterator[Batch]:
            kinds = case.partitions[int(part.label)]
            for low in range(position(after), len(kinds), case.per_batch):
                high = min(len(kinds), low + case.per_batch)
                yield Batch([(n, kinds[n]) for n in range(low, high)], f"v1:{high}")

        def transform(self, record: tuple[int, int]) -> Any:
            number, kind = record
            one, two = (number, 0), (number, 1)
            return {USED: one, TWICE: [one, two], NONE: [], SKIPPED: Skip("s"), REJECTED: Reject("r")}[kind]

        def write(self, rows: Any, ctx: Any) -> Any:
            done = self.sink.put(rows, ctx)
            saved = position(self.run.partition(ctx.partition.id).cursor)
            assert min(number for number, _ in rows) >= saved, "applied again from behind the last checkpoint"
            return done

    return Job


def run_for(case: Case, job: type[Any]) -> LocalRun:
    """The run of a case."""
    sections = {
        "partitions": {"by": "list", "key": "item", "empty": "allowed"},
        "limits": {"max_concurrency": case.concurrency},
        "errors": {"rejects": 100},
    }
    run = LocalRun(
        job,
        job_file(**sections),
        keys=[str(key) for key in range(len(case.partitions))],
        concurrency=case.concurrency,
        checkpoint_seconds=case.checkpoint_seconds,
        seed=case.seed,
        clock=ManualClock(),
    )
    job.run = run
    return run


def play(case: Case, run: LocalRun) -> None:
    """Let everything happen that the case wants, and bring the run to its end."""
    zombies: list[LocalTask] = []
    for name, value in case.actions:
        if name == "step":
            for _ in range(value):
                run.step()
        elif name == "pass":
            run.clock.sleep(value)
        elif name == "freeze":
            zombies += run.freeze()
        elif name == "wake":
            _wake(zombies[:value])
        else:
            getattr(run, name)()
    run.run()
    _wake(zombies)


def _wake(zombies: list[LocalTask]) -> None:
    for zombie in zombies:
        zombie.step()


@given_time
@given(CASES)
def test_every_record_is_accounted_for_once_whatever_happens(case: Case) -> None:
    job = job_for(case)
    run = run_for(case, job)
    play(case, run)
    found = run.records
    assert len(case.partitions) == run.accepted
    assert case.sums() == (found.read, found.used, found.skipped, found.rejected, found.produced)
    assert (found.produced, 0) == (found.written + found.unchanged, found.refused)
    assert case.rows() == set(job.sink.rows)
    assert [] == list(run.ledger.tasks.of(run.run_id))
    if case.checkpoint_seconds == 0:
        assert applied_again(job) <= run.replayed


def applied_again(job: type[Numbers]) -> int:
    """How many records more than one launch applied."""
    launches: dict[tuple[str, int], set[int]] = {}
    for part, (number, _), launch in job.sink.witness:
        launches.setdefault((part, number), set()).add(launch)
    return sum(len(who) > 1 for who in launches.values())
