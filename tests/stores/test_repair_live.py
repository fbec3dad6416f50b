"""Finding, repairing and undoing while writes go on: 400 a second, which reach the target two seconds later.

`make live` runs it with 300,000 rows of which 2,000 are wrong, and prints what it found.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from trueup.artifacts.findings import lines_in, listed
from trueup.cli.output import say
from trueup.clock import SystemClock
from trueup.jobs import Reconcile
from trueup.local.postgres import postgres
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import Phase, RunStatus
from trueup.testing import LocalRun

ROWS = int(os.environ.get("TRUEUP_LIVE_ROWS", "20000"))
WRONG = int(os.environ.get("TRUEUP_LIVE_WRONG", "60"))
WRITES_A_SECOND, LAG = 400, 2.0


@pytest.fixture
def dsn() -> Iterator[str]:
    """Two tables that are the same, but for rows of the target that are wrong or missing."""
    with postgres() as dsn:
        with psycopg.connect(dsn) as db:
            for name in ("truth", "target"):
                db.execute(f"create table {name} (id int primary key, v text not null)")
                db.execute(f"insert into {name} select n, 'v' || n from generate_series(1, {ROWS}) n")  # noqa: S608
            step = ROWS // WRONG
            db.execute(f"update target set v = 'wrong' where id % {step} = 0")  # noqa: S608
            db.execute(f"delete from target where id % {step * 2} = 0")  # noqa: S608
        yield dsn


class Writers:
    """Writes to the truth, each of which reaches the target after the lag."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._first_arrived = threading.Event()
        self._sent: queue.Queue[tuple[float, int, str] | None] = queue.Queue()
        self.written = 0
        self.keys: set[int] = set()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Write until the block ends; then everything has arrived. It begins with the lag full of writes."""
        threads = [threading.Thread(target=one) for one in (self._write, self._carry)]
        for thread in threads:
            thread.start()
        try:
            assert self._first_arrived.wait(30), "no write arrived"
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _write(self) -> None:
        rng, started = random.Random(1), time.monotonic()
        with psycopg.connect(self._dsn, autocommit=True) as db:
            while not self._stop.is_set():
                due = int((time.monotonic() - started) * WRITES_A_SECOND)
                while self.written < due:
                    self.written += 1
                    key, value = rng.randint(1, ROWS), f"w{self.written}"
                    self.keys.add(key)
                    db.execute("update truth set v = %s where id = %s", (value, key))
                    self._sent.put((time.monotonic() + LAG, key, value))
                self._stop.wait(0.005)
        self._sent.put(None)

    def _carry(self) -> None:
        upsert = "insert into target values (%s, %s) on conflict (id) do update set v = excluded.v"
        with psycopg.connect(self._dsn, autocommit=True) as db:
            while (one := self._sent.get()) is not None:
                at, key, value = one
                # The lag is what is played here, and what the reconciliation has to live with.
                time.sleep(max(0.0, at - time.monotonic()))
                db.execute(upsert, (key, value))
                self._first_arrived.set()


def job() -> Reconciliation:
    sides = {side: {"kind": "postgres", "table": side} for side in ("truth", "target")}
    columns = {"id": "integer", "v": "text"}
    more = {"lag": 2.5, "looks": 2, "repair": {"breaker": {"share": 1}}}
    return Reconciliation.of(
        {"name": "live", "kind": "reconcile", "key": ["id"], "columns": columns, **sides, **more}
    )


def table(dsn: str, name: str) -> dict[int, str]:
    with psycopg.connect(dsn) as db:
        return dict(db.execute(f"select id, v from {name}").fetchall())  # noqa: S608


def run_of(dsn: str, undoes: LocalRun | None = None) -> LocalRun:
    return LocalRun(
        Reconcile,
        job(),
        secrets={"dsn": dsn},
        clock=SystemClock(),
        approver="eve",
        undoes=undoes,
        seed=1 if undoes else 0,
    )


@pytest.mark.timeout(600 if ROWS > 20_000 else 120)
def test_no_row_is_wrong_after_a_repair_and_none_after_its_undoing(dsn: str) -> None:
    damage = _damage(dsn)
    assert len(damage) >= WRONG
    writers = Writers(dsn)
    run = run_of(dsn)
    with writers.at_work():
        while run.phase is not Phase.REPAIR:
            assert run.step() is not None
        _must_be_the_planted_drift(run, set(damage), set(writers.keys))
        time.sleep(1)  # what the person takes who approves: meanwhile rows of the report change
        ended = run.run()
        assert RunStatus.SUCCEEDED is ended.status, ended.reason
    assert writers.written > WRITES_A_SECOND
    outcomes = Counter({one.outcome: 0 for one in run.repaired.outcomes})
    for one in run.repaired.outcomes:
        outcomes[one.outcome] += one.items
    assert outcomes["APPLIED"] > WRONG / 2
    assert 0 == outcomes["FAILED"]
    say(f"repaired under {writers.written:,} writes: {dict(outcomes)}")
    assert table(dsn, "truth") == table(dsn, "target")

    writers = Writers(dsn)
    with writers.at_work():
        undo = run_of(dsn, run)
        assert RunStatus.SUCCEEDED is undo.run().status
    truth, target = table(dsn, "truth"), table(dsn, "target")
    differing = {key for key in truth.keys() | target.keys() if truth.get(key) != target.get(key)}
    say(
        f"undone under {writers.written:,} writes: {len(differing):,} rows are as they were before the repair"
    )
    assert differing
    assert {key: damage.get(key, "never wrong") for key in differing} == {
        key: target.get(key) for key in differing
    }


def _must_be_the_planted_drift(run: LocalRun, planted: set[int], written: set[int]) -> None:
    """Nothing is confirmed that was not planted, and everything that was, unless a writer mended it before.

    A single pass would have told of hundreds of rows that were only on their way.
    """
    found, confirmed = (_found(run, phase) for phase in (Phase.COMPARE, Phase.CONFIRM))
    false, still_false = len(found - planted), len(confirmed - planted)
    say(f"of {ROWS:,} rows one pass found {len(found):,} to differ, {false:,} of them wrongly;")
    say(f"the second look confirmed {len(confirmed):,}, {still_false:,} of them wrongly")
    assert len(found - planted) > WRITES_A_SECOND * LAG / 4
    assert set() == confirmed - planted
    assert planted - written <= confirmed


def _found(run: LocalRun, phase: Phase) -> set[int]:
    """The keys that the report has for a phase; of the second look those that it confirmed."""
    lines = [
        line
        for one in run.comparison.lists
        if one.phase is phase
        for there in listed(run.artifacts, one)
        for line in lines_in(run.artifacts, phase, there)
    ]
    return {
        int(line["key"][0]) for line in lines if phase is Phase.COMPARE or line.get("state") == "CONFIRMED"
    }


def _damage(dsn: str) -> dict[int, str | None]:
    """What the target holds where it is wrong; None for no row."""
    truth, target = table(dsn, "truth"), table(dsn, "target")
    return {key: target.get(key) for key, value in truth.items() if target.get(key) != value}
