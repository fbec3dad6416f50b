"""TestState: one state alone ([dg:test-state-isolation], [botocore] TestState)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError

from .harness import ROLE, Services, World, machine, passing, play, refuse

SEND = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage",
    "Parameters": {"QueueUrl": "q", "MessageBody.$": "$.text"},
    "ResultSelector": {"id.$": "$.MessageId"},
    "ResultPath": "$.sent",
    "Next": "After",
}


def ask(state: Any, given: Any = None, services: Services | None = None, **body: Any) -> dict[str, Any]:
    """What TestState answers."""

    async def scene(world: World) -> Any:
        asked = {"definition": json.dumps(state), "input": json.dumps(given or {}), "roleArn": ROLE}
        return await world.api("TestState", **{**asked, **body})

    answer: dict[str, Any] = play(scene, services)
    return answer


def data(answer: dict[str, Any]) -> dict[str, Any]:
    """The data of an inspection, read."""
    inspected = answer["inspectionData"]
    return {name: json.loads(text) for name, text in inspected.items() if isinstance(text, str)}


def test_a_state_tells_its_output_and_where_it_would_go() -> None:
    assert {"status": "SUCCEEDED", "output": '{"a": 1}', "nextState": "B"} == ask(passing(Next="B"), {"a": 1})
    rule = {"Variable": "$.a", "NumericEquals": 1, "Next": "One"}
    choice = {"Type": "Choice", "Choices": [rule], "Default": "Other"}
    assert "One" == ask(choice, {"a": 1})["nextState"]
    assert "Other" == ask(choice, {"a": 2})["nextState"]
    assert {"status": "FAILED", "error": "E", "cause": "c"} == ask(
        {"Type": "Fail", "Error": "E", "Cause": "c"}
    )


@pytest.mark.parametrize("level", ["DEBUG", "TRACE"])
def test_an_inspection_shows_each_step_of_the_data(level: str) -> None:
    services = Services(sqs_sendMessage=lambda _: {"MessageId": "1"})
    answer = ask({**SEND, "InputPath": "$.in"}, {"in": {"text": "x"}}, services, inspectionLevel=level)
    seen = data(answer)
    assert "1" == seen.pop("result")["MessageId"]
    assert {
        "input": {"in": {"text": "x"}},
        "afterInputPath": {"text": "x"},
        "afterParameters": {"QueueUrl": "q", "MessageBody": "x"},
        "afterResultSelector": {"id": "1"},
        "afterResultPath": {"in": {"text": "x"}, "sent": {"id": "1"}},
    } == seen
    assert "inspectionData" not in ask(SEND, {"text": "x"}, services)


def test_variables_come_with_the_request_and_go_with_the_inspection() -> None:
    state = passing(Parameters={"sum.$": "States.MathAdd($one, 1)"}, Assign={"two.$": "$.sum"}, End=True)
    answer = ask(state, variables='{"one": 1}', inspectionLevel="DEBUG")
    assert '{"sum":2}' == answer["output"]
    assert {"one": 1, "two": 2} == data(answer)["variables"]


JOB = {"Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": {}}
RETRIED = {**SEND, "Retry": [
    {"ErrorEquals": ["Other"]}, {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 7}]}  # fmt: skip
CATCH = [{"ErrorEquals": ["States.ALL"], "Next": "Caught", "ResultPath": "$.error"}]


def test_a_state_that_would_be_tried_again_is_retriable() -> None:
    services = Services(sqs_sendMessage=refuse("QueueDoesNotExist"))
    answer = ask({**RETRIED, "Catch": CATCH}, {"text": "x"}, services, inspectionLevel="DEBUG")
    assert ("RETRIABLE", "SQS.QueueDoesNotExistException") == (answer["status"], answer["error"])
    assert {"retryIndex": 1, "retryBackoffIntervalSeconds": 7} == answer["inspectionData"]["errorDetails"]
    assert 1 == len(services.calls)


def test_an_error_that_is_caught_goes_to_the_catcher_s_state() -> None:
    mock = {"errorOutput": {"error": "Bad", "cause": "luck"}}
    answer = ask({**SEND, "Catch": CATCH}, {"text": "x"}, mock=mock, inspectionLevel="DEBUG")
    assert ("CAUGHT_ERROR", "Bad", "luck", "Caught") == tuple(
        answer[name] for name in ("status", "error", "cause", "nextState")
    )
    assert {"text": "x", "error": {"Error": "Bad", "Cause": "luck"}} == json.loads(answer["output"])
    assert {"catchIndex": 0} == answer["inspectionData"]["errorDetails"]


@pytest.mark.parametrize("suffix", ["", ".waitForTaskToken"])
def test_a_mocked_result_stands_for_the_call(suffix: str) -> None:
    state = {**SEND, "Resource": SEND["Resource"] + suffix}
    answer = ask(state, {"text": "x"}, mock={"result": '{"MessageId": "m"}'}, roleArn=ROLE)
    assert {"text": "x", "sent": {"id": "m"}} == json.loads(answer["output"])


def test_a_state_of_a_whole_machine_is_tested_by_its_name() -> None:
    inner = machine(("I", passing(Parameters={"x.$": "$.a"})), ("J", passing()))
    whole = machine(("P", {"Type": "Parallel", "Branches": [inner]}))
    answer = ask(whole, {"a": 1}, stateName="I")
    assert ('{"x":1}', "J") == (answer["output"], answer["nextState"])


def test_a_state_is_tested_for_five_minutes_at_most() -> None:
    # [botocore]: "it fails with the States.Timeout error".
    assert "SUCCEEDED" == ask({"Type": "Wait", "Seconds": 299, "End": True})["status"]
    assert {"status": "FAILED", "error": "States.Timeout"} == ask(
        {"Type": "Wait", "Seconds": 301, "End": True}
    )


@pytest.mark.parametrize(
    ("said", "state", "body"),
    [
        (
            "sync tasks are only",
            {**SEND, "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": {}},
            {},
        ),
        ("A mock can only be", passing(End=True), {"mock": {"result": "1"}}),
        ("either a result or an errorOutput", SEND, {"mock": {}}),
        ("The mocked result is not JSON", SEND, {"mock": {"result": "{"}}),
        ("has no state 'X'", machine(("P", passing())), {"stateName": "X"}),
        ("variables has to be a JSON object", passing(End=True), {"variables": "[]"}),
        ("InvalidDefinition", passing(Speed=1), {}),
        ("InvalidDefinition", [], {}),
        ("InvalidExecutionInput", passing(End=True), {"input": "{"}),
        ("InvalidArn", passing(End=True), {"roleArn": "me"}),
    ],
)
def test_what_cannot_be_tested_is_refused(said: str, state: Any, body: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match=said):
        ask(state, {"text": "x"}, **body)


def test_a_call_needs_a_role_unless_it_is_mocked() -> None:
    async def scene(world: World) -> Any:
        return await world.api("TestState", definition=json.dumps(SEND), input='{"text": "x"}')

    with pytest.raises(ApiError, match="A roleArn is required when no mock is specified"):
        play(scene)
