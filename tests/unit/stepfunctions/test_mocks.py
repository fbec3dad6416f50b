"""Step Functions Local's mock configuration ([dg:sfn-local-test-sm-exec])."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.mocking import MockConfiguration, MockError

from .harness import Ran, World, machine, passing, play, ran

THROTTLED = {"Throw": {"Error": "Throttled", "Cause": "too fast"}}
CONFIG = {
    "StateMachines": {"m": {"TestCases": {"Case": {"T": "Answer"}, "Broken": {"T": "Nowhere"}}}},
    "MockedResponses": {"Answer": {"0": THROTTLED, "1-2": THROTTLED, "3": {"Return": {"ok": True}}}},
}
TASK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::dynamodb:getItem",
    "Parameters": {"TableName": "t", "Key": {}},
    "Retry": [{"ErrorEquals": ["Throttled"], "MaxAttempts": 9}],
}


def mocked(definition: Any, given: Any = None, config: Any = None, case: str = "Case") -> Ran:
    async def scene(world: World) -> Ran:
        execution = world.start(f"{world.create(definition)}#{case}", given)
        await execution.ended()
        return ran(execution)

    result: Ran = play(scene, mocks=MockConfiguration(config or CONFIG))
    return result


def test_attempts_are_answered_by_number_and_by_range() -> None:
    ended = mocked(machine(("T", TASK)))
    assert ({"ok": True}, 3) == (ended.output, ended.types.count("TaskFailed"))


def test_an_attempt_without_a_response_fails_the_execution() -> None:
    config = {**CONFIG, "MockedResponses": {"Answer": {"0": THROTTLED}}}
    ended = mocked(machine(("T", TASK)), config=config)
    assert ("States.Runtime", "No mocked response for attempt 1 of state 'T'") == (ended.error, ended.cause)


def test_a_mocked_callback_needs_nobody_to_send_it() -> None:
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"},
    }
    config = {**CONFIG, "MockedResponses": {"Answer": {"0": {"Return": "called back"}}}}
    ended = mocked(machine(("T", state)), config=config)
    assert "called back" == ended.output
    assert ["TaskSubmitted", "TaskSucceeded"] == ended.types[4:6]


def test_attempts_are_counted_over_all_iterations_of_a_map() -> None:
    # aws-facts section 6.1.
    config = {**CONFIG, "MockedResponses": {"Answer": {"0": {"Return": "a"}, "1": {"Return": "b"}}}}
    plain = {key: value for key, value in TASK.items() if key != "Retry"}
    inline = {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": machine(("T", plain))}
    assert ["a", "b"] == mocked(machine(("M", inline)), [1, 2], config).output
    children = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **machine(("T", plain)),
    }
    distributed = {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": children}
    assert ["a", "b"] == mocked(machine(("M", distributed)), [1, 2], config).output


def test_states_inside_a_parallel_are_answered_by_name() -> None:
    plain = {key: value for key, value in TASK.items() if key != "Retry"}
    cases = {"m": {"TestCases": {"Case": {"A": "One", "B": "Two"}}}}
    answers = {"One": {"0": {"Return": 1}}, "Two": {"0": {"Return": 2}}}
    both = {"Type": "Parallel", "Branches": [machine(("A", plain)), machine(("B", plain))]}
    config = {"StateMachines": cases, "MockedResponses": answers}
    assert [1, 2] == mocked(machine(("P", both)), config=config).output


def test_a_child_is_started_with_a_case_of_its_own() -> None:
    start = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync:2",
             "Parameters": {"StateMachineArn.$": "$.child"}, "OutputPath": "$.Output"}  # fmt: skip

    async def scene(world: World) -> Ran:
        child = world.create(machine(("T", TASK)))
        execution = world.start(world.create(machine(("S", start)), "parent"), {"child": f"{child}#Case"})
        await execution.ended()
        return ran(execution)

    assert {"ok": True} == play(scene, mocks=MockConfiguration(CONFIG)).output


def test_states_that_are_not_named_are_not_mocked() -> None:
    config = {"StateMachines": {"m": {"TestCases": {"Case": {}}}}}
    assert "SUCCEEDED" == mocked(machine(("P", passing())), config=config).status


@pytest.mark.parametrize(("said", "case"), [("Mock case 'No'", "No"), ("'Nowhere' does not exist", "Broken")])
def test_a_case_that_is_not_there_is_refused(said: str, case: str) -> None:
    with pytest.raises(ApiError, match=said):
        mocked(machine(("P", passing())), case=case)


@pytest.mark.parametrize(
    ("said", "raw"),
    [
        ("neither an attempt nor a range", {"MockedResponses": {"A": {"x": {"Return": 1}}}}),
        ("neither an attempt nor a range", {"MockedResponses": {"A": {"²": {"Return": 1}}}}),
        ("neither an attempt nor a range", {"MockedResponses": {"A": {"0-": {"Return": 1}}}}),
        ("neither an attempt nor a range", {"MockedResponses": {"A": {"9" * 5000: {"Return": 1}}}}),
        ("either a Return or a Throw", {"MockedResponses": {"A": {"0": {}}}}),
        ("StateMachines has to be an object", {"StateMachines": []}),
        ("run backwards", {"MockedResponses": {"A": {"3-1": {"Return": 1}}}}),
        ("answers attempt 2 twice", {"MockedResponses": {"A": {"2": {"Return": 1}, "0-2": {"Return": 2}}}}),
        ("answers attempt 1 twice", {"MockedResponses": {"A": {"0-1": {"Return": 1}, "1": {"Return": 2}}}}),
        ("object of responses", {"StateMachines": {"m": {"TestCases": {"Case": ["A"]}}}}),
        ("object of responses", {"StateMachines": {"m": {"TestCases": {"Case": {"T": ["A"]}}}}}),
        ("has no Error", {"MockedResponses": {"A": {"0": {"Throw": "Error"}}}}),
        ("has no Error", {"MockedResponses": {"A": {"0": {"Throw": {"Cause": "so"}}}}}),
    ],
)
def test_a_configuration_is_refused_with_its_place(said: str, raw: Any) -> None:
    with pytest.raises(MockError, match=said):
        MockConfiguration(raw)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MockError, match=r"mocks\.json"):
        MockConfiguration.read(tmp_path / "mocks.json")


@pytest.mark.parametrize("inner", [False, True])
def test_a_case_that_names_a_state_that_is_not_there_is_refused(inner: bool) -> None:
    states = machine(("Renamed", TASK))
    if inner:
        states = machine(("P", {"Type": "Parallel", "Branches": [states]}))
    with pytest.raises(ApiError, match="names the state 'T', which the state machine 'm' does not have"):
        mocked(states)


def test_an_attempt_that_a_file_answers_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mocks.json"
    file.write_text('{"MockedResponses": {"A": {"0": {"Return": 1}, "0": {"Return": 2}}}}')
    with pytest.raises(MockError, match="Duplicate field '0'"):
        MockConfiguration.read(file)
