"""`trueup validate`: are the job files right, and are their classes there?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli.exits import USAGE
from trueup.cli.output import Json, print_json
from trueup.errors import UsageError
from trueup.model.base import cut

if TYPE_CHECKING:
    from trueup.model.jobs import AnyJob

EXAMPLE = "trueup validate containers/flights-summary"


def command(
    paths: Annotated[list[Path] | None, typer.Argument(help="Job files, or folders that hold some.")] = None,
    json: Json = False,
) -> None:
    """Check job files and the classes they name."""
    checked = [_check(file) for file in _files(paths or [Path()])]
    problems = [entry["problem"] for entry in checked if entry["problem"]]
    problems += _named_twice(checked)
    if json:
        print_json({"valid": not problems, "files": checked, "problems": problems})
        raise typer.Exit(USAGE if problems else 0)
    if problems:
        raise UsageError("\n".join(problems))
    for entry in checked:
        print(f"{entry['file']}: {entry['job']} is valid")


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        try:
            inside = _inside(path)
        except (OSError, ValueError) as error:
            what = f"{cut(str(path), 100)!r} cannot be a path: {getattr(error, 'strerror', None) or error}."
            raise UsageError(what, remedy="Name a job file, or a folder.") from error
        if not inside:
            raise UsageError(
                f"there are no job files under {path}.",
                remedy="Name one, or write one with `trueup new NAME`.",
            )
        found += inside
    return found


def _inside(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    patterns = ("containers/*/job.yaml", "job.yaml", "*/job.yaml")
    return next((found for pattern in patterns if (found := sorted(path.glob(pattern)))), [])


def _check(file: Path) -> dict[str, Any]:
    from trueup.errors import JobFileError
    from trueup.jobfile import check_verification, load

    entry: dict[str, Any] = {"file": str(file), "job": None, "problem": None}
    try:
        job = load(file)
        entry["job"] = job.name
        if job.job_class is not None:
            _check_class(job, file)
        check_verification(job, {**_beside(file), job.name: job}, file)
    except JobFileError as error:
        entry["problem"] = str(error)
    return entry


def _beside(file: Path) -> dict[str, AnyJob]:
    """The jobs that are deployed with one: those beside its folder, and those of the current one."""
    from trueup.errors import JobFileError
    from trueup.jobfile import load

    found: dict[str, AnyJob] = {}
    for other in [*Path().glob("containers/*/job.yaml"), *file.resolve().parent.parent.glob("*/job.yaml")]:
        with suppress(JobFileError):  # told of itself, where it is asked for
            job = load(other)
            found[job.name] = job
    return found


def _check_class(job: AnyJob, file: Path) -> None:
    from trueup.errors import JobFileError
    from trueup.jobfile import line_of
    from trueup.jobs import Backfill
    from trueup.loading import load

    try:
        with _imports_undone(file.parent):
            found = load(job, file.parent.resolve())
    except JobFileError as error:
        raise JobFileError(
            f"class: {error.what}", remedy=error.remedy, file=str(file), line=line_of(file, "class")
        ) from error
    if job.partitions.by == "job" and getattr(found, "partitions", None) is Backfill.partitions:
        what = f"class: {job.job_class} has no `partitions(window)`, but partitions are made `by: job`."
        raise JobFileError(
            what, remedy="Write it, or change `by`.", file=str(file), line=line_of(file, "class")
        )


@contextmanager
def _imports_undone(folder: Path) -> Iterator[None]:
    """Forget what was imported from a folder, since the next job may have a module of the same name."""
    path, before = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder.resolve())):
                del sys.modules[name]


def _named_twice(checked: list[dict[str, Any]]) -> list[str]:
    first: dict[str, str] = {}
    problems = []
    for entry in checked:
        name, file = entry["job"], entry["file"]
        if name in first and first[name] != file:
            problems.append(f"{file}: name: {first[name]} declares {name} too. Rename one.")
        if name is not None:
            first.setdefault(name, file)
    return problems
