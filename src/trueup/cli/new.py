"""`trueup new`: a job folder and a test that pass at once."""

from __future__ import annotations

import builtins
import keyword
import re
import shutil
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from trueup.cli.output import Json, print_json
from trueup.errors import UsageError

_TEMPLATE = Path(__file__).parent / "template"
# Names that the files of a new job import or use; a class of that name would hide them.
USED = frozenset({"Backfill", "Batch", "LocalRun", "Outcome", "Path", "Reject", "Skip", "Superseded"})
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")

EXAMPLE = "trueup new orders-by-day"


class Kind(StrEnum):
    """What a job does."""

    BACKFILL = "backfill"
    RECONCILE = "reconcile"


def command(
    name: Annotated[str, typer.Argument(help="The job's name: lower case letters, digits and dashes.")],
    kind: Annotated[Kind, typer.Option(help="What the job does.")] = Kind.BACKFILL,
    folder: Annotated[Path, typer.Option("--in", help="The project's folder.")] = Path(),
    json: Json = False,
) -> None:
    """Write a job to start from: a working backfill and its test, or a reconciliation's job file."""
    written = write_job(name, folder) if kind is Kind.BACKFILL else write_reconciliation(name, folder)
    if json:
        print_json({"job": name, "files": [str(path) for path in written]})
        return
    for path in written:
        print(f"wrote {path}")
    first = f"python -m pytest {written[-1]}" if kind is Kind.BACKFILL else f"trueup validate {written[-1]}"
    print(f"next: {first}, then put your source and target in")


def write_reconciliation(name: str, folder: Path) -> list[Path]:
    """Write the files of a new reconciliation under a folder, all or none; their paths, the job file last.

    UsageError where the name cannot be one, or the folder is there already.
    """
    _must_be_a_name(name)
    home = folder / "containers" / name
    _must_be_free(home)
    words = {"@NAME@": name}
    files = {
        home / "Dockerfile": _filled("Dockerfile", words),
        home / "job.yaml": _filled("reconcile.yaml", words),
    }
    _write_all(folder, home, files)
    return list(files)


def write_job(name: str, folder: Path) -> list[Path]:
    """Write the files of a new job under a folder, all or none; their paths, the test last.

    UsageError where the name cannot be one, or any of the files is there already.
    """
    _must_be_a_name(name)
    module = module_name(name)
    home, test = folder / "containers" / name, folder / "tests" / f"test_{module}.py"
    _must_be_free(home, test)
    words = {"@NAME@": name, "@MODULE@": module, "@CLASS@": class_name(name)}
    files = {
        home / "Dockerfile": _filled("Dockerfile", words),
        home / "job.yaml": _filled("job.yaml", words),
        home / f"{module}.py": _filled("job.py.txt", words),
    }
    _write_all(folder, home, files, {test: _filled("test_job.py.txt", words)})
    return [*files, test]


def _must_be_a_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a job.",
            remedy="Use lower case letters, digits and dashes, at most 40, such as flights-summary.",
        )


def _must_be_free(*paths: Path) -> None:
    for path in paths:
        if path.exists():
            raise UsageError(
                f"{path} is there already.", remedy="Choose another name, or remove it yourself."
            )


def module_name(name: str) -> str:
    """The module of a job: its name with underscores; another where that would hide a known module."""
    module = name.replace("-", "_")
    if module[0].isdigit():
        module = f"job_{module}"
    # pytest takes a conftest.py for its own, wherever it is.
    if keyword.iskeyword(module) or module == "conftest" or _is_known(module):
        module = f"{module}_job"
    return module


def _is_known(module: str) -> bool:
    from importlib.util import find_spec

    return module in sys.stdlib_module_names or find_spec(module) is not None


def class_name(name: str) -> str:
    """The class of a job: FlightsSummary for flights-summary, JobPath where Path would hide another one."""
    joined = "".join(part.capitalize() for part in name.split("-"))
    taken = keyword.iskeyword(joined) or hasattr(builtins, joined) or joined in USED
    return f"Job{joined}" if joined[0].isdigit() or taken else joined


def _filled(template: str, words: dict[str, str]) -> str:
    text = (_TEMPLATE / template).read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _write_all(
    folder: Path, home: Path, files: dict[Path, str], tests: dict[Path, str] | None = None
) -> None:
    """Written aside, then renamed into place; what was made is taken away again where that fails."""
    parents = [folder, home.parent, *(test.parent for test in tests or {})]
    made = [path for path in parents if not path.exists()]
    try:
        for parent in parents:
            parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=".new-") as aside:
            staged = Path(aside) / home.name
            staged.mkdir()
            for path, text in files.items():
                (staged / path.name).write_text(text, encoding="utf-8")
            staged.rename(home)
        for test, text in (tests or {}).items():
            with test.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        _take_away(home, made)
        what = f"{error.filename or folder}: {error.strerror or error}"
        raise UsageError(
            f"the job cannot be written: {what}. Nothing was left behind.",
            remedy="Name a folder that can be written to with --in.",
        ) from error


def _take_away(home: Path, made: list[Path]) -> None:
    shutil.rmtree(home, ignore_errors=True)
    for path in reversed(made):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
