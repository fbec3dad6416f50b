"""DynamoDB's limits and bad days: what is sent, what is tried again and for how long, what is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError, ReadTimeoutError

from trueup.errors import StoreUnavailable
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Clause, ConditionFailed, TransactionFailed, Write
from trueup.model.ledger import PartitionItem
from trueup.model.states import PartitionStatus
from trueup.testing.suites.support import APPLY, Scene

KEY = ("PK", "SK")
WRITE = Write(KEY, sets={"a": 1}, clauses=(Clause("it is new", "a", "absent"),))
OTHER = Write(("PK", "other"), sets={"a": 1})


class Answers:
    """A DynamoDB client that gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            self.asked.append(arguments)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def error(code: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "because"}, **more}, "Operation")


def cancelled(*codes: str, item: Any = None) -> ClientError:
    reasons = [
        {"Code": code, **({"Item": item} if item and code == "ConditionalCheckFailed" else {})}
        for code in codes
    ]
    return error("TransactionCanceledException", CancellationReasons=reasons)


def a_table(*answers: Any, patience: float = 5.0) -> tuple[DynamoTable, Answers]:
    client = Answers(*answers)
    return DynamoTable(client, "ledger", patience=patience), client


def test_every_write_asks_for_the_old_item_also_when_it_is_refused() -> None:
    table, client = a_table({})
    for write in (WRITE, Write(KEY, item={"a": 1}), Write(KEY, delete=True)):
        table.write(write)
    table.transact([WRITE, OTHER])
    for sent in client.asked[:3]:
        assert ("ALL_OLD", "ALL_OLD") == (sent["ReturnValues"], sent["ReturnValuesOnConditionCheckFailure"])
    for part in client.asked[3]["TransactItems"]:
        assert "ALL_OLD" == part["Update"]["ReturnValuesOnConditionCheckFailure"]


def test_reads_are_consistent() -> None:
    table, client = a_table({"Items": [], "Responses": {}})
    table.get(KEY)
    list(table.query("PK", "A#"))
    table.get_many([KEY])
    assert [True, True] == [sent["ConsistentRead"] for sent in client.asked[:2]]
    assert client.asked[2]["RequestItems"]["ledger"]["ConsistentRead"] is True


def test_a_refusal_carries_the_item_as_it_stood() -> None:
    raw = {"PK": {"S": "PK"}, "SK": {"S": "SK"}, "a": {"N": "7"}}
    table, _ = a_table(error("ConditionalCheckFailedException", Item=raw))
    with pytest.raises(ConditionFailed, match="it is new") as refused:
        table.write(WRITE)
    assert {"a": 7} == refused.value.old


@pytest.mark.parametrize("size", [0, 101])
def test_a_condition_names_one_to_a_hundred_values(size: int) -> None:
    with pytest.raises(ValueError, match="takes 1 to 100"):
        Clause("it is one of many", "a", "in", list(range(size)))
    assert Clause("it is one of many", "a", "in", list(range(100))).holds({"a": 99})


@pytest.mark.parametrize(
    "change",
    [
        {"sets": {"a": 1}, "adds": {"a": 1}},
        {"sets": {"a": 1}, "removes": ("a",)},
        {"removes": ("a", "a")},
        {"item": {"a": 1}, "sets": {"b": 1}},
        {"item": {"a": 1}, "delete": True},
        {"adds": {"a": 1}, "delete": True},
    ],
)
def test_a_write_changes_an_attribute_in_one_way(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="in two ways"):
        Write(KEY, **change)


@pytest.mark.parametrize("op", ["<", "<=", "=", "in"])
@pytest.mark.parametrize("found", ["5", None, True, [1], {"a": 1}])
def test_values_of_two_types_are_never_equal_nor_less(op: Any, found: Any) -> None:
    value = [1, 5] if op == "in" else 5
    assert not Clause("it is as asked", "a", op, value).holds({"a": found})


@pytest.mark.parametrize("code", ["TransactionConflictException", "TransactionInProgressException"])
def test_a_write_that_met_a_transaction_is_tried_again(code: str) -> None:
    table, client = a_table(error(code), error(code), {"Attributes": {"a": {"N": "1"}}})
    assert {"a": 1} == table.write(WRITE)
    assert 3 == len(client.asked)


@pytest.mark.parametrize(
    "answer",
    [
        cancelled("None", "TransactionConflict"),
        cancelled("ThrottlingError", "None"),
        cancelled("ProvisionedThroughputExceeded", "TransactionConflict"),
        error("TransactionInProgressException"),
    ],
)
def test_a_transaction_in_conflict_is_tried_again_under_one_token(answer: Exception) -> None:
    table, client = a_table(answer, answer, {})
    table.transact([WRITE, OTHER])
    assert (3, 1) == (len(client.asked), len({sent["ClientRequestToken"] for sent in client.asked}))


def test_each_transaction_has_a_token_of_its_own() -> None:
    table, client = a_table({})
    table.transact([WRITE])
    table.transact([WRITE])
    assert 2 == len({sent["ClientRequestToken"] for sent in client.asked})


def test_a_refusal_beside_a_conflict_is_a_refusal() -> None:
    table, client = a_table(
        cancelled("ConditionalCheckFailed", "TransactionConflict", item={"a": {"N": "7"}})
    )
    with pytest.raises(TransactionFailed, match="it is new") as refused:
        table.transact([WRITE, OTHER])
    assert [(WRITE, {"a": 7})] == [(one.write, one.old) for one in refused.value.refusals]
    assert 1 == len(client.asked)


@pytest.mark.parametrize(
    "answer", [cancelled("TransactionConflict"), error("TransactionInProgressException")]
)
def test_a_conflict_that_does_not_end_leaves_the_store_unavailable(answer: Exception) -> None:
    table, client = a_table(answer, patience=0.3)
    with pytest.raises(StoreUnavailable, match="busy with the same items"):
        table.transact([WRITE])
    assert 1 < len(client.asked)


@pytest.mark.parametrize(
    "answer",
    [
        error("ThrottlingException"),
        error("ProvisionedThroughputExceededException"),
        error("InternalServerError"),
        error("ResourceNotFoundException"),
        error("AccessDeniedException"),
        ReadTimeoutError(endpoint_url="https://dynamodb"),
    ],
)
def test_what_the_client_gave_up_leaves_the_store_unavailable(answer: Exception) -> None:
    table, client = a_table(answer)
    calls: list[Callable[[], Any]] = [
        lambda: table.get(KEY),
        lambda: table.get_many([KEY]),
        lambda: table.write(WRITE),
        lambda: table.transact([WRITE]),
        lambda: list(table.query("PK")),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match="did not do what was asked") as refused:
            call()
        assert "Check the table's name" in refused.value.remedy
    assert len(calls) == len(client.asked)


@pytest.mark.parametrize(
    "answer",
    [error("ValidationException"), ParamValidationError(report="because"), cancelled("ValidationError")],
)
def test_what_can_never_be_done_is_an_error_at_once(answer: Exception) -> None:
    table, client = a_table(answer)
    with pytest.raises(ValueError, match="can never do"):
        table.transact([WRITE])
    assert 1 == len(client.asked)


def test_keys_left_out_of_a_batch_are_asked_for_again() -> None:
    keys = [("PK", f"{number:03d}") for number in range(3)]
    raw = [{"PK": {"S": pk}, "SK": {"S": sk}, "n": {"N": str(int(sk))}} for pk, sk in keys]
    left = {"ledger": {"Keys": [{"PK": {"S": "PK"}, "SK": {"S": "002"}}], "ConsistentRead": True}}
    table, client = a_table(
        {"Responses": {"ledger": raw[:2]}, "UnprocessedKeys": left},
        {"Responses": {}, "UnprocessedKeys": left},
        {"Responses": {"ledger": raw[2:]}, "UnprocessedKeys": {}},
    )
    assert {key: {"n": int(key[1])} for key in keys} == table.get_many(keys)
    assert [left, left] == [sent["RequestItems"] for sent in client.asked[1:]]


def test_keys_that_stay_left_out_leave_the_store_unavailable() -> None:
    left = {"ledger": {"Keys": [{"PK": {"S": "PK"}, "SK": {"S": "SK"}}]}}
    table, _ = a_table({"Responses": {}, "UnprocessedKeys": left}, patience=0.3)
    with pytest.raises(StoreUnavailable, match="1 keys of a batch"):
        table.get_many([KEY])


def test_batches_have_a_hundred_keys_at_most_and_none_twice() -> None:
    keys = [("PK", f"{number:03d}") for number in range(250)]
    table, client = a_table({"Responses": {}})
    table.get_many([*keys, *keys])
    assert [100, 100, 50] == [len(sent["RequestItems"]["ledger"]["Keys"]) for sent in client.asked]


def test_ninety_eight_fit_beside_the_counter_and_the_trace_of_a_verb() -> None:
    scene = Scene(MemoryTable())
    names = [f"p{number:03d}" for number in range(99)]
    scene.decide(*(PartitionItem(partition_id=name) for name in names), to=PartitionStatus.FAILED)
    scene.ledger.verdicts.retry(scene.run_id, APPLY, names, who="ann", why="fixed")
    _, *trail = scene.ledger.audit.of(scene.run_id)
    assert [98, 1] == [len(entry.before) for entry in trail]


class Recording(MemoryTable):
    """A table that remembers how many writes each transaction had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def transact(self, writes: Sequence[Write]) -> None:
        self.sizes.append(len(writes))
        super().transact(writes)


def test_large_items_are_decided_in_transactions_of_less_than_four_megabytes() -> None:
    table = Recording()
    scene = Scene(table)
    items = []
    for number in range(20):
        item = scene.take(f"p{number:02d}").model_copy(update={"reason": "x" * 390_000})
        table.write(Write(scene.owner().key(item.partition_id), item=item.document()))
        items.append(item)
    table.sizes.clear()
    scene.decide(*items, to=PartitionStatus.STUCK)
    assert [7, 7, 6] == [size - 1 for size in table.sizes]
    assert {"STUCK": (20, 0)} == scene.counts()


def test_what_no_ledger_wrote_is_not_guessed_at() -> None:
    table, _ = a_table({"Item": {"set": {"SS": ["a"]}}})
    with pytest.raises(TypeError, match="never wrote a SS"):
        table.get(KEY)
