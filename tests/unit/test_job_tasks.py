"""The digest that stands for a job's code on the local stack: promise 8, what was approved is what runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.jobfile import load
from trueup.local.ecs import worker_image
from trueup.local.job_tasks import JobFolder, images_of
from trueup.local.packaging import project

JOB = load(project() / "containers/flights-rows/job.yaml")


def job_in(folder: Path) -> JobFolder:
    return JobFolder(JOB, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "job"
    (made / "rules").mkdir(parents=True)
    (made / "job.py").write_text("first")
    (made / "rules/sums.py").write_text("second")
    return made


def test_a_file_saved_while_the_stack_starts_leaves_the_image_known(folder: Path) -> None:
    one = job_in(folder)
    images = images_of({"job": one}, {})
    (folder / "job.py").write_text("saved meanwhile")
    assert worker_image(folder) == images.find(one.image)
    assert job_in(folder).image != one.image


def test_images_of_ones_own_are_folders_from_wherever_they_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    found = images_of({}, {"mine": Path("job")}).find("mine:latest")
    assert found is not None
    assert (folder, ["run", "me"]) == (found.folder, found.argv(None, ["run", "me"]))


def moved(folder: Path) -> None:
    (folder / "rules/sums.py").rename(folder / "sums.py")


def joined(folder: Path) -> None:
    """The same bytes, cut elsewhere."""
    (folder / "job.py").write_bytes(b"first\0rules/sums.py\0second")
    (folder / "rules/sums.py").unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "job.py").write_text("other"),
        lambda folder: (folder / "rules/sums.py").write_text("other"),
        lambda folder: (folder / "rules/more.py").touch(),
        moved,
        joined,
    ],
)
def test_other_code_is_another_image(folder: Path, change: Callable[[Path], object]) -> None:
    before = job_in(folder).digest
    change(folder)
    assert before != job_in(folder).digest


@pytest.mark.parametrize(
    "name", ["__pycache__/job.pyc", "rules/__pycache__/sums.pyc", ".cache/found", "rules/.swp"]
)
def test_what_is_no_code_changes_nothing(folder: Path, name: str) -> None:
    before = job_in(folder).digest
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("made on the way")
    assert before == job_in(folder).digest
