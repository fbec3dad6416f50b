"""The page of errors lists what the code can raise, answer and exit with, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trueup import errors
from trueup.cli import exits, main, troubles
from trueup.errors import NotFound, TrueupError, UsageError
from trueup.exits import Exit
from trueup.handling.api.problems import KINDS

SRC = Path(__file__).parents[2] / "src" / "trueup"


def test_the_page_is_what_the_code_says() -> None:
    assert troubles.FILE.read_text(encoding="utf-8") == troubles.text(), "run python -m trueup.cli.troubles"


def test_every_error_says_what_to_do() -> None:
    tree = [error for error, _ in troubles.family()]
    defined = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)}
    assert defined == set(tree) == set(troubles.DO)
    assert all(len(do) > 20 for do in troubles.DO.values())


def test_the_tree_that_is_drawn_is_the_one_that_is_there() -> None:
    drawn = re.findall(r"^([│├└─ ]*)([A-Z]\w+)(?: {2}|$)", errors.__doc__ or "", re.MULTILINE)
    assert [(name, len(lines) // 4) for lines, name in drawn] == [
        (error.__name__, depth) for error, depth in troubles.family()
    ]


def test_every_problem_and_every_exit_says_what_to_do() -> None:
    assert {kind.name for kind in KINDS} == set(troubles.PROBLEMS)
    assert set(Exit) == set(troubles.TASK_EXITS)
    assert {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)} == set(
        troubles.EXITS
    )


def kinds() -> Iterator[str]:
    """The kinds of errors of a partition that are written down anywhere in the code."""
    for file in SRC.rglob("*.py"):
        if "testing" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and "PartitionError" == getattr(node.func, "id", ""):
                yield from (one.value.value for one in node.keywords if isinstance(one.value, ast.Constant))
            if isinstance(node, ast.Call) and "_fail" == getattr(node.func, "attr", ""):
                yield from (
                    one.value
                    for one in node.args
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )


def test_every_reason_that_a_partition_can_fail_for_is_explained() -> None:
    assert set(kinds()) == set(troubles.PARTITIONS)


@pytest.mark.parametrize("error", [error for error, _ in troubles.family()], ids=lambda one: one.__name__)
def test_the_command_line_exits_as_the_page_says(
    error: type[TrueupError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise error("It went wrong.")

    monkeypatch.setattr("trueup.cli.app", fails)
    expected = 2 if issubclass(error, UsageError | NotFound) else 1
    assert expected == main([]) == exits.of_error(error("It went wrong."))
    assert "It went wrong." in capsys.readouterr().err
