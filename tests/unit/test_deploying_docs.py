"""What docs/deploying.md says of the template is what the template has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trueup.local.packaging import read_template

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
TEMPLATE = read_template(ROOT)


def test_every_parameter_of_the_template_is_in_the_table_and_nothing_else_is() -> None:
    (table,) = re.findall(r"^\| parameter \|.*?(?=^$)", PAGE, re.DOTALL | re.MULTILINE)
    told = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert sorted(TEMPLATE["Parameters"]) == sorted(told)


@pytest.mark.parametrize("name", ["TaskPolicy", "BackfillRole", "PartitionsRole", "PlanRole"])
def test_what_a_job_adds_to_is_there(name: str) -> None:
    assert f"`{name}`" in PAGE
    assert name in TEMPLATE["Resources"]


@pytest.mark.parametrize("name", ["Api", "Start"])
def test_outputs_are_those_of_the_template(name: str) -> None:
    assert f"output `{name}`" in PAGE
    assert name in TEMPLATE["Outputs"]


def test_families_are_called_as_the_page_says() -> None:
    families = [
        one["Properties"]["Family"]["Fn::Sub"]
        for one in TEMPLATE["Resources"].values()
        if one["Type"] == "AWS::ECS::TaskDefinition"
    ]
    for mode in ("read", "write"):
        assert f"`${{AWS::StackName}}-JOB-{mode}`" in PAGE
        assert f"${{AWS::StackName}}-flights-rows-{mode}" in families


def test_images_are_built_as_their_dockerfiles_say() -> None:
    (command,) = re.findall(r"^docker build -f (\S+) ", PAGE, re.MULTILINE)
    assert (ROOT / command).read_text().startswith(f"# docker build -f {command} .")
