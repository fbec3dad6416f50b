"""Distributed Map: children of their own, limits, changes under way.

Where a test names no source: [dg:state-map-distributed].
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .distributed import BAD, FAIL, GOOD, IS_BAD, SOME_FAIL, distributed
from .harness import World, execute, passing, play, ran
from .test_parallel_and_map import inline


def test_children_are_executions_with_histories_and_names_of_their_own() -> None:
    async def scene(world: World) -> None:
        parent = world.start(world.create(distributed(("P", passing()))), [1, 2])
        await parent.ended()
        # Recorded on AWS: test_map_state_config_distributed_item_selector.
        assert [
            "MapStateStarted",
            "MapRunStarted",
            "MapRunSucceeded",
            "MapStateSucceeded",
            "MapStateExited",
        ] == (ran(parent).types[2:7])
        run_arn = world.api("ListMapRuns", executionArn=parent.arn)["mapRuns"][0]["mapRunArn"]
        assert ":mapRun:m/L:" in run_arn
        children = world.api("ListExecutions", mapRunArn=run_arn)["executions"]
        assert 2 == len(children)
        assert ":execution:m/L:" in children[0]["executionArn"]
        assert (
            "ExecutionSucceeded"
            == world.api("GetExecutionHistory", executionArn=children[0]["executionArn"])["events"][-1][
                "type"
            ]
        )
        assert 1 == len(world.api("ListExecutions", stateMachineArn=parent.origin.machine_arn)["executions"])

    play(scene)


def test_outputs_come_in_the_order_of_the_items() -> None:
    wait = {"Type": "Wait", "SecondsPath": "$"}
    assert [3, 1, 2] == execute(distributed(("W", wait)), [3, 1, 2]).output


def test_an_item_selector_makes_the_children_s_input() -> None:
    ran = execute(distributed(("P", passing()), ItemSelector={"i.$": "$$.Map.Item.Index", "all.$": "$"}), [7])
    assert [{"i": 0, "all": [7]}] == ran.output


def test_children_do_not_see_their_parent_s_variables() -> None:
    # aws-facts section 1.3.
    definition = distributed(("P", passing(Parameters={"v.$": "$v"})))
    definition["States"] = {"S": passing(Assign={"v": 1}, Next="M"), **definition["States"]}
    assert "FAILED" == execute({**definition, "StartAt": "S"}, [1]).status


def test_items_are_batched() -> None:
    # aws-facts section 1.3.
    batcher = {"MaxItemsPerBatch": 2, "BatchInput": {"n.$": "$.n"}}
    ran = execute(
        distributed(("P", passing()), ItemsPath="$.l", ItemBatcher=batcher), {"n": 9, "l": [1, 2, 3]}
    )
    assert [{"BatchInput": {"n": 9}, "Items": [1, 2]}, {"BatchInput": {"n": 9}, "Items": [3]}] == ran.output


def test_a_batch_with_its_common_input_stays_within_its_bytes() -> None:
    # [dg:input-output-itembatcher]
    batcher = {"MaxInputBytesPerBatch": 60, "BatchInput": {"common": "x" * 10}}
    ran = execute(distributed(("P", passing()), ItemBatcher=batcher), ["aaaa"] * 5)
    assert [1, 1, 1, 1, 1] == [len(batch["Items"]) for batch in ran.output]
    without = {"MaxInputBytesPerBatch": 60}
    ran = execute(distributed(("P", passing()), ItemBatcher=without), ["aaaa"] * 9)
    assert [6, 3] == [len(batch["Items"]) for batch in ran.output]


def test_max_concurrency_bounds_the_children() -> None:
    slow = distributed(("W", {"Type": "Wait", "Seconds": 10}), MaxConcurrencyPath="$.n", ItemsPath="$.l")
    assert 40 == execute(slow, {"n": 3, "l": [0] * 10}).seconds


def test_any_failure_fails_the_run_by_default_and_ends_the_other_children() -> None:
    states = (("C", IS_BAD), ("P", {"Type": "Wait", "Seconds": 99, "End": True}), ("F", FAIL))

    async def scene(world: World) -> Any:
        parent = world.start(world.create(distributed(*states)), [GOOD, BAD])
        await parent.ended()
        return ran(parent), [child.status for child in parent.map_runs[0].children if child]

    ended, children = play(scene)
    assert ("States.ExceedToleratedFailureThreshold", 0) == (ended.error, ended.seconds)
    assert ["ABORTED", "FAILED"] == children
    assert ["MapRunFailed", "MapStateFailed", "ExecutionFailed"] == ended.types[-3:]


@pytest.mark.parametrize(
    ("expected", "tolerated"),
    [
        ("SUCCEEDED", {"ToleratedFailurePercentage": 100}),
        ("SUCCEEDED", {"ToleratedFailurePercentage": 50}),
        ("FAILED", {"ToleratedFailurePercentage": 49.9}),
        ("SUCCEEDED", {"ToleratedFailureCount": 2}),
        ("FAILED", {"ToleratedFailureCount": 1}),
        # Either one, when both are given.
        ("FAILED", {"ToleratedFailureCount": 1, "ToleratedFailurePercentage": 100}),
        ("SUCCEEDED", {"ToleratedFailurePercentagePath": "$.p"}),
    ],
)
def test_failures_are_tolerated_up_to_a_limit(expected: str, tolerated: dict[str, Any]) -> None:
    items = [GOOD, BAD, GOOD, BAD]
    ran = execute(distributed(*SOME_FAIL, ItemsPath="$.l", **tolerated), {"l": items, "p": 60})
    assert expected == ran.status


def test_failures_are_counted_on_items() -> None:
    # aws-facts section 1.3: a batch that fails counts with all its items.
    states = (("F", FAIL),)
    ran = execute(
        distributed(*states, ItemBatcher={"MaxItemsPerBatch": 3}, ToleratedFailureCount=2), [1, 2, 3]
    )
    assert "FAILED" == ran.status


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ('The ToleratedFailureCountPath field refers to value "{}" which is not a valid integer: $.v',
         "ToleratedFailureCountPath", {}),
        ('The ToleratedFailureCountPath field refers to value "many" which is not a valid integer: $.v',
         "ToleratedFailureCountPath", "many"),
        ('The ToleratedFailurePercentagePath field refers to value "half" which is not a valid float: $.v',
         "ToleratedFailurePercentagePath", "half"),
        ("ToleratedFailurePercentage must be between 0 and 100.", "ToleratedFailurePercentagePath", 100.1),
    ],
)  # fmt: skip
def test_a_limit_that_is_none_fails_before_the_map_run(said: str, field: str, value: Any) -> None:
    # Recorded on AWS: test_map_state_tolerated_failure_count_path, …_percentage_path.
    ran = execute(distributed(("P", passing()), ItemsPath="$.l", **{field: "$.v"}), {"l": [1], "v": value})
    assert ["MapStateStarted", "ExecutionFailed"] == ran.types[-2:]
    assert str(ran.cause).endswith(said)


def test_limits_may_be_texts_of_numbers() -> None:
    # As moto's engine reads them, which was made to agree with AWS.
    limits = {"ToleratedFailureCountPath": "$.n", "ToleratedFailurePercentagePath": "$.p"}
    given = {"l": [BAD, GOOD], "n": "1", "p": "50.0"}
    assert "SUCCEEDED" == execute(distributed(*SOME_FAIL, ItemsPath="$.l", **limits), given).status


@pytest.mark.parametrize("around", [inline, distributed])
@pytest.mark.parametrize(
    ("said", "value"),
    [
        ('The MaxConcurrencyPath field refers to value "{}" which is not a valid integer: $.m', {}),
        ('The MaxConcurrencyPath field refers to value "No" which is not a valid integer: $.m', "No"),
        ("MaxConcurrency cannot be negative.", -1),
    ],
)
def test_concurrency_that_is_none_fails_before_the_map_starts(said: str, value: Any, around: Any) -> None:
    # moto's engine: of a Map's settings AWS reads this one before MapStateStarted, and the others after it.
    definition = around(("P", passing()), ItemsPath="$.l", MaxConcurrencyPath="$.m")
    ran = execute(definition, {"l": [1], "m": value})
    assert ["ExecutionStarted", "MapStateEntered", "ExecutionFailed"] == ran.types
    assert str(ran.cause).endswith(said)


@pytest.mark.parametrize(
    ("failed", "around"),
    [
        (["MapIterationStarted", "MapIterationFailed", "MapStateFailed", "ExecutionFailed"], inline),
        (["MapRunStarted", "MapRunFailed", "MapStateFailed", "ExecutionFailed"], distributed),
    ],
)
def test_what_has_begun_fails_with_an_item_selector(failed: list[str], around: Any) -> None:
    # Recorded on AWS: test_map_item_reader_csv_max_items_paths[-1] tells of the run whatever fails in it.
    ran = execute(around(("P", passing()), ItemSelector={"v.$": "$.nope"}), [1])
    assert failed == ran.types[3:]
    assert "States.Runtime" == ran.error
    assert str(ran.cause).startswith("An error occurred while executing the state 'M' (entered at the event")


def test_update_map_run_acts_while_it_runs() -> None:
    async def scene(world: World) -> Any:
        slow = distributed(("W", {"Type": "Wait", "Seconds": 10}), MaxConcurrency=1)
        parent = world.start(world.create(slow), [0] * 10)
        await asyncio.sleep(5)
        arn = parent.map_runs[0].arn
        counts = world.api("DescribeMapRun", mapRunArn=arn)["executionCounts"]
        world.api("UpdateMapRun", mapRunArn=arn, maxConcurrency=10)
        await parent.ended()
        return counts, ran(parent).seconds

    counts, seconds = play(scene)
    assert (9, 1, 10) == (counts["pending"], counts["running"], counts["total"])
    assert 15 == round(seconds)


def test_stopping_the_parent_stops_the_children() -> None:
    async def scene(world: World) -> Any:
        parent = world.start(world.create(distributed(("W", {"Type": "Wait", "Seconds": 99}))), [1, 2])
        await asyncio.sleep(1)
        parent.stop("Mine", "so")
        await asyncio.sleep(1)
        run = parent.map_runs[0]
        return parent.status, run.status, {child.status for child in run.children if child}

    assert ("ABORTED", "ABORTED", {"ABORTED"}) == play(scene)


def test_thousands_of_children_one_after_the_other_are_no_recursion() -> None:
    assert 3_000 == len(execute(distributed(("P", passing()), MaxConcurrency=1), [0] * 3_000).output)
