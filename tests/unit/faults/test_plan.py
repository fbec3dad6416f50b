"""The list of faults: what can be written, what is refused, and the page that tells of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from trueup.errors import UsageError
from trueup.local.ecs import REFUSALS
from trueup.local.faults import FaultPlan, as_plan, fault, read_plan
from trueup.local.faults.model import Fault, OfLaunches, Refused, Which

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "faults.md").read_text()
KINDS: dict[str, type[Which]] = {
    name: kind for kind in get_args(Fault) for name in get_args(kind.model_fields["fault"].annotation)
}
WHICH = set(OfLaunches.model_fields) - {"fault"}
CODE = re.compile(r"`([^`]+)`")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with this heading."""
    text = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()[2:]]


def test_the_page_tells_of_every_fault() -> None:
    assert sorted(KINDS) == sorted(name for first, *_ in rows("fault") for name in CODE.findall(first))


def test_the_page_tells_of_every_field() -> None:
    told = {name: set(CODE.findall(cells[2])) for cells in rows("fault") for name in CODE.findall(cells[0])}
    for name, kind in KINDS.items():
        fields = {field.alias or key for key, field in kind.model_fields.items()} - {"fault"}
        assert fields - WHICH == told[name], name
    assert {CODE.findall(first)[0] for first, *_ in rows("which")} == WHICH


def test_the_refusals_are_those_of_the_ecs_server() -> None:
    assert list(REFUSALS) == list(get_args(Refused.model_fields["fault"].annotation))


def test_a_file_and_python_say_the_same() -> None:
    plan = read_plan(ROOT / "samples" / "faults.yaml")
    assert plan == FaultPlan(
        seed=7,
        faults=(
            fault("throttled", times=3),
            fault("crash", job="flights-rows", after=(0.5, 3), probability=0.3, times=5),
            fault("kill", job="flights-summary", launches=[1], checkpoint=2),
            fault("call-answer-lost", service="dynamodb", operation="UpdateItem", probability=0.05),
        ),
    )
    assert plan == as_plan(plan.document())


def test_a_file_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text('{"seed": 3, "faults": [{"fault": "kill", "after": 2}]}')
    assert FaultPlan(seed=3, faults=(fault("kill", after=2),)) == read_plan(tmp_path / "faults.json")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"fault": "sabotage"}, "'sabotage'"),
        ({"fault": "kill", "after": -1}, "after"),
        ({"fault": "kill", "after": "soon"}, "after"),
        ({"fault": "kill", "after": True}, "after: give seconds, such as 2, or two ends, such as [0.5, 4]"),
        ({"fault": "kill", "launches": 1}, "launches: this has to be a list"),
        ([], "faults.0: this has to be a mapping, with `fault` and its fields"),
        ({"fault": "kill", "after": 1, "checkpoint": 1}, "two moments"),
        ({"fault": "kill", "code": 1}, "code"),
        ({"fault": "exit", "code": 256}, "code"),
        ({"fault": "kill", "probability": 0}, "probability"),
        ({"fault": "kill", "times": 0}, "times"),
        ({"fault": "kill", "launches": [0]}, "launches"),
        ({"fault": "call-failed", "service": "sqs"}, "service"),
        ({"fault": "call-failed", "function": "accept", "job": "rows"}, "leave those out"),
        ({"fault": "callback-late"}, "seconds"),
        ({"fault": "cold-start", "seconds": float("inf")}, "seconds"),
        ("kill", "faults.0"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as refusal:
        as_plan({"faults": [given]})
    assert "faults.0" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("faults: [", ":1: "),
        ("", "the file is empty"),
        ("- fault: kill", "f.yaml: this has to be a mapping, with `faults`, a list, and perhaps `seed`"),
        ("[]", "f.yaml: this has to be a mapping"),
        ("faults: kill", "f.yaml: faults: this has to be a list"),
        ("faults: [{fault: kill, after: true}]", "f.yaml: faults.0.kill.after: give seconds"),
        ("seeds: 1", "seeds"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "f.yaml").write_text(text)
    with pytest.raises(UsageError, match=re.escape(says)):
        read_plan(tmp_path / "f.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml"):
        read_plan(tmp_path / "none.yaml")


def test_a_time_is_a_number_or_two_ends() -> None:
    assert (2.0, 2.0) == fault("kill", after=2).after
    assert (1.0, 2.5) == fault("kill", after=(1, 2.5)).after
    with pytest.raises(UsageError, match="the later end"):
        fault("kill", after=(2, 1))
