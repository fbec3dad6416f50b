"""Comparing two sides of 1,000,000 rows: beside a plain merge, beside the COPY of both, in 64 MiB.

Each comparison runs in a process of its own, whose peak is what counts. `python -m bench.reconcile` is that.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import psycopg

from bench.figures import MIB, Figure, in_own_process, middle, peak_bytes, rounded, seconds
from trueup.compare import Counts, Finding, examine, json_lines, plan
from trueup.local.postgres import postgres
from trueup.model.reconcile import ObjectsSource, Side
from trueup.model.reconcile_job import Reconciliation
from trueup.sources.objects import ObjectRows
from trueup.sources.postgres_rows import PostgresRows

ROWS = 1_000_000
COLUMNS = {"id": "integer", "status": "text", "amount": "decimal", "updated_at": "timestamp"}
JOB = Reconciliation.of(
    {
        "name": "bench",
        "kind": "reconcile",
        "truth": {"kind": "postgres", "table": "truth"},
        "target": {"kind": "postgres", "table": "target"},
        "key": ["id"],
        "columns": COLUMNS,
    }
)
MAKE = """
create table truth as select i::bigint as id, 'status-' || i % 7 as status,
    (i * 1.37)::numeric(18, 4) as amount, timestamptz '2026-01-01' + i * interval '1.5 s' as updated_at
    from generate_series(1, {rows}) i;
create table target as select * from truth;
update target set amount = amount + 0.0001 where id % ({rows} / 100) = 5;
delete from target where id % ({rows} / 50) = 7;
delete from truth where id % ({rows} / 50) = 9;
alter table truth add primary key (id);
alter table target add primary key (id);
"""
MAKE_DAMAGED = """
create table damaged as select id, status, amount + (id % 10 < 3)::int as amount, updated_at from truth;
alter table damaged add primary key (id);
"""
PLANTED = 200
"""How many keys differ between truth and target, whatever their size."""
COPY = "copy (select * from {table} order by id) to {where}"


def measure(rows: int = ROWS, rounds: int = 3) -> Iterator[Figure]:
    """Five figures: pairs a second, beside the floor, memory, memory with 30 % different, an export."""
    with postgres() as dsn, tempfile.TemporaryDirectory() as folder:
        make_tables(dsn, rows)
        _make_damaged(dsn)
        _make_export(dsn, Path(folder))
        floors = []
        taken = Taken(dsn, folder)
        for _ in range(rounds):
            floors.append(seconds(lambda: _floor(dsn)))
            taken.once("merge", "tables", "damaged", "export", "parse")
    yield from _figures(rows, taken.seconds(), taken.peaks(), middle(floors), taken.idle())


def measure_large(rows: int = 10 * ROWS, rounds: int = 3) -> Iterator[Figure]:
    """Two figures: pairs a second of ten times as many rows, and memory, which must be the same."""
    with postgres() as dsn, tempfile.TemporaryDirectory() as folder:
        make_tables(dsn, rows)
        taken = Taken(dsn, folder)
        for _ in range(rounds):
            taken.once("merge", "tables")
    ours, plain = (round(rows / taken.seconds()[what]) for what in ("tables", "merge"))
    yield Figure(
        "reconcile 10m",
        ours,
        "pairs/s",
        f"a plain merge of whole lines over two COPY streams of {rows:,} rows, which only counts",
        plain,
    )
    peak = taken.peaks()["tables"]
    yield Figure(
        "reconcile 10m memory",
        rounded(peak),
        "MiB",
        "the peak of the same process before it compares",
        rounded(taken.idle()),
        64,
        peak <= 64,
    )


class Taken:
    """What was measured, each time in a process of its own."""

    def __init__(self, dsn: str, folder: str) -> None:
        self._dsn = dsn
        self._folder = folder
        self._all: dict[str, list[dict[str, float]]] = {}

    def once(self, *names: str) -> None:
        """Measure each of these once more."""
        for what in names:
            self.add(what, in_own_process("reconcile", what, self._dsn, self._folder))

    def add(self, what: str, one: dict[str, float]) -> None:
        """Keep what was measured elsewhere."""
        self._all.setdefault(what, []).append(one)

    def seconds(self) -> dict[str, float]:
        """The median of each."""
        return {what: middle([one["seconds"] for one in many]) for what, many in self._all.items()}

    def peaks(self) -> dict[str, float]:
        """The median of the most memory of each, in MiB."""
        return {what: middle([one["peak"] for one in many]) / MIB for what, many in self._all.items()}

    def idle(self) -> float:
        """The memory of such a process of ours that has done nothing, in MiB."""
        return self._all["tables"][0]["idle"] / MIB


def _figures(
    rows: int, times: dict[str, float], peaks: dict[str, float], floor: float, idle: float
) -> Iterator[Figure]:
    pairs = {what: round(rows / taken) for what, taken in times.items()}
    yield Figure(
        "reconcile",
        pairs["tables"],
        "pairs/s",
        f"a plain merge of whole lines over two COPY streams of {rows:,} rows, which only counts",
        pairs["merge"],
        "at least 500,000 pairs/s",
        pairs["tables"] >= 500_000,
    )
    yield Figure(
        "reconcile floor",
        rounded(times["tables"]),
        "s",
        "the ordered COPY of both tables to /dev/null, side by side, in the server alone",
        rounded(floor),
    )
    yield Figure(
        "reconcile memory",
        rounded(peaks["tables"]),
        "MiB",
        "the peak of the same process before it compares",
        rounded(idle),
        64,
        peaks["tables"] <= 64,
    )
    yield Figure(
        "reconcile memory, 30 % different",
        rounded(peaks["damaged"]),
        "MiB",
        "the peak with 200 differences",
        rounded(peaks["tables"]),
        64,
        peaks["damaged"] <= 64,
    )
    yield Figure(
        "reconcile export",
        pairs["export"],
        "pairs/s",
        "unzipping the same JSON Lines and json.loads of each line, without any comparison",
        pairs["parse"],
        "at least 150,000 pairs/s",
        pairs["export"] >= 150_000,
    )


def make_tables(dsn: str, rows: int) -> None:
    """`truth` and `target` of so many rows."""
    _made(dsn, MAKE.format(rows=rows), "truth", "target")


def _make_damaged(dsn: str) -> None:
    _made(dsn, MAKE_DAMAGED, "damaged")


def _made(dsn: str, statements: str, *tables: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statements)
        for table in tables:
            connection.execute(f"vacuum (full, analyze) {table}")


def _make_export(dsn: str, folder: Path) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        gzip.open(folder / "target.jsonl.gz", "wt", compresslevel=3) as file,
        connection.cursor() as cursor,
        cursor.copy("copy (select * from target order by id) to stdout (format csv)") as copy,
    ):
        for data in copy:
            ((number, status, amount, updated),) = csv.reader(io.StringIO(bytes(data).decode()))
            updated = updated.replace(" ", "T")
            line = {"id": int(number), "status": status, "amount": amount, "updated_at": updated}
            file.write(json.dumps(line) + "\n")


def _floor(dsn: str) -> None:
    def copy(table: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(COPY.format(table=table, where="'/dev/null'"))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(copy, ("truth", "target")))


class _Folder:
    """A folder as a bucket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self, prefix: str) -> Sequence[str]:
        return [prefix]

    def open(self, name: str) -> IO[bytes]:
        return (self._folder / name).open("rb")


def _compare(dsn: str, folder: Path, target: str) -> int:
    """What a task does: compare, and write each finding as a line of JSON."""
    layouts = plan(JOB)
    truth = PostgresRows(dsn, "truth", layouts.truth, Side.TRUTH)
    other: Any
    if target == "export":
        spec = ObjectsSource(kind="objects", location="s3://b/target", format="jsonl", ordered=True)
        other = ObjectRows(_Folder(folder), "target.jsonl.gz", spec, layouts.truth, Side.TARGET)
    else:
        table = "target" if target == "tables" else target
        other = PostgresRows(dsn, table, layouts.truth, Side.TARGET)
    with (folder / "findings.jsonl").open("wb") as file:

        def tell(finding: Finding) -> None:
            file.writelines(json_lines([finding]))

        summary = examine(JOB, truth, other, tell)
    return _candidates(summary.counts)


def _candidates(counts: Counts) -> int:
    if not counts.rows_add_up:
        raise AssertionError(f"The counters do not add up: {counts}")
    return counts.candidates


def _merge(dsn: str) -> int:
    """The plain loop: lines of two COPY streams compared whole, keys parsed where they differ."""
    with (
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn) as other,
        one.cursor().copy(COPY.format(table="truth", where="stdout")) as truth,
        other.cursor().copy(COPY.format(table="target", where="stdout")) as target,
    ):
        return _merged(iter(truth), iter(target))


def _merged(truth: Iterator[Any], target: Iterator[Any]) -> int:
    found = 0
    ours, theirs = next(truth, None), next(target, None)
    while ours is not None and theirs is not None:
        if ours == theirs:
            ours, theirs = next(truth, None), next(target, None)
            continue
        found += 1
        key, other = (int(bytes(line).partition(b"\t")[0]) for line in (ours, theirs))
        if key <= other:
            ours = next(truth, None)
        if other <= key:
            theirs = next(target, None)
    return found + sum(1 for _ in truth) + sum(1 for _ in target)


def _parse(folder: Path) -> int:
    with gzip.open(folder / "target.jsonl.gz") as file:
        return sum(1 for line in file if json.loads(line))


def main(what: str, dsn: str, folder: str) -> dict[str, float]:
    """One measurement in this process."""
    idle = peak_bytes()
    work = {"merge": lambda: _merge(dsn), "parse": lambda: _parse(Path(folder))}.get(
        what, lambda: _compare(dsn, Path(folder), what)
    )
    found: list[int] = []
    taken = seconds(lambda: found.append(work()))
    if not found[0] or (what in ("merge", "tables", "export") and found[0] != PLANTED):
        raise AssertionError(f"{what} found {found[0]} differences, which are not those that were planted")
    return {"seconds": taken, "peak": peak_bytes(), "idle": idle}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
