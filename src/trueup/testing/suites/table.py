"""What any table of a ledger must do."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from typing import Any

from trueup.ledger.table import Clause, ConditionFailed, Item, Key, Table, TransactionFailed, Write
from trueup.testing.suites.support import in_threads, refusal, unique

ITEM: Item = {
    "status": "RUNNING",
    "a.b": 7,
    "large": 2**53 - 1,
    "negative": -3,
    "share": 0.1,
    "tiny": 1e-9,
    "whole": 2.0,
    "empty": "",
    "none": None,
    "yes": True,
    "list": [1, "two", None, [3.5]],
    "map": {"name": {"deep": [False]}, "S": {"N": "named like a type"}},
}

# operator, value asked for -> attribute values that satisfy it, and that do not
OPERATORS: list[tuple[Any, Any, list[Any], list[Any]]] = [
    ("=", 5, [5, 5.0], [4, 6, "5", None, True]),
    ("=", "b", ["b"], ["a", "c", "", 1, None]),
    ("<", 5, [4, 4.5, -1], [5, 6]),
    ("<", "b", ["a", ""], ["b", "c"]),
    ("<=", 5, [4, 5, 5.0], [5.5, 6]),
    (">", 5, [6, 5.5], [5, 5.0, 4]),
    (">", "b", ["c", "ba"], ["b", "a", ""]),
    ("in", ["a", "b"], ["a", "b"], ["c", "", 1, None]),
    ("in", [str(number) for number in range(100)], ["0", "99"], ["100"]),
    ("absent", None, [], [1, None, ""]),
    ("present", None, [1, None, ""], []),
]


def _key(name: str = "item") -> Key:
    return unique(name), "A"


def _clause(op: Any = "=", value: Any = None, *, or_absent: bool = False) -> Clause:
    return Clause("the status is as asked", "status", op, value, or_absent)


class TableSuite:
    """Tests for any `trueup.ledger.table.Table`; needs the fixture `table`."""

    def test_an_item_that_was_never_written_is_none(self, table: Table) -> None:
        assert table.get(_key()) is None

    def test_every_kind_of_value_is_read_back_as_it_was_written(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item=ITEM))
        assert table.get(key) == ITEM

    def test_values_that_no_table_can_hold_are_refused(self, table: Table) -> None:
        for value in (float("nan"), float("inf"), object(), {1, 2}):
            assert "cannot hold" in str(refusal(TypeError, table.write, Write(_key(), sets={"a": value})))

    def test_what_a_read_gives_is_the_callers_own(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item={"list": [1]}))
        (table.get(key) or {})["list"].append(2)
        assert table.get(key) == {"list": [1]}

    def test_a_write_returns_the_item_that_was_there_before(self, table: Table) -> None:
        key = _key()
        assert table.write(Write(key, sets={"a": 1})) is None
        assert table.write(Write(key, sets={"a": 2})) == {"a": 1}
        assert table.write(Write(key, item={"b": 1})) == {"a": 2}
        assert table.write(Write(key, delete=True)) == {"b": 1}
        assert table.write(Write(key, delete=True)) is None

    def test_one_write_sets_adds_and_removes(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item={"a": 1, "n": 5, "gone": "x", "stays": [1]}))
        table.write(Write(key, sets={"a": 2}, adds={"n": -2, "new": 3}, removes=("gone", "never there")))
        assert table.get(key) == {"a": 2, "n": 3, "new": 3, "stays": [1]}

    def test_what_a_write_says_of_itself_is_what_the_table_does(self, table: Table) -> None:
        key = _key()
        write = Write(key, sets={"a": 2}, adds={"n": 1}, removes=("gone",))
        old = table.write(Write(key, item={"gone": 1, "n": 1}))
        assert old is None
        assert write.applied_to(table.write(write)) == table.get(key)

    def test_a_put_replaces_the_whole_item(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item={"a": 1, "b": 1}))
        table.write(Write(key, item={"b": 2}))
        assert table.get(key) == {"b": 2}

    def test_a_delete_leaves_nothing(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item={"a": 1}))
        table.write(Write(key, delete=True))
        assert table.get(key) is None

    def test_every_condition_holds_where_it_says_so_and_nowhere_else(self, table: Table) -> None:
        key = _key()
        for op, value, good, bad in OPERATORS:
            for found in [*good, *bad]:
                table.write(Write(key, item={"status": found}))
                expected = (op, value, found, found in good and type(found) is not bool)
                assert expected == (op, value, found, _passes(table, key, _clause(op, value)))

    def test_an_absent_attribute_satisfies_only_what_says_so(self, table: Table) -> None:
        for item in (None, {"other": 1}):
            key = _key()
            if item:
                table.write(Write(key, item=item))
            for op, value, _, _ in OPERATORS:
                assert _passes(table, key, _clause(op, value)) is (op == "absent"), (op, item)
                assert _passes(table, key, _clause(op, value, or_absent=True)), (op, item)

    def test_a_refused_write_changes_nothing_and_shows_both_sides(self, table: Table) -> None:
        key = _key()
        table.write(Write(key, item=ITEM))
        mine = Clause("the launch is still ours", "a.b", "=", 8)
        for change in ({"sets": {"status": "X"}}, {"item": {"status": "X"}}, {"delete": True}):
            write = Write(key, clauses=(_clause("present"), mine), **change)
            error = refusal(ConditionFailed, table.write, write)
            assert (mine, write, ITEM, mine.name) == (error.clause, error.write, error.old, str(error))
        assert table.get(key) == ITEM

    def test_a_refusal_without_an_item_shows_none(self, table: Table) -> None:
        error = refusal(
            ConditionFailed, table.write, Write(_key(), sets={"a": 1}, clauses=(_clause("present"),))
        )
        assert error.old is None

    def test_a_check_alone_is_no_write(self, table: Table) -> None:
        key = _key()
        refusal(ValueError, table.write, Write(key, clauses=(_clause("absent"),)))
        assert table.get(key) is None

    def test_a_transaction_writes_everything(self, table: Table) -> None:
        put, update, delete, check = (_key(name) for name in ("put", "update", "delete", "check"))
        for key in (update, delete, check):
            table.write(Write(key, item={"status": "A", "n": 1}))
        held = _clause("=", "A")
        writes = [
            Write(put, item={"a": 1}),
            Write(update, adds={"n": 1}, clauses=(held,)),
            Write(delete, delete=True, clauses=(held,)),
            Write(check, clauses=(held,)),
        ]
        table.transact(writes)
        after = [table.get(key) for key in (put, update, delete, check)]
        assert [{"a": 1}, {"status": "A", "n": 2}, None, {"status": "A", "n": 1}] == after

    def test_a_refused_transaction_writes_nothing_and_names_each_refusal(self, table: Table) -> None:
        good, bad, gone = (_key(name) for name in ("good", "bad", "gone"))
        table.write(Write(bad, item={"status": "B"}))
        writes = [
            Write(good, item={"a": 1}),
            Write(bad, sets={"a": 1}, clauses=(_clause("=", "A"),)),
            Write(gone, clauses=(_clause("present"),)),
        ]
        failed = refusal(TransactionFailed, table.transact, writes)
        assert [bad, gone] == [refused.write.key for refused in failed.refusals]
        assert [{"status": "B"}, None] == [refused.old for refused in failed.refusals]
        assert failed.of(good) is None
        assert [None, {"status": "B"}] == [table.get(good), table.get(bad)]

    def test_a_transaction_takes_a_hundred_writes_and_no_more(self, table: Table) -> None:
        pk = unique("hundred")
        writes = [Write((pk, f"{number:03d}"), sets={"n": number}) for number in range(101)]
        refusal(ValueError, table.transact, writes)
        refusal(ValueError, table.transact, [])
        table.transact(writes[:100])
        assert list(range(100)) == [item["n"] for item in table.query(pk)]

    def test_a_transaction_names_no_item_twice(self, table: Table) -> None:
        key = _key()
        refusal(
            ValueError, table.transact, [Write(key, sets={"a": 1}), Write(key, clauses=(_clause("absent"),))]
        )
        assert table.get(key) is None

    def test_an_item_takes_400_kilobytes_and_no_more(self, table: Table) -> None:
        key = _key()
        fits, too_large = ({"texts": ["é" * 1_000] * number, "n": 1} for number in (200, 205))
        table.write(Write(key, item=fits))
        for write in (Write(key, item=too_large), Write(key, sets=too_large)):
            refusal(ValueError, table.write, write)
            refusal(ValueError, table.transact, [Write(_key(), sets={"n": 1}), write])
        assert fits == table.get(key)

    def test_a_query_gives_the_items_of_one_key_in_order(self, table: Table) -> None:
        pk = unique("query")
        for sk in ("B#2", "A#1", "B#10", "B#\u00e9", "B#\U0001f600", "C#1"):
            table.write(Write((pk, sk), item={"at": sk}))
        table.write(Write((pk + "x", "B#3"), item={"at": "another key"}))
        everything = ["A#1", "B#10", "B#2", "B#\u00e9", "B#\U0001f600", "C#1"]
        assert everything == [item["SK"] for item in table.query(pk)]
        assert everything[1:5] == [item["SK"] for item in table.query(pk, "B#")]
        assert everything[2:5] == [item["at"] for item in table.query(pk, "B#", "B#10")]
        assert everything[1:] == [item["SK"] for item in table.query(pk, after="A#1")]

    def test_a_query_may_begin_before_or_after_everything_it_asks_for(self, table: Table) -> None:
        pk = unique("query")
        table.write(Write((pk, "B#1"), item={"a": 1}))
        assert [{"a": 1, "SK": "B#1"}] == list(table.query(pk, "B#", "A#9"))
        assert [] == list(table.query(pk, "B#", "C#1"))
        assert [] == list(table.query(unique("nothing"), "B#"))

    def test_a_query_reads_on_over_pages(self, table: Table) -> None:
        pk = unique("pages")
        for number in range(25):
            table.write(Write((pk, f"{number:02d}"), item={"n": number, "text": "x" * 100_000}))
        assert list(range(25)) == [item["n"] for item in table.query(pk)]
        assert list(range(5, 25)) == [item["n"] for item in table.query(pk, after="04")]

    def test_any_number_of_keys_is_read_at_once(self, table: Table) -> None:
        pk = unique("many")
        keys = [(pk, f"{number:03d}") for number in range(230)]
        for start in range(0, 200, 100):
            table.transact([Write(key, item={"n": int(key[1])}) for key in keys[start : start + 100]])
        assert {key: {"n": int(key[1])} for key in keys[:200]} == table.get_many([*keys, *keys[:3]])
        assert {} == table.get_many([])

    def test_sums_from_many_threads_are_exact_and_each_sees_its_own(self, table: Table) -> None:
        key = _key()

        def add(_: int) -> list[int]:
            return [(table.write(Write(key, adds={"n": 1})) or {"n": 0})["n"] for _ in range(5)]

        seen = in_threads(8, add)
        assert list(range(40)) == sorted(number for part in seen for number in _list(part))
        assert table.get(key) == {"n": 40}

    def test_of_many_threads_exactly_one_meets_a_condition(self, table: Table) -> None:
        key = _key()

        def claim(index: int) -> None:
            table.write(Write(key, sets={"status": str(index)}, clauses=(_clause("absent"),)))

        answers = in_threads(8, claim)
        winners = [index for index, answer in enumerate(answers) if answer is None]
        losers = [answer for answer in answers if isinstance(answer, ConditionFailed)]
        assert (1, 7) == (len(winners), len(losers))
        assert table.get(key) == {"status": str(winners[0])}
        assert all(loser.old == {"status": str(winners[0])} for loser in losers)

    def test_transactions_from_many_threads_are_all_or_nothing(self, table: Table) -> None:
        left, right = _key("left"), _key("right")

        def move(index: int) -> None:
            pair = [Write(left, adds={"n": -1}), Write(right, adds={"n": 1})]
            table.transact(pair if index % 2 else pair[::-1])

        assert [None] * 8 == in_threads(8, move)
        assert [{"n": -8}, {"n": 8}] == [table.get(left), table.get(right)]


def _passes(table: Table, key: Key, clause: Clause) -> bool:
    # A transaction with another item: the item under test must stay as it is.
    try:
        table.transact([Write(key, clauses=(clause,)), Write((key[0], "aside"), sets={"a": 1})])
    except TransactionFailed:
        return False
    return True


def _list(answer: list[int] | Exception) -> list[int]:
    if isinstance(answer, Exception):
        raise AssertionError("a thread failed") from answer
    return answer
