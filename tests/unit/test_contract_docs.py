"""The page on the contract says what the rules, the fields and the example really are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from trueup.contract import parse
from trueup.contract.reading import READING
from trueup.contract.rules import DOCUMENT, PARTITION, STANDING, Rule
from trueup.schemas.texts import BEYOND_SCHEMA, DESCRIPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading."""
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def table(rules: Iterable[Rule]) -> list[list[str]]:
    return [[f"`{rule.name}`", rule.meaning, rule.remedy] for rule in rules]


def fields(model: str) -> list[list[str]]:
    return [[f"`{name}`", text] for name, text in DESCRIPTIONS[model].items()]


@pytest.mark.parametrize(
    ("title", "rules"),
    [
        ("Can it be read?", READING.values()),
        ("Is it about this launch?", [rule for rule, _ in STANDING.values()]),
        ("Invariants of the document", [rule for rule, _ in DOCUMENT.values()]),
        ("Invariants of a partition", [rule for rule, _ in PARTITION.values()]),
    ],
)
def test_the_page_has_every_rule_with_its_meaning_and_remedy(title: str, rules: Iterable[Rule]) -> None:
    assert table(rules) == rows(title)


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("Fields of the document", "ResultContract"),
        ("Fields of a partition", "PartitionResult"),
        ("Fields of an output", "Output"),
        ("Fields of an error", "PartitionError"),
    ],
)
def test_the_page_has_every_field_with_its_description(title: str, model: str) -> None:
    assert fields(model) == rows(title)


def test_the_example_is_a_contract_that_can_be_read() -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)

    assert example is not None
    assert json.loads(example[1])["partitions"]
    assert not isinstance(parse(example[1].encode(), 10_000), list)


def test_no_cross_field_rule_of_the_contract_hides_in_its_models() -> None:
    told: Mapping[str, object] = BEYOND_SCHEMA

    assert set() == told.keys() & {"ResultContract", "PartitionResult", "Output", "PartitionError"}
    assert "The result contract has none" in PAGE
