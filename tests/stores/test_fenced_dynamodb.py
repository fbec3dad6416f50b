"""The guard `fence` on DynamoDB: no row of a newer task is touched, each row is counted as what it was."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup import Outcome, Superseded, Throttled, Transient
from trueup.errors import JobError
from trueup.sources.dynamodb import FencedTable

from .dynamodb_cases import KEY, Interposed, failing, new_table, put, row, stored


@pytest.fixture(scope="module")
def server(ministack_clients: dict[str, Any]) -> Any:
    return ministack_clients["dynamodb"]


@pytest.fixture(params=["moto", "ministack"])
def dynamodb(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_clients")["dynamodb"]


@pytest.fixture
def name(dynamodb: Any) -> str:
    return new_table(dynamodb)


def test_rows_are_counted_as_written_or_unchanged_and_all_are_stamped(dynamodb: Any, name: str) -> None:
    table = FencedTable(dynamodb, name, KEY)
    assert Outcome(written=2) == put(table, [row(1, flights=3), row(2, flights=4)], fence=5)
    # day 1 as it was, day 2 with another value, day 3 new
    again = [row(1, flights=3), row(2, flights=9), row(3, flights=1)]
    assert Outcome(written=2, unchanged=1) == put(table, again, fence=6)
    expected = {("EWR#UA", 1): 3, ("EWR#UA", 2): 9, ("EWR#UA", 3): 1}
    assert {key: {"flights": flights, "fence": 6} for key, flights in expected.items()} == stored(
        dynamodb, name
    )


def test_a_higher_fence_supersedes_and_its_row_stays(dynamodb: Any, name: str) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(2, flights=4)], fence=7)
    with pytest.raises(Superseded, match=r"route=EWR#UA, day=2 .* fence 7, ours is 6") as caught:
        table.put([row(1, flights=1), row(2, flights=1)], fence=6)
    assert (6, 7) == (caught.value.ours, caught.value.theirs)
    assert {("EWR#UA", 2): {"flights": 4, "fence": 7}} == stored(dynamodb, name)


def test_an_equal_fence_writes(dynamodb: Any, name: str) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(1, flights=1)], fence=7)
    assert Outcome(written=1) == put(table, [row(1, flights=2)], fence=7)


def test_a_row_without_a_fence_may_be_written(dynamodb: Any, name: str) -> None:
    dynamodb.put_item(
        TableName=name, Item={"route": {"S": "EWR#UA"}, "day": {"N": "1"}, "old": {"BOOL": True}}
    )
    assert Outcome(written=1) == put(FencedTable(dynamodb, name, KEY), [row(1, flights=2)], fence=1)
    assert {("EWR#UA", 1): {"flights": 2, "fence": 1}} == stored(dynamodb, name)


def test_none_is_an_absent_attribute(dynamodb: Any, name: str) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(1, delay=3), row(2, delay=None)], fence=1)
    assert Outcome(written=1, unchanged=1) == put(table, [row(1, delay=None), row(2, delay=None)], fence=1)
    assert {("EWR#UA", 1): {"fence": 1}, ("EWR#UA", 2): {"fence": 1}} == stored(dynamodb, name)


@pytest.mark.parametrize(
    "value",
    [
        0,
        -(10**37),
        0.1,
        1e-7,
        2.5e20,
        Decimal("12.30"),
        True,
        "",
        "é",
        b"\x00",
        [1.5, None, {"a": 2.5}],
        {"x"},
    ],
    ids=repr,
)
def test_a_value_read_back_is_the_value_and_unchanged_the_next_time(
    dynamodb: Any, name: str, value: Any
) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(1, value=value)], fence=1)
    assert Outcome(unchanged=1) == put(table, [row(1, value=value)], fence=2)
    found = stored(dynamodb, name)["EWR#UA", 1]["value"]
    assert value == (float(found) if isinstance(value, float) else found)


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), ("1", 1), (b"1", "1"), (0, None), ([1], [True])], ids=repr
)
def test_values_of_two_types_differ(dynamodb: Any, name: str, one: Any, other: Any) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(1, value=one)], fence=1)
    assert Outcome(written=1) == put(table, [row(1, value=other)], fence=1)


def test_numbers_are_compared_by_value(dynamodb: Any, name: str) -> None:
    table = FencedTable(dynamodb, name, KEY)
    table.put([row(1, value=Decimal("1.50"))], fence=1)
    assert Outcome(unchanged=1) == put(table, [row(1, value=1.5)], fence=1)


def test_more_rows_than_one_transaction_takes(server: Any) -> None:
    name = new_table(server)  # not moto, which copies the table for each transaction
    rows = [row(day, flights=day) for day in range(130)]
    table = FencedTable(server, name, KEY)
    assert Outcome(written=130) == put(table, rows, fence=1)
    assert Outcome(written=1, unchanged=129) == put(table, [*rows[:-1], row(129, flights=0)], fence=2)
    assert 130 == len(stored(server, name))


def test_a_row_with_more_attributes_than_a_condition_can_name(dynamodb: Any, name: str) -> None:
    wide = row(1, **{f"column{n}": n for n in range(150)})
    table = FencedTable(dynamodb, name, KEY)
    assert Outcome(written=1) == put(table, [wide], fence=1)
    assert Outcome(written=1, unchanged=1) == put(table, [wide, row(2)], fence=2)
    with pytest.raises(Superseded):
        table.put([{**wide, "column0": 1}], fence=1)


# What another task does between our read and our write. It is made to happen there, not waited for.


def racing(dynamodb: Any, name: str, rows: list[dict[str, Any]], fence: int) -> FencedTable:
    """A table whose first read is followed by another task's put."""
    other = FencedTable(dynamodb, name, KEY)
    return FencedTable(
        Interposed(dynamodb, "batch_get_item", after=lambda _: other.put(rows, fence) and None), name, KEY
    )


def test_a_newer_task_between_read_and_write_supersedes(dynamodb: Any, name: str) -> None:
    FencedTable(dynamodb, name, KEY).put([row(1, flights=1)], fence=4)
    table = racing(dynamodb, name, [row(1, flights=7)], fence=7)
    with pytest.raises(Superseded) as caught:
        table.put([row(1, flights=5)], fence=5)
    assert (5, 7) == (caught.value.ours, caught.value.theirs)
    assert {("EWR#UA", 1): {"flights": 7, "fence": 7}} == stored(dynamodb, name)


def test_a_newer_task_that_creates_the_row_between_read_and_write_supersedes(
    dynamodb: Any, name: str
) -> None:
    table = racing(dynamodb, name, [row(1, flights=7)], fence=7)
    with pytest.raises(Superseded):
        table.put([row(1, flights=5)], fence=5)
    assert {("EWR#UA", 1): {"flights": 7, "fence": 7}} == stored(dynamodb, name)


@pytest.mark.parametrize(
    ("before", "zombie", "expected"),
    [
        # read as ours, then changed under the same fence: the write found other values
        ({"flights": 5}, {"flights": 4}, Outcome(written=1)),
        # read as another, then made ours: the write found ours
        ({"flights": 4}, {"flights": 5}, Outcome(unchanged=1)),
        # only an attribute was added that ours has as None
        ({"flights": 5}, {"flights": 5, "delay": 1}, Outcome(written=1)),
        (None, {"flights": 5}, Outcome(unchanged=1)),
        (None, {"flights": 4}, Outcome(written=1)),
    ],
)
def test_a_row_counts_as_what_the_write_found_and_not_as_what_was_read(
    dynamodb: Any, name: str, before: Any, zombie: Any, expected: Outcome
) -> None:
    if before:
        FencedTable(dynamodb, name, KEY).put([row(1, **before)], fence=4)
    table = racing(dynamodb, name, [row(1, **zombie)], fence=4)
    assert expected == put(table, [row(1, flights=5, delay=None)], fence=5)
    assert {("EWR#UA", 1): {"flights": 5, "fence": 5}} == stored(dynamodb, name)


def test_rows_that_another_transaction_has_in_hand_are_put_one_by_one(dynamodb: Any, name: str) -> None:
    FencedTable(dynamodb, name, KEY).put([row(1, flights=1)], fence=1)
    conflict = failing("TransactionCanceledException", ["None", "TransactionConflict"])
    table = FencedTable(Interposed(dynamodb, "transact_write_items", before=conflict), name, KEY)
    assert Outcome(written=1, unchanged=1) == put(table, [row(1, flights=1), row(2, flights=2)], fence=2)
    assert {1: 2, 2: 2} == {day: int(item["fence"]) for (_, day), item in stored(dynamodb, name).items()}


def test_a_single_put_outwaits_a_transaction(dynamodb: Any, name: str) -> None:
    cancelled = failing("TransactionCanceledException", ["TransactionConflict"])
    busy = Interposed(dynamodb, "put_item", before=failing("TransactionConflictException"))
    table = FencedTable(Interposed(busy, "transact_write_items", before=cancelled), name, KEY)
    assert Outcome(written=1) == put(table, [row(1, flights=1)], fence=1)


def test_keys_that_dynamodb_puts_off_are_asked_for_again(dynamodb: Any, name: str) -> None:
    FencedTable(dynamodb, name, KEY).put([row(1, flights=1), row(2, flights=2)], fence=1)

    def put_off(answer: Any) -> Any:
        late = answer["Responses"][name].pop()
        key = {part: late[part] for part in KEY}
        return {**answer, "UnprocessedKeys": {name: {"Keys": [key], "ConsistentRead": True}}}

    late = Interposed(dynamodb, "batch_get_item", after=put_off)
    only_together = Interposed(late, "put_item", before=failing("AccessDeniedException"))
    table = FencedTable(only_together, name, KEY)
    assert Outcome(unchanged=2) == put(table, [row(1, flights=1), row(2, flights=2)], fence=2)


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        (failing("ThrottlingException"), Throttled),
        (failing("ProvisionedThroughputExceededException"), Throttled),
        (failing("RequestLimitExceeded"), Throttled),
        (failing("TransactionCanceledException", ["None", "ThrottlingError"]), Throttled),
        (failing("TransactionCanceledException", ["ProvisionedThroughputExceeded"]), Throttled),
        (failing("TransactionInProgressException"), Transient),
        (failing("InternalServerError", status=500), Transient),
        (failing("AccessDeniedException"), ClientError),
        (failing("ResourceNotFoundException"), ClientError),
    ],
)
def test_what_dynamodb_refuses_for_now_has_our_names(
    dynamodb: Any, name: str, fail: Any, expected: type[Exception]
) -> None:
    table = FencedTable(Interposed(dynamodb, "transact_write_items", before=fail), name, KEY)
    with pytest.raises(expected):
        table.put([row(1)], fence=1)
    assert Outcome(written=1) == put(table, [row(1)], fence=1)


def test_a_connection_that_breaks_is_transient(dynamodb: Any, name: str) -> None:
    def breaks(_: Any) -> None:
        raise ConnectionClosedError(endpoint_url="http://127.0.0.1")

    table = FencedTable(Interposed(dynamodb, "batch_get_item", before=breaks), name, KEY)
    with pytest.raises(Transient):
        table.put([row(1)], fence=1)


# What the author did wrong, and what the data did.


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "value is nan: DynamoDB has numbers of up to 38 digits"),
        ([float("-inf")], "value is .*inf"),
        (10**40 + 1, "38 digits"),
        (Decimal("1e200"), "38 digits"),
    ],
    ids=repr,
)
def test_a_number_that_cannot_be_stored_is_refused_and_the_others_are_written(
    dynamodb: Any, name: str, value: Any, reason: str
) -> None:
    bad = row(2, value=value)
    outcome = FencedTable(dynamodb, name, KEY).put([row(1, value=1), bad, row(3, value=3)], fence=1)
    assert (2, 0) == (outcome.written, outcome.unchanged)
    ((refused, why),) = outcome.refused
    assert refused is bad
    assert re.search(reason, why)


@pytest.mark.parametrize(
    "bad",
    [{"route": "", "day": 2}, {"route": 7, "day": 2}, row(2, text="x" * 500_000)],
    ids=["empty", "type", "size"],
)
def test_a_row_that_dynamodb_refuses_is_refused_with_its_reason(dynamodb: Any, name: str, bad: Any) -> None:
    outcome = FencedTable(dynamodb, name, KEY).put([row(1), bad, row(3)], fence=1)
    assert (2, 0, [bad]) == (outcome.written, outcome.unchanged, [one for one, _ in outcome.refused])
    assert {1, 3} == {day for _, day in stored(dynamodb, name)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"route": "EWR#UA", "flights": 1}], "has no day"),
        ([{"route": None, "day": None}], "has no route and no day"),
        ([row(1), row(1)], "route=EWR#UA, day=1 .*comes twice"),
        ([row(1), row(1.0)], "comes twice"),  # type: ignore[arg-type]
        ([row(1, fence=3)], "'fence', which holds the fence"),
        ([row(1, when=object())], "'when' is a object, which DynamoDB does not have"),
    ],
)
def test_a_row_that_breaks_the_rules_is_an_error_and_nothing_is_written(
    dynamodb: Any, name: str, rows: Any, message: str
) -> None:
    with pytest.raises(JobError, match=message):
        FencedTable(dynamodb, name, KEY).put([row(9), *rows], fence=1)
    assert {} == stored(dynamodb, name)


def test_a_fence_attribute_that_something_else_uses_is_an_error(dynamodb: Any, name: str) -> None:
    FencedTable(dynamodb, name, KEY, fence_attribute="other").put([row(1, fence="wooden")], fence=1)
    with pytest.raises(JobError, match="holds no number"):
        FencedTable(dynamodb, name, KEY).put([row(1)], fence=1)


def test_no_rows_are_no_call() -> None:
    assert Outcome() == put(FencedTable(None, "any", KEY), [], fence=1)


def test_of_tasks_that_write_at_once_the_newest_one_wins_every_row(server: Any) -> None:
    name, start = new_table(server), threading.Barrier(4)

    def work(fence: int) -> Outcome | None:
        table = FencedTable(server, name, KEY)
        start.wait()
        try:
            return table.put([row(day, by=fence) for day in range(60)], fence)
        except Superseded:
            return None

    with ThreadPoolExecutor(4) as pool:
        outcomes = dict(zip(range(1, 5), pool.map(work, range(1, 5)), strict=True))
    assert {("EWR#UA", day): {"by": 4, "fence": 4} for day in range(60)} == stored(server, name)
    assert outcomes[4] is not None
    assert {60} == {one.written + one.unchanged for one in outcomes.values() if one}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_however_rows_are_split_and_repeated_the_table_and_the_sums_are_exact(server: Any, data: Any) -> None:
    name, table_rows = new_table(server), st.dictionaries(st.integers(0, 7), st.integers(0, 2), max_size=8)
    table, model, fence = FencedTable(server, name, KEY), dict[int, int](), 1
    for batch in data.draw(st.lists(table_rows, max_size=6)):
        fence += data.draw(st.integers(0, 1))
        changed = sum(model.get(day) != value for day, value in batch.items())
        outcome = put(table, [row(day, value=value) for day, value in batch.items()], fence)
        assert Outcome(changed, len(batch) - changed) == outcome
        model |= batch
    assert model == {day: item["value"] for (_, day), item in stored(server, name).items()}
