"""Somebody follows the page of the local stack, for machines that have nothing to do with trueup's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .following import follower
from .watching import TRUEUP

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]


def test_the_page_says_how_to_run_machines_of_ones_own_and_it_works_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "local-stack.md").read_text(encoding="utf-8")
    (tmp_path / ".venv").symlink_to(TRUEUP.parents[1])
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    with follower(tmp_path, tmp_path) as somebody:
        somebody.follow(page.partition("## Machines of your own\n")[2].partition("\n## ")[0])
        counted = "import boto3; print(boto3.client('dynamodb').scan(TableName='letters')['Items'])"
        assert "'16'" in somebody.type(f'.venv/bin/python -c "{counted}"')
