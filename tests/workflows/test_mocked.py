"""Every way through the machines, at our endpoint and at MiniStack's, or at the one that SFN_ENDPOINT names.

What MiniStack fails by is in `ministack_faults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trueup.handling.ends import ended_of
from trueup.model.naming import NamingOrder
from trueup.model.plan import TaskOrder

from .definitions import SUBSTITUTIONS
from .ministack_faults import ATTEMPTS, PARAMETERS
from .mocked import Endpoint, Open, endpoints, opened, run
from .mocked_cases import ACCEPT, ASK, CASES, EXIT, NAME, NUMBER, ORDER, PLAN, RUN, SETTLE, WORD, WORK, Case

BY_NAME = {str(case): case for case in CASES}


@pytest.fixture(scope="module")
def up() -> Iterator[Open]:
    with opened() as up:
        yield up


@pytest.fixture
def sfn(request: pytest.FixtureRequest, up: Open) -> Endpoint:
    return up(request.param)


def play(sfn: Endpoint, case: Case) -> Any:
    return run(sfn, case.machine, case.name, case.given)


EVERYWHERE = [
    pytest.param(*endpoint.values, case, marks=endpoint.marks, id=f"{endpoint.values[0]}-{case}")
    for case in CASES
    for endpoint in endpoints(ATTEMPTS if case.name in ATTEMPTS.cases else None)
]
looks_at_calls = pytest.mark.parametrize("sfn", endpoints(PARAMETERS), indirect=True)


@pytest.mark.parametrize(("sfn", "case"), EVERYWHERE, indirect=["sfn"])
def test_a_case_goes_its_way(sfn: Endpoint, case: Case) -> None:
    ran = play(sfn, case)
    assert list(case.path) == ran.path
    assert list(case.retried) == ran.retried
    assert (case.status, case.error) == (ran.status, ran.error)
    if case.heard:
        told = next(visit.given["ended"] for visit in ran.visits if "ended" in visit.given)
        assert case.heard == ended_of(told)


@looks_at_calls
def test_the_run_and_its_position_reach_settle_and_nothing_else(sfn: Endpoint) -> None:
    ran = play(sfn, BY_NAME["backfill-FanOutFails"])
    first, second = ran.of(SETTLE)
    assert "States.TaskFailed" == second.given["caught"]["Error"]
    start = {"phase": "apply", "dispatch": 0, "firstSlice": 0, "mark": None, "idle": 0}
    worked = {"phase": "apply", "dispatch": 1, "firstSlice": 2, "mark": 0, "idle": 0}
    function = SUBSTITUTIONS["Settle"]
    assert [{"FunctionName": function, "Payload": {**RUN, "at": start}}] == first.calls
    assert [{"FunctionName": function, "Payload": {**RUN, "at": worked}}] == second.calls


@looks_at_calls
def test_each_fan_out_has_the_name_and_the_input_that_it_was_given(sfn: Endpoint) -> None:
    ran = play(sfn, BY_NAME["backfill-WorksTwice"])
    calls = [call for visit in ran.of(WORK) for call in visit.calls]
    assert ["flights-1-1-apply-1", "flights-1-1-apply-2"] == [call["Name"] for call in calls]
    assert {SUBSTITUTIONS["Partitions"]} == {call["StateMachineArn"] for call in calls}
    assert [{"order": {"runId": "flights-1"}, "maxConcurrency": 2}] * 2 == [call["Input"] for call in calls]


@looks_at_calls
def test_a_person_is_asked_about_what_settling_named_each_time_by_another_token(sfn: Endpoint) -> None:
    ran = play(sfn, BY_NAME["backfill-IsWokenWithoutADecision"])
    calls = [call for visit in ran.of(ASK) for call in visit.calls]
    assert {SUBSTITUTIONS["Ask"]} == {call["FunctionName"] for call in calls}
    tokens = {call["Payload"].pop("token") for call in calls}
    assert [{**RUN, "gate": "apply", "sha256": "ab" * 32}] * 2 == [call["Payload"] for call in calls]
    assert 2 == len(tokens)


@looks_at_calls
def test_the_task_that_names_partitions_has_its_order_and_the_next_plan_what_was_told(sfn: Endpoint) -> None:
    ran = play(sfn, BY_NAME["backfill-NamingFails"])
    launched = [call for visit in ran.of(NAME) for call in visit.calls]
    orders = [NamingOrder.model_validate_json(environment(call)["TRUEUP_NAMING"]) for call in launched]
    assert [1, 2] == [order.launch for order in orders]
    planned = [visit.given["told"]["next"] for visit in ran.of(PLAN)[1:]]
    assert [1, 2] == [told["order"]["launch"] for told in planned]


@looks_at_calls
def test_the_number_is_asked_of_the_open_run_of_this_generation(sfn: Endpoint) -> None:
    (call,) = play(sfn, BY_NAME["slice-GateIsShut"]).of(NUMBER)[0].calls
    assert {"PK": {"S": "RUN#flights-1"}, "SK": {"S": "RUN"}} == call["Key"]
    values = {":one": {"N": "1"}, ":open": {"S": "RUNNING"}, ":ours": {"N": "1"}, ":dispatch": {"N": "3"}}
    assert values == call["ExpressionAttributeValues"]


@looks_at_calls
@pytest.mark.parametrize(("name", "state"), [("slice-Exit75", EXIT), ("slice-WordIsThatItLeaves", WORD)])
def test_each_launch_has_an_order_of_its_own(sfn: Endpoint, name: str, state: str) -> None:
    ran = play(sfn, BY_NAME[name])
    launched = [call for visit in ran.of(state) for call in visit.calls]
    orders = [TaskOrder.model_validate_json(environment(call)["TRUEUP_ORDER"]) for call in launched]
    told = [order.document() for order in orders]
    # When the number was taken, which comes before the launch.
    assert all(one.pop("launchedAt") for one in told)
    assert [{**ORDER, "launch": 41}, {**ORDER, "launch": 42}] == told
    assert [41, 42] == [visit.given["number"]["launch"] for visit in ran.of(ACCEPT)]


@looks_at_calls
def test_only_a_task_that_is_waited_for_has_a_token(sfn: Endpoint) -> None:
    (call,) = play(sfn, BY_NAME["slice-WordIsGood"]).of(WORD)[0].calls
    assert environment(call)["TRUEUP_TASK_TOKEN"]
    (call,) = play(sfn, BY_NAME["slice-Exit0"]).of(EXIT)[0].calls
    assert {"TRUEUP_ORDER"} == set(environment(call))


def environment(call: dict[str, Any]) -> dict[str, str]:
    """What a launch sets in the container `job`."""
    (container,) = call["Overrides"]["ContainerOverrides"]
    assert "job" == container["Name"]
    return {entry["Name"]: entry["Value"] for entry in container["Environment"]}
