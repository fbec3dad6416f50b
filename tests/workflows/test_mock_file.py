"""The mock configuration itself: complete, read by our engine, and true to what really answers.

Step Functions Local takes whatever a mock returns.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.accepting import Answer
from trueup.handling.moves import Position
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.mocking import MockConfiguration
from trueup.local.stepfunctions.parsing import parse_definition
from trueup.model.base import Value
from trueup.model.naming import NamingOrder
from trueup.naming import Tries

from .mocked import MOCKS, definition, hastened, mocks
from .mocked_cases import CASES, MACHINES


@pytest.mark.parametrize("machine", MACHINES)
def test_the_table_and_the_file_have_the_same_cases(machine: str) -> None:
    told = [case.name for case in CASES if case.machine == machine]
    assert sorted(mocks()["StateMachines"][machine]["TestCases"]) == sorted(told)


def test_every_response_is_used() -> None:
    machines = mocks()["StateMachines"].values()
    used = {name for one in machines for case in one["TestCases"].values() for name in case.values()}
    assert set(mocks()["MockedResponses"]) == used


def returned(name: str) -> list[tuple[str, Any]]:
    """Each answer that the mocks of a state give, with the name of its response."""
    cases = [case for one in mocks()["StateMachines"].values() for case in one["TestCases"].values()]
    return [
        (response, attempt["Return"])
        for response in sorted({case[name] for case in cases if name in case})
        for attempt in mocks()["MockedResponses"][response].values()
        if "Return" in attempt
    ]


@pytest.mark.parametrize(
    ("name", "service", "action", "member"),
    [
        ("Plan the run", "lambda", "invoke", None),
        ("Open or settle the phase", "lambda", "invoke", None),
        ("Accept what it did", "lambda", "invoke", None),
        ("Work the partitions", "stepfunctions", "describeExecution", None),
        ("Take a launch number", "dynamodb", "updateItem", None),
        # `.sync` gives the one task of its answer.
        ("Let the job name its partitions", "ecs", "describeTasks", "tasks"),
        ("Run the task", "ecs", "describeTasks", "tasks"),
    ],
)
def test_mocks_return_what_the_services_return(
    name: str, service: str, action: str, member: str | None
) -> None:
    shape = shapes.operation(service, action).output_shape
    shape = shape.members[member].member if member else shape
    assert returned(name)
    for response, value in returned(name):
        assert set(value) <= {key[:1].upper() + key[1:] for key in shape.members}, response


# What the functions' answers carry, by the models that read it again.
CARRIED: dict[str, type[Value]] = {"at": Position, "order": NamingOrder, "tries": Tries}


def answers(name: str) -> list[dict[str, Any]]:
    """What the mocks of a function answer, but for what no function answers yet."""
    return [value["Payload"] for response, value in returned(name) if "SomethingNew" not in response]


@pytest.mark.parametrize("name", ["Plan the run", "Open or settle the phase"])
def test_what_mocked_functions_hand_on_can_be_read_again(name: str) -> None:
    for told in answers(name):
        carried = {field: told[field] for field in CARRIED if field in told}
        assert carried or told["do"] in ("end", "fail")
        read = {field: CARRIED[field].model_validate(value).document() for field, value in carried.items()}
        assert carried == read


def test_accept_is_mocked_with_every_answer_that_it_gives() -> None:
    told = answers("Accept what it did")
    assert {answer.value for answer in Answer} == {one["answer"] for one in told}
    assert {one["answer"] == Answer.AGAIN.value: one["seconds"] > 0 for one in told} == {
        True: True,
        False: False,
    }


def test_the_file_is_read_as_a_whole() -> None:
    configuration = MockConfiguration.read(MOCKS)
    for machine, one in mocks()["StateMachines"].items():
        workflow = parse_definition(json.dumps(definition(machine)))
        for case in one["TestCases"]:
            assert configuration.case(machine, case, workflow).responses


@pytest.mark.parametrize("machine", MACHINES)
def test_hastening_changes_no_more_than_the_time(machine: str) -> None:
    as_it_is, quick = definition(machine), hastened(definition(machine))
    assert timeless(as_it_is) == timeless(quick) != quick
    assert parse_definition(json.dumps(quick)).start_at == as_it_is["StartAt"]


def timeless(one: Any) -> Any:
    """Without the fields that say how long to wait."""
    times = {"Seconds", "SecondsPath", "IntervalSeconds", "BackoffRate", "MaxDelaySeconds", "JitterStrategy"}
    if isinstance(one, dict):
        return {key: timeless(value) for key, value in one.items() if key not in times}
    return [timeless(value) for value in one] if isinstance(one, list) else one
