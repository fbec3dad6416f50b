"""Parallel and inline Map: order, concurrency, failures, and how their events point.

Where a test names no source: [dg:state-parallel], [dg:state-map-inline] and [dg:service-quotas].
"""

from __future__ import annotations

import asyncio
from typing import Any

from .harness import Services, execute, machine, passing


def branch(*states: tuple[str, Any]) -> dict[str, Any]:
    return machine(*states)


def wait(seconds: int) -> dict[str, Any]:
    return {"Type": "Wait", "Seconds": seconds}


def inline(*states: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    return machine(("M", {"Type": "Map", "ItemProcessor": machine(*states), **fields}))


def pointers(events: list[dict[str, Any]], *types: str) -> list[tuple[int, int]]:
    return [(event["id"], event["previousEventId"]) for event in events if event["type"] in types]


FAIL = {"Type": "Fail", "Error": "Bad", "Cause": "luck"}


def test_branches_run_side_by_side_and_give_their_outputs_in_order() -> None:
    both = {
        "Type": "Parallel",
        "Branches": [branch(("A", wait(9)), ("B", passing(Result=1))), branch(("C", passing(Result=2)))],
    }
    ran = execute(machine(("P", both)))
    assert ([1, 2], 9) == (ran.output, ran.seconds)
    # The event of leaving points past ParallelStateSucceeded (recorded on AWS: test_parallel_state).
    succeeded, exited = pointers(ran.events, "ParallelStateSucceeded", "ParallelStateExited")
    assert succeeded[1] == exited[1]


def test_a_branch_that_fails_cuts_the_others_off() -> None:
    both = {"Type": "Parallel", "Branches": [branch(("A", wait(99))), branch(("B", wait(1)), ("F", FAIL))]}
    ran = execute(machine(("P", both)))
    assert ("Bad", 1) == (ran.error, ran.seconds)
    assert ["WaitStateAborted", "ParallelStateFailed", "ExecutionFailed"] == ran.types[-3:]


def test_a_parallel_can_be_retried_and_caught_as_a_whole() -> None:
    state = {
        "Type": "Parallel",
        "Branches": [branch(("F", FAIL))],
        "Retry": [{"ErrorEquals": ["Bad"], "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
        "End": True,
    }
    ran = execute(machine(("P", state), ("Caught", passing())))
    assert (3, 1) == (ran.types.count("ParallelStateStarted"), ran.types.count("ParallelStateFailed"))
    assert {"Error": "Bad", "Cause": "luck"} == ran.output


def test_a_map_runs_each_item_with_its_index_and_value() -> None:
    state = passing(Parameters={"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "in.$": "$"})
    ran = execute(inline(("A", state), ItemsPath="$.list"), {"list": ["x", "y"]})
    assert [{"i": 0, "v": "x", "in": "x"}, {"i": 1, "v": "y", "in": "y"}] == ran.output


def test_an_item_selector_sees_the_map_s_input_and_the_item() -> None:
    # Recorded on AWS: test_map_state_item_selector_parameters.
    selector = {"bucket.$": "$.bucket", "value.$": "$$.Map.Item.Value"}
    ran = execute(
        inline(("A", passing()), ItemsPath="$.list", ItemSelector=selector), {"bucket": "b", "list": [1]}
    )
    assert [{"bucket": "b", "value": 1}] == ran.output


def test_the_next_iteration_points_past_the_success_of_the_one_before() -> None:
    # Recorded on AWS: test_map_state_legacy_config_inline_item_selector.
    ran = execute(inline(("A", passing()), MaxConcurrency=1), [1, 2])
    starts = pointers(ran.events, "MapIterationStarted")
    exits = pointers(ran.events, "PassStateExited")
    assert starts[1][1] == exits[0][0]
    succeeded, left = pointers(ran.events, "MapStateSucceeded", "MapStateExited")
    last = pointers(ran.events, "MapIterationSucceeded")[-1][0]
    assert (last, last) == (succeeded[1], left[1])


def test_max_concurrency_bounds_the_iterations_and_40_is_the_most() -> None:
    assert 30 == execute(inline(("A", wait(10)), MaxConcurrency=2), [1] * 6).seconds
    assert (
        30
        == execute(
            inline(("A", wait(10)), MaxConcurrencyPath="$.n", ItemsPath="$.l"), {"n": 2, "l": [1] * 6}
        ).seconds
    )
    # [dg:state-map-inline].
    assert 20 == execute(inline(("A", wait(10))), [1] * 41).seconds


def test_an_iteration_that_fails_fails_the_map() -> None:
    # Recorded on AWS: test_map_state_catch.
    ran = execute(inline(("F", FAIL), MaxConcurrency=1), [1, 2])
    assert ["FailStateEntered", "MapIterationFailed", "MapStateFailed", "ExecutionFailed"] == ran.types[-4:]
    entered, failed, all_failed = pointers(
        ran.events, "FailStateEntered", "MapIterationFailed", "MapStateFailed"
    )
    assert (entered[0], entered[0]) == (failed[1], all_failed[1])


def test_what_is_around_a_state_that_could_not_be_run_has_no_event_of_failing() -> None:
    # Measured on AWS for a Parallel: floci-io/floci#2868.
    broken = ("A", passing(Parameters={"m.$": "$.nope"}))
    parallel = machine(("P", {"Type": "Parallel", "Branches": [branch(broken)]}))
    for around in (parallel, inline(broken)):
        ran = execute(around, [1])
        assert ["PassStateEntered", "ExecutionFailed"] == ran.types[-2:]
        assert "States.Runtime" == ran.error
        entered, failed = pointers(ran.events, "PassStateEntered", "ExecutionFailed")
        assert entered[0] == failed[1]


def test_iterations_still_running_are_cut_off() -> None:
    choice = {
        "Type": "Choice",
        "Choices": [{"Variable": "$", "NumericEquals": 1, "Next": "F"}],
        "Default": "W",
    }
    ran = execute(inline(("C", choice), ("W", {**wait(9), "End": True}), ("F", FAIL)), [0, 1])
    assert ("Bad", 0) == (ran.error, ran.seconds)
    assert {"WaitStateAborted", "MapIterationAborted"} <= set(ran.types)


def test_retrying_a_map_starts_it_anew_without_an_event_of_its_failure() -> None:
    # Recorded on AWS: test_map_state_retry_multiple_retriers.
    ran = execute(inline(("F", FAIL), Retry=[{"ErrorEquals": ["Bad"], "MaxAttempts": 2}]), [1])
    assert (3, 1) == (ran.types.count("MapStateStarted"), ran.types.count("MapStateFailed"))


def test_an_empty_map_succeeds_with_nothing() -> None:
    ran = execute(inline(("A", passing())), [])
    assert ([], {"length": 0}) == (ran.output, ran.details("MapStateStarted"))


def test_what_is_no_array_cannot_be_mapped() -> None:
    assert "States.Runtime" == execute(inline(("A", passing())), {"a": 1}).error


def test_iterations_read_outer_variables_and_keep_their_own() -> None:
    states = machine(
        ("S", passing(Assign={"outer": 1})),
        ("M", {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": machine(
            ("A", passing(Assign={"own.$": "$"})),
            ("B", passing(Parameters={"both.$": "States.Array($outer, $own)"})))}),
    )  # fmt: skip
    assert [{"both": [1, 5]}, {"both": [1, 6]}] == execute(states, {"l": [5, 6]}).output


def test_nested_maps_see_the_innermost_item() -> None:
    inner = {"Type": "Map", "ItemProcessor": machine(("A", passing(Parameters={"v.$": "$$.Map.Item.Value"})))}
    assert [[{"v": 1}], [{"v": 2}]] == execute(inline(("I", inner)), [[1], [2]]).output


def test_tasks_of_branches_cut_off_are_written_as_aborted() -> None:
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f"}
    both = {"Type": "Parallel", "Branches": [branch(("T", task)), branch(("W", wait(1)), ("F", FAIL))]}
    ran = execute(machine(("P", both)), services=Services(lambda_invoke=lambda _: asyncio.sleep(99)))
    assert "TaskStateAborted" in ran.types


LARGE = "x" * 200_000


def test_no_iteration_is_given_more_than_256_kib() -> None:
    twice = {"one.$": "$$.Map.Item.Value", "two.$": "$$.Map.Item.Value"}
    ran = execute(inline(("P", passing(Result=1)), ItemSelector=twice), [LARGE])
    assert "States.DataLimitExceeded" == ran.error
    assert ["MapIterationStarted", "MapIterationFailed", "MapStateFailed"] == ran.types[3:6]


def test_no_branch_is_given_more_than_256_kib() -> None:
    twice = {"one.$": "$", "two.$": "$"}
    branches = [branch(("P", passing(Result=1)))]
    ran = execute(machine(("All", {"Type": "Parallel", "Parameters": twice, "Branches": branches})), LARGE)
    assert "States.DataLimitExceeded" == ran.error
    assert ["ParallelStateStarted", "ParallelStateFailed"] == ran.types[2:4]


def test_an_inline_map_takes_no_object() -> None:
    # [dg:state-map-inline]: it "accepts only a JSON array".
    ran = execute(inline(("P", passing())), {"a": 1})
    assert "must point to array" in str(ran.cause)
