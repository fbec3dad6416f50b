"""docs/local-stack.md says of all that is ours what the code and the pages of its parts say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import botocore.session
import pytest

from trueup.local.ecs.api.operations import OPERATIONS as OF_ECS
from trueup.local.faults.model import Fault
from trueup.local.stepfunctions.api.operations import OPERATIONS as OF_STATES
from trueup.local.stepfunctions.choice import COMPARISONS, OPERATORS
from trueup.local.stepfunctions.functions import FUNCTIONS
from trueup.local.stepfunctions.integrations.catalogue import PATTERNS
from trueup.local.stepfunctions.parsing.states import TYPES

DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"`([^`]+)`")
OF_THE_ENGINE = ("the language", "integrations", "the API of Step Functions")
COLUMNS = {"Approximated": 1, "Refused": 2}


def table(page: str, section: str) -> dict[str, list[str]]:
    """The other cells of the first table of a section, by the first."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


PARTS = table("local-stack.md", "What is supported")


def supported(part: str) -> str:
    return PARTS[part][0]


def listed(part: str, column: str) -> list[str]:
    return [name for name in PARTS[part][COLUMNS[column]].split("; ") if name]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    ("page", "parts"), [("stepfunctions.md", OF_THE_ENGINE), ("ecs.md", ("Fargate",))], ids=["states", "ecs"]
)
def test_what_the_pages_of_the_parts_tell_is_told_once(
    page: str, parts: tuple[str, ...], column: str
) -> None:
    assert sorted(table(page, column)) == sorted(name for part in parts for name in listed(part, column))


def test_the_language_is_what_the_engine_takes() -> None:
    told = supported("the language")
    assert set(TYPES) == set(CODE.findall(told)) - {"…Path"}
    tests = set(OPERATORS) - set(COMPARISONS) - {f"{name}Path" for name in COMPARISONS}
    assert f"{len(FUNCTIONS)} intrinsic functions, {len(COMPARISONS)} comparisons" in told
    assert f"{len(tests)} tests" in told


def test_integrations_are_those_of_the_catalogue() -> None:
    ours = {f"{service}:{action}" for service, action in PATTERNS}
    assert ours | {"aws-sdk:<service>:<action>"} == set(CODE.findall(supported("integrations")))


def test_all_operations_of_step_functions_are_there() -> None:
    model = botocore.session.Session().get_service_model("stepfunctions")
    assert set(model.operation_names) == set(OF_STATES)
    assert f"all {len(OF_STATES)} operations" == supported("the API of Step Functions")


def test_operations_of_ecs_and_kinds_of_faults_are_counted() -> None:
    assert supported("Fargate").startswith(f"{len(OF_ECS)} operations of ECS")
    kinds = [name for kind in get_args(Fault) for name in get_args(kind.model_fields["fault"].annotation)]
    assert supported("faults").startswith(f"{len(kinds)} kinds")
