"""The faults of MiniStack that are in our way, each shown by the smallest machine."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from .ministack_faults import FAULTS, Fault, History, configuration
from .mocked import FOREIGN, ROLE, Endpoint, Open, ended, endpoints, opened
from .mocked_cases import CASES

pytestmark = pytest.mark.skipif(
    FOREIGN is not None, reason="SFN_ENDPOINT: that server was started with the machines' mock configuration"
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    file = tmp_path_factory.mktemp("faults") / "mocks.json"
    file.write_text(json.dumps(configuration()))
    with opened(file=file) as up:
        yield up


@pytest.fixture
def sfn(request: pytest.FixtureRequest, up: Open) -> Endpoint:
    return up(request.param)


@pytest.mark.parametrize(
    ("sfn", "number"),
    [
        pytest.param(*endpoint.values, number, marks=endpoint.marks)
        for number, fault in enumerate(FAULTS)
        for endpoint in endpoints(fault)
    ],
    indirect=["sfn"],
)
def test_a_fault_is_ministacks_alone(sfn: Endpoint, number: int) -> None:
    fault = FAULTS[number]
    assert fault.as_on_aws(history(sfn, f"fault-{number}", fault)), fault.says


def history(endpoint: Endpoint, name: str, fault: Fault) -> History:
    """What happens to the machine that shows a fault."""
    sfn = endpoint.client
    definition = json.dumps({"StartAt": "T", "States": {"T": fault.state}})
    arn = sfn.create_state_machine(name=name, definition=definition, roleArn=ROLE)["stateMachineArn"]
    started = sfn.start_execution(stateMachineArn=f"{arn}#It", input='{"said": "hello"}')
    execution = ended(endpoint, started["executionArn"]).arn
    events: History = sfn.get_execution_history(executionArn=execution)["events"]
    return events


def test_the_faults_name_cases_that_there_are() -> None:
    assert {case for fault in FAULTS for case in fault.cases} <= {case.name for case in CASES}
