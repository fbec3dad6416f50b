"""docs/stepfunctions.md says of the engine what the engine says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from trueup.local.stepfunctions.api.operations import OPERATIONS
from trueup.local.stepfunctions.choice import COMPARISONS, OPERATORS
from trueup.local.stepfunctions.errors import ApiError, Problem
from trueup.local.stepfunctions.functions import FUNCTIONS
from trueup.local.stepfunctions.integrations.catalogue import PATTERNS
from trueup.local.stepfunctions.parsing.fields import Fields
from trueup.local.stepfunctions.parsing.machine import _workflow
from trueup.local.stepfunctions.parsing.states import TYPES, parse_state

from .harness import ROLE, World, machine, passing, play

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "stepfunctions.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str, heading: str) -> dict[str, str]:
    """The rows of the table with this heading: the rest of each by its first cell."""
    lines = text.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("| ").split(" | ", 1) for line in lines]
    return {first.strip("`"): rest for first, rest in cells}


SUPPORTED, APPROXIMATED, REFUSED = (section(title) for title in ("Supported", "Approximated", "Refused"))
STATES = rows(SUPPORTED, "state")
ALL_FIELDS = {field for row in STATES.values() for field in CODE.findall(row)}


def test_the_types_of_states_are_all_there() -> None:
    assert set(TYPES) == set(STATES)


@pytest.mark.parametrize("kind", TYPES)
def test_a_state_takes_the_fields_that_the_page_names(kind: str) -> None:
    told = set(CODE.findall(STATES[kind]))
    assert told == {field for field in ALL_FIELDS if takes(kind, field)}


def takes(kind: str, field: str) -> bool:
    """Whether a state of this type has this field, whatever is in it."""
    problems: list[Problem] = []
    raw = {"Type": kind, field: None} | ({"ItemProcessor": DISTRIBUTED} if kind == "Map" else {})
    parse_state("S", Fields(raw, "", problems, "State 'S'"), lambda fields: _workflow(fields, set()))
    return not any(f"Field '{field}' is not supported" in problem.message for problem in problems)


DISTRIBUTED = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    **machine(("P", passing())),
}


def test_functions_and_comparisons_are_those_of_the_language() -> None:
    parts = {name: set(CODE.findall(row)) for name, row in rows(SUPPORTED, "part of the language").items()}
    assert set(FUNCTIONS) == parts["intrinsic functions"]
    assert set(COMPARISONS) == parts["comparisons, each with its `…Path"]
    assert set(OPERATORS) - set(COMPARISONS) - {f"{name}Path" for name in COMPARISONS} == parts["tests"]


def test_integrations_have_the_patterns_that_the_page_names() -> None:
    told = {name: set(CODE.findall(row)) for name, row in rows(SUPPORTED, "integration").items()}
    ours = {
        f"{service}:{action}": {pattern for pattern in patterns if pattern}
        for (service, action), patterns in PATTERNS.items()
    }
    assert ours == {name: patterns for name, patterns in told.items() if name in ours}
    assert {
        "a function's ARN",
        "an activity's ARN",
        "aws-sdk:<service>:<action>",
    } == told.keys() - ours.keys()


def test_every_operation_of_the_service_is_supported_or_refused_by_name() -> None:
    model = botocore.session.Session().get_service_model("stepfunctions")
    told = set(CODE.findall(SUPPORTED.partition("\nOperations: ")[2].partition("\n")[0]))
    assert set(OPERATIONS) == told
    assert set(model.operation_names) - told == REFUSALS.keys() & set(model.operation_names)


def test_what_is_approximated_is_pinned_by_tests_that_exist() -> None:
    folders = ("tests/unit/stepfunctions", "tests/workflows")
    tests = "".join(path.read_text() for folder in folders for path in (ROOT / folder).glob("test_*.py"))
    pinned = [CODE.findall(row)[-1] for row in rows(APPROXIMATED, "what").values()]
    assert pinned
    for name in pinned:
        assert f"def {name}(" in tests, name


TASK = {"Type": "Task", "Parameters": {}}
FAN_OUT = {"Type": "Map", "ItemProcessor": DISTRIBUTED}


def reader(resource: str, **config: Any) -> dict[str, Any]:
    return {**FAN_OUT, "ItemReader": {"Resource": f"arn:aws:states:::{resource}", "ReaderConfig": config}}


def creating(state: dict[str, Any], **body: Any) -> Callable[[World], Any]:
    definition = json.dumps(machine(("S", state)))
    return lambda world: world.api(
        "CreateStateMachine", name="m", definition=definition, roleArn=ROLE, **body
    )


def alone(state: dict[str, Any], **body: Any) -> Callable[[World], Any]:
    definition = json.dumps({**state, "End": True})
    return lambda world: world.api("TestState", definition=definition, roleArn=ROLE, **body)


BOTH = {"Type": "Parallel", "Branches": [machine(("P", passing()))]}
CUSTOMER = {"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "k"}
REFUSALS: dict[str, Callable[[World], Any]] = {
    "JSONata": creating(passing(QueryLanguage="JSONata")),
    "fields of JSONata": creating({**TASK, "Arguments": {}, "Resource": "arn:aws:states:::lambda:invoke"}),
    "any other field": creating(passing(Speed=1)),
    "other integrations": creating({**TASK, "Resource": "arn:aws:states:::batch:submitJob.sync"}),
    "what AWS does not know either": creating({**TASK, "Resource": "arn:aws:states:::lambda:invoke.sync"}),
    "other formats of items": creating(reader("s3:getObject", InputType="PARQUET")),
    "other readers": creating(reader("dynamodb:scan")),
    "keys of one's own": creating(passing(), encryptionConfiguration=CUSTOMER),
    "tests of a Map or a Parallel alone": alone(BOTH),
    "the context that a test would see": alone(passing(), context="{}"),
}


async def done(call: Callable[[World], Any], world: World) -> None:
    answer = call(world)
    if isawaitable(answer):
        await answer


def test_the_page_lists_what_is_refused_here() -> None:
    assert list(REFUSALS) == list(rows(REFUSED, "what"))


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_in_the_sentence_of_the_page(name: str) -> None:
    async def scene(world: World) -> str:
        with pytest.raises(ApiError) as caught:
            await done(REFUSALS[name], world)
        return caught.value.message

    assert CODE.findall(rows(REFUSED, "what")[name])[0] in play(scene)
