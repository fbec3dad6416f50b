"""`trueup up` deploys job files once; those that are changed meanwhile are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from trueup.cli.up import job_files, stay
from trueup.errors import LocalStackError
from trueup.local.parts import Parts


class Script:
    """The servers of a stack: while they are watched one thing after the other is done, then one dies."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = iter(steps)

    def wait(self, seconds: float) -> None:
        """Do the next thing, at once."""
        step = next(self._steps, None)
        if step is None:
            raise LocalStackError("MiniStack ended")
        step()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "containers" / "rain" / "job.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("name: rain\n")
    return file


def told(folder: Path, capsys: pytest.CaptureFixture[str], *steps: Callable[[], object]) -> list[str]:
    """What is said while the steps are done."""
    with pytest.raises(LocalStackError):
        stay(cast(Parts, Script(*steps)), folder, job_files(folder))
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_changed_job_file_is_told_once(
    tmp_path: Path, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing() -> None: ...

    (line,) = told(tmp_path, capsys, nothing, lambda: job.write_text("name: snow\n"), nothing)
    assert f"{job} was changed; the stack has it as it was. Start `up` again for it." == line


def test_a_job_file_that_is_new_or_gone_is_told(
    tmp_path: Path, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "containers" / "snow" / "job.yaml"

    def add() -> None:
        other.parent.mkdir()
        other.write_text("name: snow\n")

    first, second = told(tmp_path, capsys, add, job.unlink)
    assert (str(other), str(job)) == (first.split()[0], second.split()[0])


def test_changed_code_is_not_told(tmp_path: Path, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [] == told(tmp_path, capsys, lambda: job.with_name("rain.py").write_text("x = 1\n"))
