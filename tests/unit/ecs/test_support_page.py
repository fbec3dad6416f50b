"""docs/ecs.md says of the local ECS what the local ECS says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from trueup.local.ecs.api.operations import OPERATIONS
from trueup.local.ecs.definitions import CONTAINER_FIELDS
from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.tasks import Status, StopCode

from .service_cases import ServiceCase

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ecs.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str, heading: str) -> dict[str, str]:
    """The rows of the table with this heading: the rest of each by its first cell."""
    lines = text.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("| ").split(" | ", 1) for line in lines]
    return {first.strip("`"): rest for first, rest in cells}


SUPPORTED, APPROXIMATED, REFUSED = (section(title) for title in ("Supported", "Approximated", "Refused"))


def test_operations_take_the_parameters_that_the_page_names() -> None:
    told = {name: tuple(CODE.findall(row)) for name, row in rows(SUPPORTED, "operation").items()}
    assert told == {name: operation.parameters for name, operation in OPERATIONS.items()}


def test_every_parameter_is_one_of_the_services_own() -> None:
    """[botocore ecs]"""
    model = botocore.session.Session().get_service_model("ecs")
    for name, operation in OPERATIONS.items():
        assert set(operation.parameters) <= set(model.operation_model(name).input_shape.members), name
    assert set(CONTAINER_FIELDS) <= set(model.shape_for("ContainerDefinition").members)


def test_containers_have_the_fields_that_the_page_names() -> None:
    told = SUPPORTED.partition("\nThe fields of a container are ")[2].partition("\n")[0]
    assert list(CONTAINER_FIELDS) == CODE.findall(told)


def test_states_and_stop_codes_are_those_of_the_page() -> None:
    told = {name: CODE.findall(row) for name, row in rows(SUPPORTED, "what").items()}
    assert [status.value for status in Status] == told["a task's way"]
    assert {code.value for code in StopCode} == set(told["stop codes"])


def test_what_is_approximated_is_pinned_by_tests_that_exist() -> None:
    folders = ("tests/unit/ecs", "tests/workflows")
    tests = "".join(path.read_text() for folder in folders for path in (ROOT / folder).glob("test_*.py"))
    pinned = [CODE.findall(row)[-1] for row in rows(APPROXIMATED, "what").values()]
    assert pinned
    for name in pinned:
        assert f"def {name}(" in tests, name


def registering(**more: Any) -> Callable[[ServiceCase], Any]:
    def register(case: ServiceCase) -> Any:
        container = {"name": "main", "image": "app", **more.pop("container", {})}
        return case.api("RegisterTaskDefinition", family="f", containerDefinitions=[container], **more)

    return register


def serving(**more: Any) -> Callable[[ServiceCase], Any]:
    given = {"serviceName": "s", "taskDefinition": "job", "desiredCount": 1}
    return lambda case: case.api("CreateService", **given, **more)


def two_containers(case: ServiceCase) -> Any:
    both = [{"name": name, "image": "app"} for name in ("a", "b")]
    case.api("RegisterTaskDefinition", family="two", cpu="256", memory="512", containerDefinitions=both)
    return case.api("RunTask", taskDefinition="two")


REFUSALS: dict[str, Callable[[ServiceCase], Any]] = {
    "any other operation": lambda case: case.api("CreateTaskSet", cluster="c", service="s"),
    "any other parameter": lambda case: case.api("RunTask", taskDefinition="job", enableExecuteCommand=True),
    "launch types but FARGATE": lambda case: case.api("RunTask", taskDefinition="job", launchType="EC2"),
    "platforms but 1.4.0": lambda case: case.api("RunTask", taskDefinition="job", platformVersion="1.3.0"),
    "several containers": two_containers,
    "other fields of a container": registering(container={"healthCheck": {"command": ["true"]}}),
    "volumes": lambda case: case.fargate.definitions.register(
        {"family": "f", "containerDefinitions": [{"name": "a", "image": "b"}], "volumes": [{"name": "v"}]}, 0
    ),
    "other systems": registering(runtimePlatform={"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}),
    "log drivers but awslogs": registering(container={"logConfiguration": {"logDriver": "splunk"}}),
    "load balancers and service discovery": serving(loadBalancers=[{}]),
    "other deployments": serving(deploymentController={"type": "CODE_DEPLOY"}),
    "daemons": serving(schedulingStrategy="DAEMON"),
}


def test_the_page_lists_what_is_refused_here() -> None:
    assert list(REFUSALS) == list(rows(REFUSED, "what"))


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_in_the_sentence_of_the_page(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        REFUSALS[name](ServiceCase())
    assert "UnsupportedFeatureException" == caught.value.name
    assert CODE.findall(rows(REFUSED, "what")[name])[0] in caught.value.message
