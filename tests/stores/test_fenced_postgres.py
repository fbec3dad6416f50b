"""The guard `transaction` on PostgreSQL: once a newer task raised the fence, an older one changes no row."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from trueup import Outcome, Superseded, Transient
from trueup.errors import JobError
from trueup.local.postgres import postgres
from trueup.sources.postgres import FencedTable, create_fence_table

from .postgres_cases import COLUMNS, PART, Database, row, upsert


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    with postgres() as dsn:
        create_fence_table(dsn)
        yield dsn


@pytest.fixture
def db(dsn: str) -> Iterator[Database]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield Database(dsn, connection)


def test_rows_are_counted_as_written_or_unchanged(db: Database) -> None:
    with db.owner(fence=5) as table:
        assert Outcome(written=2) == upsert(table, [row(1), row(2)], 5)
        # 1 as it was, 2 with another value, 3 new
        assert Outcome(written=2, unchanged=1) == upsert(table, [row(1), row(2, "b"), row(3)], 5)
    assert {1: "a", 2: "b", 3: "a"} == db.names()


def test_an_amount_of_nothing_differs_from_an_amount(db: Database) -> None:
    with db.owner(fence=5) as table:
        upsert(table, [row(1, amount=None), row(2, amount=0)], 5)
        assert Outcome(unchanged=2) == upsert(table, [row(1, amount=None), row(2, amount=0)], 5)
        assert Outcome(written=2) == upsert(table, [row(1, amount=0), row(2, amount=None)], 5)


def test_a_lower_fence_is_superseded_and_lowers_nothing(db: Database) -> None:
    with db.owner(fence=7) as newer, db.owner() as older:
        with pytest.raises(Superseded, match=f"{db.name}, partition {PART}, is 7; ours is 6") as caught:
            older.raise_fence(PART, 6)
        assert (6, 7) == (caught.value.ours, caught.value.theirs)
        newer.raise_fence(PART, 7)
    assert [(7,)] == db.sql("select fence from trueup_fence where target = %s", db.name)


def test_a_task_that_wakes_after_the_fence_was_raised_changes_no_row(db: Database) -> None:
    with db.owner(fence=5) as zombie, db.owner() as newer:
        upsert(zombie, [row(1, "old")], 5)
        newer.raise_fence(PART, 6)
        with pytest.raises(Superseded) as caught:
            upsert(zombie, [row(1, "zombie"), row(2, "zombie")], 5)
        assert (5, 6) == (caught.value.ours, caught.value.theirs)
    assert {1: "old"} == db.names()


def test_partitions_and_targets_have_fences_of_their_own(db: Database) -> None:
    with db.owner(fence=5) as table, db.owner(fence=9, target="elsewhere"):
        table.raise_fence("date=2013-01-06", 8)
        assert Outcome(written=1) == upsert(table, [row(1)], 5)


@pytest.mark.parametrize(("raised", "found"), [(None, "was never raised; ours is 5"), (4, "is 4; ours is 5")])
def test_a_write_whose_fence_was_not_raised_is_an_error(db: Database, raised: int | None, found: str) -> None:
    with db.owner(raised) as table, pytest.raises(JobError, match=found):
        upsert(table, [row(1)], 5)
    assert {} == db.names()


# A task that is frozen between its check of the fence and its commit: a lock of the test holds it there.


def test_raising_the_fence_waits_for_a_write_that_has_checked_and_not_committed(db: Database) -> None:
    with db.owner(5) as zombie, db.owner() as newer, ThreadPoolExecutor() as pool:
        db.hold()
        frozen = pool.submit(upsert, zombie, [row(1, "wait")], 5)
        db.wait_until_blocked(1)
        raising = pool.submit(newer.raise_fence, PART, 6)
        db.wait_until_blocked(2)
        assert {} == db.names()
        db.let_go()
        raising.result()
        assert {1: "wait"} == db.names()  # committed by the time the fence was raised, and not later
        assert Outcome(written=1) == frozen.result()
        assert Outcome(written=1) == upsert(newer, [row(1, "newer")], 6)
        with pytest.raises(Superseded):
            upsert(zombie, [row(1, "zombie")], 5)
    assert {1: "newer"} == db.names()


def test_a_write_that_never_ends_is_ended_by_the_server_and_the_newer_task_goes_on(db: Database) -> None:
    with (
        db.owner(5, statement_seconds=1) as zombie,
        db.owner() as newer,
        ThreadPoolExecutor() as pool,
    ):
        db.hold()
        frozen = pool.submit(upsert, zombie, [row(1, "wait"), row(2)], 5)
        db.wait_until_blocked(1)
        newer.raise_fence(
            PART, 6
        )  # the lock of the test is still held: only the time limit can have ended it
        with pytest.raises(Transient, match="statement timeout"):
            frozen.result()
        db.let_go()
        with pytest.raises(Superseded):
            upsert(zombie, [row(1, "zombie")], 5)
    assert {} == db.names()


def test_a_task_that_began_to_wait_before_the_fence_rose_finds_the_risen_one(db: Database) -> None:
    with db.owner(5) as zombie, psycopg.connect(db.dsn) as newer, ThreadPoolExecutor() as pool:
        newer.execute("update trueup_fence set fence = 6 where target = %s", [db.name])
        late = pool.submit(upsert, zombie, [row(1, "zombie")], 5)
        db.wait_until_blocked(1)
        newer.commit()
        with pytest.raises(Superseded):
            late.result()
    assert {} == db.names()


FROZEN = """
import sys
from trueup.sources.postgres import FencedTable
table = FencedTable(sys.argv[1], sys.argv[2], ["id", "name", "amount"], ["id"], statement_seconds=60)
for name in ("wait", "zombie"):
    try:
        table.upsert([{"id": 1, "name": name, "amount": 1}], sys.argv[3], 5)
    except Exception as error:
        print(type(error).__name__)
"""


def test_a_process_stopped_in_the_middle_of_a_write_holds_nothing_and_wakes_superseded(db: Database) -> None:
    with db.owner(5), db.owner() as newer:
        db.hold()
        argv = [sys.executable, "-c", FROZEN, db.dsn, db.name, PART]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as zombie:
            db.wait_until_blocked(1)
            zombie.send_signal(signal.SIGSTOP)
            db.let_go()
            newer.raise_fence(PART, 6)
            assert Outcome(written=1) == upsert(newer, [row(1, "newer")], 6)
            zombie.send_signal(signal.SIGCONT)
            said, _ = zombie.communicate()
    assert "Superseded\n" == said
    assert {1: "newer"} == db.names()


def test_threads_of_one_task_write_side_by_side(db: Database) -> None:
    def work(first: int) -> Outcome:
        with db.owner() as table:
            return upsert(table, [row(first + n, "wait") for n in range(50)], 5)

    with db.owner(5), ThreadPoolExecutor(4) as pool:
        db.hold()
        working = [pool.submit(work, first) for first in (0, 50, 100, 150)]
        db.wait_until_blocked(4)  # all of them hold the fence, and wait for the test only
        db.let_go()
        assert [Outcome(written=50)] * 4 == [one.result() for one in working]


# Rows that are refused, errors that pass, and rules that the author broke.


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(2, amount=-1), "amounts_.*_amount_check"),
        (row(2, name=None), "null value in column"),  # type: ignore[arg-type]
        (row(2, amount="twelve"), "invalid input syntax for type numeric"),
        (row(2, name="much too long a name"), "value too long"),
        (row(2, name="nul\x00"), "unsupported Unicode escape sequence"),
        (row(2, name="raise P0001"), "told to"),
    ],
    ids=["check", "not null", "type", "length", "nul", "trigger"],
)
def test_a_row_that_the_table_does_not_take_is_refused_and_the_others_are_written(
    db: Database, bad: Any, reason: str
) -> None:
    with db.owner(5) as table:
        outcome = table.upsert([row(1), bad, *(row(n) for n in range(3, 8))], PART, 5)
    assert (6, 0) == (outcome.written, outcome.unchanged)
    ((refused, why),) = outcome.refused
    assert refused is bad
    assert re.search(reason, why)
    assert {1, 3, 4, 5, 6, 7} == set(db.names())


def test_all_rows_may_be_refused(db: Database) -> None:
    with db.owner(5) as table:
        outcome = table.upsert([row(n, amount=-n) for n in range(1, 6)], PART, 5)
    assert (0, 0, 5) == (outcome.written, outcome.unchanged, len(outcome.refused))
    assert {} == db.names()


@pytest.mark.parametrize(
    "state", ["40001", "40P01", "55P03", "57014", "53200", "08006", "25006", "57P01", "25P04"]
)
def test_an_error_that_passes_is_transient_and_writes_nothing(db: Database, state: str) -> None:
    with db.owner(5) as table, pytest.raises(Transient, match="told to"):
        upsert(table, [row(1), row(2, f"raise {state}")], 5)
    assert {} == db.names()


def test_a_lost_connection_is_transient_and_the_next_write_has_a_new_one(db: Database) -> None:
    with db.owner(5) as table:
        end = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where query like %s"
        assert [(True,)] == db.sql(
            f"{end} and pid <> pg_backend_pid()", f"%insert into trueup_fence%'{db.name}'%"
        )
        with pytest.raises(Transient):
            upsert(table, [row(1)], 5)
        assert Outcome(written=1) == upsert(table, [row(1)], 5)


def test_a_server_that_is_not_there_is_transient() -> None:
    with pytest.raises(Transient, match="did not answer"):
        FencedTable("host=/nonexistent", "any", COLUMNS, ["id"]).raise_fence(PART, 1)


def test_an_error_that_does_not_pass_keeps_its_name(db: Database) -> None:
    db.sql("drop table {}")
    with db.owner(5) as table, pytest.raises(psycopg.errors.UndefinedTable):
        upsert(table, [row(1)], 5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": 1, "name": "a"}], r"has other columns \(amount\)"),
        ([{**row(1), "amuont": 2}], r"has other columns \(amuont\)"),
        ([{**row(1), None: []}], r"has other columns \(None\)"),
        ([row(None)], "lacks a part of its key"),  # type: ignore[arg-type]
        ([row(1), row(2), row(1, "b")], "has the key of another one"),
        ([row(1), row("1")], "same key"),  # type: ignore[arg-type]
        ([row(1, amount={1, 2})], "set cannot be written"),
    ],
)
def test_a_row_that_breaks_the_rules_is_an_error_and_nothing_is_written(
    db: Database, rows: Any, message: str
) -> None:
    with db.owner(5) as table, pytest.raises(JobError, match=message):
        upsert(table, rows, 5)
    assert {} == db.names()


def test_a_key_outside_the_columns_is_an_error() -> None:
    with pytest.raises(JobError, match=r"key of t \(b\) is not among its columns: a"):
        FencedTable("", "t", ["a"], ["b"])


def test_without_psycopg_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(JobError, match=r"trueup\[postgres\]"):
        FencedTable("", "any", COLUMNS, ["id"]).raise_fence(PART, 1)


VALUES = {
    "integer": 7,
    "numeric": Decimal("1234567890.12345678901234567890"),
    "double precision": 0.1,
    "boolean": False,
    "text": "it's 100 % {x} \\ \"é\" 'null'",
    "date": date(2013, 1, 5),
    "timestamptz": datetime(2013, 1, 5, 10, 30, 0, 123456, UTC),
    "interval": timedelta(days=1, seconds=2),
    "uuid": UUID("12345678123456781234567812345678"),
    "bytea": b"\x00\xff'",
    "jsonb": {"a": [1, None, "x"]},
    "int[]": [1, None, 3],
}


@pytest.mark.parametrize("type_", VALUES)
def test_a_value_read_back_is_the_value_and_unchanged_the_next_time(db: Database, type_: str) -> None:
    db.sql(f"alter table {db.name} add value {type_}")
    wanted = {**row(1), "value": VALUES[type_]}
    with db.owner(5, columns=(*COLUMNS, "value")) as table:
        assert Outcome(written=1) == upsert(table, [wanted], 5)
        assert Outcome(unchanged=1) == upsert(table, [wanted], 5)
    assert [(VALUES[type_],)] == db.sql("select value from {}")


def test_numbers_that_json_does_not_have_are_written(db: Database) -> None:
    with db.owner(5) as table:
        upsert(table, [row(1, amount=float("nan")), row(2, amount=float("inf"))], 5)
    assert [("NaN",), ("Infinity",)] == db.sql("select amount::text from {} order by id")


def test_names_are_quoted(db: Database) -> None:
    table, odd = f'Odd "{db.name}"', ('se"lect', "%s", "{x}", "Old")
    columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(one)) for one in odd)
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create schema if not exists odd")
        new = sql.SQL("create table odd.{} ({}, primary key ({}))")
        connection.execute(new.format(sql.Identifier(table), columns, sql.Identifier(odd[0])))
    with closing(FencedTable(db.dsn, f"odd.{table}", odd, [odd[0]])) as fenced:
        fenced.raise_fence("it's", 1)
        outcome = fenced.upsert([dict.fromkeys(odd, "'; drop table trueup_fence")], "it's", 1)
    assert (1, 0) == (outcome.written, outcome.unchanged)


def test_a_table_of_keys_only_has_unchanged_rows_too(db: Database) -> None:
    db.sql("drop trigger obey on {}")
    db.sql("alter table {} drop name, drop amount")
    with db.owner(5, columns=["id"]) as table:
        assert Outcome(written=1) == upsert(table, [{"id": 1}], 5)
        assert Outcome(written=1, unchanged=1) == upsert(table, [{"id": 1}, {"id": 2}], 5)


def test_the_fence_table_may_be_created_many_times_at_once(db: Database) -> None:
    another = f"another_{db.name}"
    db.sql(f"create database {another}")
    with ThreadPoolExecutor(8) as pool:
        assert [None] * 8 == list(pool.map(create_fence_table, [f"{db.dsn} dbname={another}"] * 8))


def test_no_rows_are_no_call() -> None:
    assert Outcome() == upsert(FencedTable("", "any", COLUMNS, ["id"]), [], 1)


AMOUNTS = st.dictionaries(st.integers(0, 9), st.integers(-1, 2), max_size=10)


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(AMOUNTS, max_size=6))
def test_however_rows_are_split_and_repeated_the_table_and_the_sums_are_exact(
    dsn: str, batches: list[dict[int, int]]
) -> None:
    model: dict[int, int] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        db = Database(dsn, connection)
        for fence, batch in enumerate(batches, 1):
            good = {number: amount for number, amount in batch.items() if amount >= 0}
            changed = sum(model.get(number) != amount for number, amount in good.items())
            with db.owner(fence) as table:
                outcome = table.upsert([row(n, amount=amount) for n, amount in batch.items()], PART, fence)
            assert (changed, len(good) - changed) == (outcome.written, outcome.unchanged)
            assert batch.keys() - good.keys() == {refused["id"] for refused, _ in outcome.refused}
            model |= good
        assert model == dict(db.sql("select id, amount from {}"))
