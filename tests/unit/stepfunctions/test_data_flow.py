"""From a state's input to its output, and the events that show it.

Where a test names no source: [dg:concepts-input-output-filtering], [dg:input-output-contextobject],
[dg:workflow-variables], and the pages of the states, [dg:state-wait], [dg:state-succeed] and
[dg:state-fail].
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.hash_order import hash_order

from .harness import Services, endless, execute, machine, passing


def test_a_pass_hands_on_its_input() -> None:
    ran = execute(machine(("A", passing())), {"a": 1})
    assert ["ExecutionStarted", "PassStateEntered", "PassStateExited", "ExecutionSucceeded"] == ran.types
    # The first state's event points to 0, not to the start (recorded on AWS: test_state_pass_result).
    assert [0, 0, 2, 3] == [event["previousEventId"] for event in ran.events]
    assert {"a": 1} == ran.output


def test_input_path_parameters_result_path_and_output_path_apply_in_this_order() -> None:
    state = passing(
        InputPath="$.in", Parameters={"got.$": "$.n"}, ResultPath="$.result", OutputPath="$['result','in']"
    )
    # ResultPath places into the raw input, not into what InputPath selected.
    assert execute(machine(("A", state)), {"in": {"n": 4}}).output == {"result": {"got": 4}, "in": {"n": 4}}


def test_paths_of_null_are_empty_objects_and_a_result_path_of_null_drops_the_result() -> None:
    # Recorded on AWS: test_state_pass_result_null_input_output_paths.
    assert {} == execute(machine(("A", passing(InputPath=None))), {"a": 1}).output
    assert {} == execute(machine(("A", passing(OutputPath=None))), {"a": 1}).output
    assert {"a": 1} == execute(machine(("A", passing(Result=2, ResultPath=None))), {"a": 1}).output


def test_a_missing_path_fails_the_execution_with_the_state_and_the_event() -> None:
    # Recorded on AWS: test_invalid_jsonpath.
    ran = execute(machine(("A", passing(Parameters={"v.$": "$.nope"}))), {"a": 1})
    assert "States.Runtime" == ran.error
    assert str(ran.cause).startswith(
        "An error occurred while executing the state 'A' (entered at the event id #2). The JSONPath '$.nope'"
    )


def test_what_is_evaluated_follows_what_stands_for_itself_in_the_order_of_a_hash_map() -> None:
    # Recorded on AWS: test_s3_put_object (Bucket, Body, Key), test_result_selector (the nested object before
    # FunctionName), test_map_state_config_distributed_item_selector (mapValue, fromInput).
    def order(*names: str) -> list[str]:
        template = {name: "$" if name.endswith(".$") else {} for name in names}
        return list(execute(machine(("A", passing(Parameters=template)))).output)

    assert ["Bucket", "Body", "Key"] == order("Bucket.$", "Key.$", "Body.$")
    assert ["Payload", "FunctionName"] == order("FunctionName.$", "Payload")
    assert ["z", "constant", "mapValue", "fromInput"] == order("z", "mapValue.$", "constant", "fromInput.$")


def test_of_several_paths_that_find_nothing_the_first_is_told() -> None:
    ran = execute(machine(("A", passing(Parameters={"Key.$": "$.first", "Body.$": "$.second"}))))
    assert "The JSONPath '$.first' specified for the field 'Key.$'" in str(ran.cause)


def test_a_hash_map_has_sixteen_buckets_and_twice_as_many_beyond_twelve_names() -> None:
    # java.util.HashMap, whose order AWS shows: "p" is 112, bucket 0 of 16 and bucket 16 of 32.
    assert [*"pabcdefghijk"] == hash_order("abcdefghijkp")
    assert [*"abcdefghijklp"] == hash_order("abcdefghijklp")
    # Texts of one hash stay as they came.
    assert ["Aa", "BB"] == hash_order(["Aa", "BB"])
    assert ["BB", "Aa"] == hash_order(["BB", "Aa"])


def test_the_context_object_says_who_runs_what() -> None:
    ran = execute(machine(("A", passing(Parameters={"all.$": "$$", "name.$": "$$.State.Name"}))), {"a": 1})
    context = ran.output["all"]
    assert ["Execution", "StateMachine", "State"] == list(context)
    assert ["Id", "Input", "StartTime", "Name", "RoleArn", "RedriveCount"] == list(context["Execution"])
    assert ({"a": 1}, 0, "A") == (
        context["Execution"]["Input"],
        context["Execution"]["RedriveCount"],
        ran.output["name"],
    )
    assert "2026-09-21T14:13:20.000Z" == context["State"]["EnteredTime"]


def test_variables_are_set_on_leaving_and_shown_in_the_event() -> None:
    # Recorded on AWS: assign/*.
    ran = execute(
        machine(
            ("A", passing(Result={"answer": 42}, Assign={"x.$": "$.answer", "y": "text"})),
            ("B", passing(Parameters={"x.$": "$x", "y.$": "States.Format('{}!', $y)"})),
        )
    )
    assert {"x": 42, "y": "text!"} == ran.output
    details = ran.details("PassStateExited")
    assert {"x": "42", "y": '"text"'} == details["assignedVariables"]
    assert {"truncated": False} == details["assignedVariablesDetails"]


def test_an_empty_assign_shows_nothing() -> None:
    # Recorded on AWS: test_base_cases[BASE_EMPTY].
    assert "assignedVariables" not in execute(machine(("A", passing(Assign={})))).details("PassStateExited")


def test_a_variable_that_nobody_assigned_fails_the_state() -> None:
    assert "FAILED" == execute(machine(("A", passing(Parameters={"x.$": "$x"})))).status


@pytest.mark.parametrize(
    ("said", "states"),
    [
        ("'1st' is not a valid name of a variable", machine(("A", passing(Assign={"1st": 1})))),
        ("'states' is not a valid name of a variable", machine(("A", passing(Assign={"states": 1})))),
        (
            "The variable 'v' is assigned in an outer scope already at /States/P/Branches[0]/States/I/Assign",
            machine(
                ("A", passing(Assign={"v": 1})),
                ("P", {"Type": "Parallel", "Branches": [machine(("I", passing(Assign={"v.$": "$"})))]}),
            ),
        ),
    ],
)
def test_names_of_variables_are_checked_when_the_machine_is_created(said: str, states: Any) -> None:
    # [dg:workflow-variables]
    with pytest.raises(ApiError, match=re.escape(said)):
        execute(states)


def test_variables_assigned_at_once_take_256_kib_at_most() -> None:
    # aws-facts section 1.7 [dg:workflow-variables].
    state = passing(Assign={"a.$": "$", "b.$": "$"})
    assert "States.DataLimitExceeded" == execute(machine(("A", state)), "x" * 150_000).error


def test_a_fail_state_ends_the_execution_with_its_words() -> None:
    ran = execute(machine(("A", {"Type": "Fail", "Error": "Bad", "Cause": "because"})))
    assert ("FAILED", "Bad", "because") == (ran.status, ran.error, ran.cause)
    assert ["ExecutionStarted", "FailStateEntered", "ExecutionFailed"] == ran.types


def test_a_fail_state_takes_its_words_from_paths_and_functions() -> None:
    state = {"Type": "Fail", "ErrorPath": "$.e", "CausePath": "States.Format('no {}', $.c)"}
    ran = execute(machine(("A", state)), {"e": "Bad", "c": "luck"})
    assert ("Bad", "no luck") == (ran.error, ran.cause)


def test_succeed_ends_with_what_its_paths_select() -> None:
    assert 1 == execute(machine(("A", {"Type": "Succeed", "InputPath": "$.a"})), {"a": 1}).output


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("references a negative value: $.s == -1", -1),
        ("cannot be parsed as a long value: $.s == 1.5", 1.5),
        ("cannot be parsed as a long value: $.s == -1.5", -1.5),
        ("cannot be parsed as a long value: $.s == null", None),
    ],
)
def test_seconds_at_a_path_are_a_whole_number(said: str, value: object) -> None:
    # The words are those of moto's engine, which was made to agree with AWS.
    ran = execute(machine(("W", {"Type": "Wait", "SecondsPath": "$.s"})), {"s": value})
    assert "States.Runtime" == ran.error
    assert str(ran.cause).endswith(f"The SecondsPath parameter {said}")


@pytest.mark.parametrize(
    ("seconds", "state", "given"),
    [
        (90, {"Seconds": 90}, {}),
        (7, {"SecondsPath": "$.s"}, {"s": 7}),
        (0, {"Timestamp": "2016-01-01T00:00:00Z"}, {}),
        (40, {"TimestampPath": "$.t"}, {"t": "2026-09-21T14:14:00Z"}),
    ],
)
def test_a_wait_lasts_as_long_as_it_says(seconds: float, state: dict[str, object], given: object) -> None:
    ran = execute(machine(("W", {"Type": "Wait", **state})), given)
    assert ("SUCCEEDED", seconds) == (ran.status, round(ran.seconds, 3))


@pytest.mark.parametrize("field", ["SecondsPath", "TimestampPath"])
def test_a_wait_for_nothing_fails(field: str) -> None:
    # serverless-operations/serverless-step-functions#346
    ran = execute(machine(("W", {"Type": "Wait", field: "$.t"})))
    assert str(ran.cause).endswith(f"The {field} parameter does not reference an input value: $.t")


def test_a_wait_until_something_that_is_no_timestamp_fails() -> None:
    # Recorded on AWS: test_wait_timestamp_path[NO_T].
    ran = execute(machine(("W", {"Type": "Wait", "TimestampPath": "$.t"})), {"t": "2016-12-05 21:29:29Z"})
    assert str(ran.cause).endswith(
        "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format "
        "string: $.t == 2016-12-05 21:29:29Z"
    )


def test_a_result_over_256_kib_fails_and_names_the_state() -> None:
    # Recorded on AWS: test_start_large_input.
    ran = execute(machine(("A", passing(Result="x" * 262_143))))
    assert "States.DataLimitExceeded" == ran.error
    assert str(ran.cause).startswith("The state/task 'A' returned a result with a size exceeding")


def test_a_result_of_exactly_256_kib_passes() -> None:
    assert "SUCCEEDED" == execute(machine(("A", passing(Result="x" * 262_142)))).status


def test_the_25000th_event_is_the_failure() -> None:
    # Measured on AWS: floci-io/floci#2734 (aws-facts section 1.1).
    ran = execute(endless())
    assert (25_000, "ExecutionFailed", "States.Runtime") == (len(ran.events), ran.types[-1], ran.error)
    assert "The execution reached the maximum number of history events (25000)." == ran.cause


def test_a_result_selector_shapes_the_result_and_sees_the_context() -> None:
    # Recorded on AWS: context_object/test_result_selector.
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sqs:receiveMessage",
        "Parameters": {"QueueUrl": "q"},
        "ResultSelector": {"first.$": "$.Messages[0].Body", "from.$": "$$.Execution.Input"},
        "ResultPath": "$.got",
    }
    services = Services(sqs_receiveMessage=lambda _: {"Messages": [{"Body": "b"}]})
    assert {"a": 1, "got": {"first": "b", "from": {"a": 1}}} == execute(
        machine(("T", task)), {"a": 1}, services
    ).output
