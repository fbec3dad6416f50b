"""Comparing real stores: what cannot be compared is named, and repairs change only what is as expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from trueup.compare import (
    Applied,
    Change,
    Finding,
    Kind,
    Layout,
    Span,
    State,
    Summary,
    Verdict,
    look_again,
    plan,
)
from trueup.errors import SourceError, Transient
from trueup.local.postgres import postgres
from trueup.model.reconcile import Column, ColumnType, Side
from trueup.model.reconcile_job import Reconciliation
from trueup.sources.dynamodb_rows import DynamoRows
from trueup.sources.postgres_columns import described
from trueup.sources.postgres_rows import PostgresRows

from .plain_values import unique
from .reconcile_cases import job, look


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.fixture
def db(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def table(db: psycopg.Connection[Any], columns: str, *rows: str) -> str:
    name = unique()
    db.execute(f"create table {name} ({columns})")
    for row in rows:
        db.execute(f"insert into {name} values ({row})")  # noqa: S608 - rows of these tests
    return name


def rows_of(dsn: str, name: str, side: Side, of: Reconciliation, where: str = "") -> PostgresRows:
    layouts = plan(of)
    layout = layouts.truth if side is Side.TRUTH else layouts.target
    assert layout is not None
    return PostgresRows(dsn, name, layout, side, where)


def compared(
    dsn: str, truth: str, target: str, of: Reconciliation | None = None
) -> tuple[Summary, list[Finding]]:
    of = of or job()
    return look(of, rows_of(dsn, truth, Side.TRUTH, of), rows_of(dsn, target, Side.TARGET, of))


KEYED = "id bigint primary key, status text, amount numeric(38, 18)"


def test_two_tables_with_planted_damage(dsn: str, db: psycopg.Connection[Any]) -> None:
    truth = table(
        db, KEYED, "1, 'a', 1.10", "2, null, 2", "3, '', 3", "4, 'd', 9007199254740993", "6, 'f', 0"
    )
    target = table(
        db,
        "status text, amount numeric, id int primary key",
        "'a', 1.1, 1",  # the same number
        "'', 2, 2",
        "'', 3.000000000000000001, 3",
        "'d', 9007199254740992, 4",
        "'e', 5, 5",
    )
    summary, findings = compared(dsn, truth, target)

    assert (Verdict.DRIFT, 1) == (summary.judgement.verdict, summary.counts.matched)
    found = [(one.kind, one.key, tuple((d.name, d.reason) for d in one.differences)) for one in findings]
    assert [
        (Kind.MISMATCHED, ("2",), (("status", "NULL in truth, a value in target"),)),
        (Kind.MISMATCHED, ("3",), (("amount", "other value"),)),
        (Kind.MISMATCHED, ("4",), (("amount", "other value"),)),
        (Kind.EXTRA, ("5",), ()),
        (Kind.MISSING, ("6",), ()),
    ] == [(k, key, tuple((n, r.replace("empty", "a value")) for n, r in d)) for k, key, d in found]


def test_the_settings_of_server_role_and_database_do_not_matter(
    dsn: str, db: psycopg.Connection[Any]
) -> None:
    columns: dict[str, Any] = {
        "id": "timestamp",
        "f": "float",
        "b": "bytes",
        "d": "date",
        "j": "json",
        "n": {"type": "timestamp", "truth": {"zone": "Europe/Paris"}, "target": {"zone": "Europe/Paris"}},
    }
    name = table(
        db,
        "id timestamptz primary key, f float8, b bytea, d date, j jsonb, n timestamp",
        "'2013-01-05 01:00+01', 0.1::float8 + 0.2::float8, '\\x00ff', '2013-02-03', '{\"b\": 1}', "
        "'2013-07-01 12:00'",
    )
    options = (
        "-c timezone=Asia/Tokyo -c datestyle=German -c extra_float_digits=-10 -c bytea_output=escape "
        "-c client_encoding=LATIN1"
    )
    odd = psycopg.conninfo.make_conninfo(dsn, options=options)
    of = job(columns)
    one, other = rows_of(dsn, name, Side.TRUTH, of), rows_of(odd, name, Side.TARGET, of)

    assert Verdict.CLEAN is look(of, one, other)[0].judgement.verdict
    (line,) = b"".join(other.scan(Span()).blocks).splitlines()
    assert (
        b"2013-01-05 00:00:00+00\t0.30000000000000004\t\\\\x00ff\t2013-02-03\t"
        b'{"b": 1}\t2013-07-01 10:00:00+00' == line
    )


def test_a_key_that_is_not_unique_is_a_finding(dsn: str, db: psycopg.Connection[Any]) -> None:
    columns = "id bigint, status text, amount numeric"
    truth = table(db, columns, "1, 'a', 1", "1, 'a', 1", "2, 'b', 2")
    target = table(db, columns, "1, 'a', 1", "1, 'a', 1", "2, 'b', 2")
    summary, findings = compared(dsn, truth, target)

    assert Verdict.INCOMPLETE is summary.judgement.verdict
    assert ("1 keys are there more than once on a side, and were not compared",) == summary.judgement.reasons
    assert [(Kind.DUPLICATE, ("1",), "2 rows in truth, 2 in target")] == [
        (one.kind, one.key, one.detail) for one in findings
    ]


def test_a_key_that_is_null_is_a_finding_of_the_first_span_or_its_neighbours(
    dsn: str, db: psycopg.Connection[Any]
) -> None:
    columns = "id bigint, status text, amount numeric"
    truth = table(db, columns, "null, 'a', 1", "2, 'b', 2")
    summary, findings = compared(dsn, truth, table(db, KEYED, "2, 'b', 2"))

    assert Verdict.INCOMPLETE is summary.judgement.verdict
    assert [(Kind.UNREADABLE, None, "key column id is NULL")] == [
        (one.kind, one.key, one.detail) for one in findings
    ]


BAD_TABLES = [
    pytest.param("id bigint primary key, status text", "no column amount", id="a column is missing"),
    pytest.param(
        "id bigint primary key, status text, amount float8",
        "amount of table .* is float8, which cannot be compared as decimal. .*declare it as `float`",
        id="a float for money",
    ),
    pytest.param(
        "id bigint primary key, status text, amount point", "is point, which cannot be compared", id="a point"
    ),
]


@pytest.mark.parametrize(("columns", "what"), BAD_TABLES)
def test_a_table_that_is_not_as_declared_is_an_error_that_says_which(
    dsn: str, db: psycopg.Connection[Any], columns: str, what: str
) -> None:
    name = table(db, columns)
    with pytest.raises(SourceError, match=what) as raised:
        rows_of(dsn, name, Side.TARGET, job()).scan(Span())
    assert name in str(raised.value)
    assert "target" in str(raised.value)

    summary, _ = compared(dsn, table(db, KEYED, "1, 'a', 1"), name)
    assert (Verdict.ERROR, (str(raised.value),)) == (
        summary.judgement.verdict,
        summary.judgement.reasons[:1],
    )


def test_a_naive_timestamp_needs_a_zone(dsn: str, db: psycopg.Connection[Any]) -> None:
    name = table(db, "id bigint primary key, at timestamp")
    with pytest.raises(SourceError, match="has no time zone: declare in which"):
        rows_of(dsn, name, Side.TRUTH, job({"id": "integer", "at": "timestamp"})).scan(Span())


def test_a_database_that_cannot_be_reached_is_an_error_that_says_which(
    dsn: str, db: psycopg.Connection[Any]
) -> None:
    of = job()
    name = table(db, KEYED, "1, 'a', 1")
    gone = PostgresRows("host=/nowhere dbname=x", "cases", plan(of).truth, Side.TARGET)
    summary, _ = look(of, rows_of(dsn, name, Side.TRUTH, of), gone)

    assert Verdict.ERROR is summary.judgement.verdict
    assert "Table cases in PostgreSQL, the target, cannot be read" in summary.judgement.reasons[0]


def test_an_empty_side_is_not_clean_unless_that_is_allowed(dsn: str, db: psycopg.Connection[Any]) -> None:
    empty, other = table(db, KEYED), table(db, KEYED)
    assert Verdict.INCOMPLETE is compared(dsn, empty, other)[0].judgement.verdict
    assert Verdict.CLEAN is compared(dsn, empty, other, job(empty="allowed"))[0].judgement.verdict


def test_a_policy_that_hides_rows_is_an_error(dsn: str, db: psycopg.Connection[Any]) -> None:
    name, role = table(db, KEYED, "1, 'a', 1"), unique()
    db.execute(f"create role {role} login; grant select on {name} to {role}")
    db.execute(f"alter table {name} enable row level security")
    limited = psycopg.conninfo.make_conninfo(dsn, user=role)
    with pytest.raises(SourceError, match="row-level security"):
        list(rows_of(limited, name, Side.TRUTH, job()).scan(Span()).blocks)


def test_only_a_unique_index_over_all_rows_warrants_the_order(dsn: str, db: psycopg.Connection[Any]) -> None:
    plain = "id bigint not null, status text, amount numeric"
    made = {
        "a primary key": (KEYED, ""),
        "no index": (plain, ""),
        "a partial one": (plain, "create unique index on {0} (id) where id > 5"),
        "one that may have NULLs": ("id bigint unique, status text, amount numeric", ""),
        "one over more columns": (plain, "create unique index on {0} (id, status)"),
        "a table with children": (KEYED, "create table {0}_child () inherits ({0})"),
    }
    distinct = {}
    for what, (columns, then) in made.items():
        name = table(db, columns)
        if then:
            db.execute(then.format(name))
        distinct[what] = rows_of(dsn, name, Side.TRUTH, job()).scan(Span()).distinct
    assert {what: what == "a primary key" for what in made} == distinct


def test_text_is_ordered_by_bytes_where_its_collation_is_another(
    dsn: str, db: psycopg.Connection[Any]
) -> None:
    layout = Layout((Column(name="id", type=ColumnType.TEXT),))
    orders = {}
    for collation in ("C", "pg_c_utf8"):
        name = table(db, f'id text collate "{collation}" primary key')
        (column,), _ = described(db, name, layout, Side.TRUTH)
        orders[collation] = column.order.as_string(db)
    assert {"C": '"id"', "pg_c_utf8": '("id") collate "C"'} == orders


# Repairs.


def items_in(client: Any) -> str:
    """A table of DynamoDB with two items."""
    name = unique()
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName=name, Item={"id": {"N": "1"}, "status": {"S": "a"}, "amount": {"N": "1.0"}})
    client.put_item(TableName=name, Item={"id": {"N": "2"}, "amount": {"N": "2"}, "other": {"S": "kept"}})
    return name


@pytest.mark.parametrize("store", ["postgres", "dynamodb"])
def test_a_change_is_made_only_where_the_row_is_as_expected(
    store: str, dsn: str, db: psycopg.Connection[Any], moto_clients: dict[str, Any]
) -> None:
    of = job()
    source: Any
    if store == "postgres":
        source = rows_of(dsn, table(db, KEYED, "1, 'a', 1", "2, null, 2"), Side.TARGET, of)
    else:
        client, name = moto_clients["dynamodb"], items_in(moto_clients["dynamodb"])
        source = DynamoRows(client, name, plan(of).truth, Side.TARGET)

    def rows() -> list[bytes]:
        found = source.fetch([(str(number),) for number in range(1, 6)])
        return sorted(line for lines in found.values() for line in lines)

    stale = [
        Change(("1",), b"1\ta\t2", b"1\tb\t2"),  # another amount than expected
        Change(("1",), b"1\t\\N\t1", b"1\tb\t1"),  # expected NULL
        Change(("1",), None, b"1\tb\t1"),  # expected to be absent
        Change(("1",), b"1\tb\t1", None),
        Change(("5",), b"5\tb\t1", b"5\tc\t1"),  # is not there
        Change(("5",), b"5\tb\t1", None),
    ]
    before = rows()
    assert [Applied.STALE_TARGET] * len(stale) == [source.apply(change) for change in stale]
    assert before == rows() == [b"1\ta\t1", b"2\t\\N\t2"]

    made = [
        Change(("1",), b"1\ta\t1", b"1\t\\N\t1.5"),
        Change(("2",), b"2\t\\N\t2", b"2\tit's\\t\t2"),
        Change(("3",), None, b"3\t\t9007199254740993"),
    ]
    assert [Applied.APPLIED] * len(made) == [source.apply(change) for change in made]
    assert [b"1\t\\N\t1.5", b"2\tit's\\t\t2", b"3\t\t9007199254740993"] == rows()
    # Once more it is no longer as expected; and back again by the same means.
    assert [Applied.STALE_TARGET] * len(made) == [source.apply(change) for change in made]
    undo = [Change(one.key, one.wanted, one.expected) for one in made]
    assert [Applied.APPLIED] * len(undo) == [source.apply(change) for change in undo]
    assert before == rows()
    if store == "postgres":
        source.close()


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ("add constraint short check (length(status) < 9)", 'violates check constraint "short"'),
        ("alter status type varchar(8)", "StringDataRightTruncation (SQLSTATE 22001"),
    ],
)
def test_why_a_row_is_not_taken_is_told_without_its_values(
    constraint: str, told: str, dsn: str, db: psycopg.Connection[Any]
) -> None:
    name = table(db, KEYED, "1, 'a', 1")
    db.execute(f"alter table {name} {constraint}")
    with pytest.raises(SourceError, match=re.escape(told)) as refused:
        rows_of(dsn, name, Side.TARGET, job()).apply(Change(("1",), b"1\ta\t1", b"1\tsecret-secret\t1"))
    assert "secret" not in str(refused.value)


def test_changes_share_a_connection_that_is_made_anew_after_a_loss(
    dsn: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[psycopg.Connection[Any]] = []
    connect = psycopg.connect

    def counted(*args: Any, **options: Any) -> psycopg.Connection[Any]:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", counted)
    source = rows_of(dsn, table(db, KEYED + " check (amount < 100)", "1, 'a', 1"), Side.TARGET, job())
    there, back = (Change(("1",), b"1\ta\t1", b"1\tb\t1"), Change(("1",), b"1\tb\t1", b"1\ta\t1"))
    assert [Applied.APPLIED] * 4 == [source.apply(change) for change in (there, back) * 2]
    assert 1 == len(made)

    db.execute("select pg_terminate_backend(%s)", [made[0].info.backend_pid])
    with pytest.raises(Transient, match="cannot be read or changed"):
        source.apply(there)
    assert Applied.APPLIED is source.apply(there)
    assert 2 == len(made)
    # What the table refuses is undone with its connection, and the next change is none the worse.
    with pytest.raises(SourceError, match="check constraint"):
        source.apply(Change(("1",), b"1\tb\t1", b"1\tb\t100"))
    assert Applied.APPLIED is source.apply(back)

    source.close()
    assert all(one.closed for one in made)
    assert Applied.APPLIED is source.apply(there)
    source.close()


def test_items_that_do_not_begin_as_declared_are_not_there(moto_clients: dict[str, Any]) -> None:
    client = moto_clients["dynamodb"]
    name = items_in(client)
    client.put_item(TableName=name, Item={"id": {"N": "3"}, "status": {"S": "ab"}, "amount": {"N": "3"}})
    source = DynamoRows(client, name, plan(job()).truth, Side.TARGET, begins={"status": "a"}, segments=2)
    assert [b"1\ta\t1", b"3\tab\t3"] == sorted(b"".join(source.scan(Span()).blocks).splitlines())
    assert {("1",): [b"1\ta\t1"]} == source.fetch([("1",), ("2",)])
    # An item that is left out is nobody's to write over.
    assert Applied.STALE_TARGET is source.apply(Change(("2",), None, b"2\tab\t2"))
    assert Applied.APPLIED is source.apply(Change(("3",), b"3\tab\t3", b"3\ta\t3"))


class Counted:
    """A client that calls `then` after each count, and loses the items that it does not keep."""

    def __init__(self, client: Any, then: Callable[[], None], keeps: Callable[[Any], bool]) -> None:
        self._client, self._then, self._keeps = client, then, keeps
        self.counts = 0

    def scan(self, **options: Any) -> Any:
        page = self._client.scan(**options)
        if "Select" in options:
            self.counts += 1
            self._then()
        else:
            page["Items"] = list(filter(self._keeps, page["Items"]))
        return page


def counted(client: Any, name: str, span: Span, **more: Any) -> tuple[int, int | None, int]:
    """How many rows a scan gave and proved, and how many counts it took."""
    there = Counted(client, more.pop("then", lambda: None), more.pop("keeps", lambda _: True))
    scan = DynamoRows(there, name, plan(job()).truth, Side.TARGET, counts=True, **more).scan(span)
    rows = b"".join(scan.blocks).count(b"\n")
    return rows, scan.counted, there.counts


def test_a_scan_of_dynamodb_is_proved_by_a_count_of_its_own(moto_clients: dict[str, Any]) -> None:
    client = moto_clients["dynamodb"]
    name = items_in(client)
    assert (2, 2, 1) == counted(client, name, Span())
    assert (1, 1, 1) == counted(client, name, Span(("2",), None))
    assert (2, 2, 2) == counted(client, name, Span(), segments=2)
    assert (1, 1, 1) == counted(client, name, Span(), begins={"status": "a"})
    plain = DynamoRows(client, name, plan(job()).truth, Side.TARGET).scan(Span())
    assert (2, None) == (b"".join(plain.blocks).count(b"\n"), plain.counted)


def test_of_a_table_that_is_written_to_nothing_is_proved_and_nothing_is_wrong(
    moto_clients: dict[str, Any],
) -> None:
    client = moto_clients["dynamodb"]
    name = items_in(client)

    def write() -> None:
        client.put_item(TableName=name, Item={"id": {"N": "3"}, "amount": {"N": "3"}})

    assert (3, None, 2) == counted(client, name, Span(), then=write)


def test_a_scan_that_lost_an_item_is_an_error_that_says_both_numbers(moto_clients: dict[str, Any]) -> None:
    client = moto_clients["dynamodb"]
    name = items_in(client)
    said = f"1 items of the table {name}, the target, were read, and DynamoDB counted 2 before and after"
    with pytest.raises(SourceError, match=said):
        counted(client, name, Span(), keeps=lambda item: item["id"] == {"N": "1"})


@pytest.mark.parametrize("meanwhile", ["nobody", "somebody else"])
@pytest.mark.parametrize("wanted", [b"1\tb\t1", None], ids=["update", "delete"])
def test_a_write_whose_answer_was_lost_is_ours_unless_somebody_came_in(
    moto_clients: dict[str, Any], wanted: bytes | None, meanwhile: str
) -> None:
    client = moto_clients["dynamodb"]
    name = items_in(client)
    source = DynamoRows(client, name, plan(job()).truth, Side.TARGET)
    lost = iter([True])

    def try_again(**answered: Any) -> int | None:
        """What botocore asks after each answer: the first one counts as if it had not come."""
        if not next(lost, False):
            return None
        if meanwhile == "somebody else":
            theirs = {"id": {"N": "1"}, "status": {"S": "theirs"}}
            client.put_item(TableName=name, Item=theirs)
        return 0

    operation = "DeleteItem" if wanted is None else "UpdateItem"
    client.meta.events.register_first(f"needs-retry.dynamodb.{operation}", try_again)
    try:
        applied = source.apply(Change(("1",), b"1\ta\t1", wanted))
    finally:
        client.meta.events.unregister(f"needs-retry.dynamodb.{operation}", try_again)
    assert (Applied.APPLIED if meanwhile == "nobody" else Applied.STALE_TARGET) is applied


def test_a_table_without_a_unique_key_is_not_repaired(dsn: str, db: psycopg.Connection[Any]) -> None:
    name = table(db, "id bigint, status text, amount numeric", "1, 'a', 1")
    with pytest.raises(SourceError, match="no unique index"):
        rows_of(dsn, name, Side.TARGET, job()).apply(Change(("1",), b"1\ta\t1", b"1\tb\t1"))


# In flight.


def test_a_second_look_tells_what_was_in_flight(dsn: str, db: psycopg.Connection[Any]) -> None:
    of = job(lag=2)
    truth = table(db, KEYED, "1, 'a', 1", "2, 'b', 2", "3, 'c', 3")
    target = table(db, KEYED, "1, 'x', 1", "2, 'x', 2", "3, 'x', 3")
    sides = (rows_of(dsn, truth, Side.TRUTH, of), rows_of(dsn, target, Side.TARGET, of))
    summary, findings = look(of, *sides)
    assert Verdict.INCOMPLETE is summary.judgement.verdict

    db.execute(
        f"update {target} set status = case id when 2 then 'b' when 3 then 'y' else status end"  # noqa: S608
    )
    settled = {one.key: one.state for one in look_again(of, *sides, findings)}
    assert {("1",): State.CONFIRMED, ("2",): State.RESOLVED, ("3",): State.MOVING} == settled


# Exports and files.
