"""Every test of what AWS does says where that is known from, by itself or at the head of its file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = re.compile(
    r"\[dg:[a-z0-9-]+\]|\[botocore|aws-facts|[Rr]ecorded on AWS|RFC \d"
    r"|\b[Gg]uide\b|API reference|Docker|\w/[\w.-]+#\d"
)
# What is of our own making, or holds for any history, task or page: AWS has nothing to do with it.
OURS = {
    "unit/ecs/test_nonsense.py",
    "unit/ecs/test_services_properties.py",
    "unit/ecs/test_support_page.py",
    "unit/ecs/test_task_life_properties.py",
    "unit/stepfunctions/test_random_machines.py",
    "unit/stepfunctions/test_support_page.py",
    "unit/stepfunctions/test_turns.py",
    "unit/stepfunctions/test_values.py",
    "workflows/test_ecs_left_behind.py",
}


def files() -> Iterator[Path]:
    """Those about the local Step Functions and the local ECS."""
    for pattern in ("unit/stepfunctions", "unit/ecs"):
        yield from sorted((TESTS / pattern).glob("test_*.py"))
    yield from sorted((TESTS / "workflows").glob("test_ecs*.py"))
    yield TESTS / "workflows" / "test_stepfunctions_api.py"


def without_source(path: Path) -> list[str]:
    """The tests of a file that name none, where its head names none either."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    if SOURCE.search(ast.get_docstring(tree) or ""):
        return []
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [one for one in functions if one.name.startswith("test_")]
    return [one.name for one in tests if not SOURCE.search(ast.get_source_segment(source, one) or "")]


def test_every_test_of_what_aws_does_names_its_source() -> None:
    names = {path.relative_to(TESTS).as_posix(): without_source(path) for path in files()}
    assert {} == {name: tests for name, tests in names.items() if tests and name not in OURS}


def test_what_is_ours_is_there_and_names_no_source_throughout() -> None:
    assert OURS <= {path.relative_to(TESTS).as_posix() for path in files()}
    assert [] == [name for name in sorted(OURS) if not without_source(TESTS / name)]
