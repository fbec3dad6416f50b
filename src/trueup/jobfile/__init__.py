"""Job files: read from YAML, checked as a whole, gathered into a catalogue.

A refusal lists everything that is wrong at once, each with its line, its field and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from trueup.errors import JobFileError, UsageError
from trueup.jobfile.checking import instead, validated
from trueup.jobfile.verifying import check_verification, line_of
from trueup.model.base import cut
from trueup.model.jobs import AnyJob
from trueup.yamlfile import Problem, dotted, read_yaml

MOST_BYTES = 256 * 1024
_MOST_PROBLEMS = 30
_NONE_HERE = (
    "There are no job files here: write one with `trueup new NAME`, "
    "or name the folder that holds containers/*/job.yaml with --jobs."
)


def load(path: Path) -> AnyJob:
    """The job of a file. JobFileError lists all that is wrong with it; its class is not looked for."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise JobFileError(
                f"it is larger than {MOST_BYTES:,} bytes.",
                remedy="Give long lists as the request's keys, or by the job's own `partitions(window)`.",
                file=str(path),
            )
        text = data.decode("utf-8")
    except OSError as error:
        raise JobFileError(
            f"it cannot be read: {error.strerror}.", remedy="Give a job file.", file=str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise JobFileError("it is not UTF-8 text.", remedy="Save it as UTF-8.", file=str(path)) from error
    return loads(text, str(path))


def loads(text: str, file: str = "job.yaml") -> AnyJob:
    """The job of a text that came from `file`. JobFileError as for `load`."""
    document = read_yaml(text)
    job = validated(document)
    if document.problems or job is None:
        raise _refusal(file, document.problems)
    return job


def _refusal(file: str, problems: list[Problem]) -> JobFileError:
    first, *rest = sorted(set(problems))
    more = "".join(f"\n{file}:{problem.line}: {problem}" for problem in rest[: _MOST_PROBLEMS - 1])
    if len(rest) >= _MOST_PROBLEMS:
        more += f"\n{file}: and {len(rest) - _MOST_PROBLEMS + 1} more problems."
    return JobFileError(f"{first}{more}", file=file, line=first.line)


def catalogue(folder: Path, others: Mapping[str, AnyJob] | None = None) -> dict[str, AnyJob]:
    """The jobs of `containers/*/job.yaml` under a folder, by name; they may be verified by `others` too.

    JobFileError lists the problems of all files, two jobs of one name among them.
    """
    jobs: dict[str, AnyJob] = {}
    files: dict[str, Path] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("containers/*/job.yaml")):
        try:
            job = load(path)
        except JobFileError as error:
            problems.append(str(error))
            continue
        if job.name in jobs:
            problems.append(f"{path}: name: {files[job.name]} declares {job.name} too. Rename one.")
        jobs[job.name], files[job.name] = job, path
    for name, path in files.items():
        try:
            check_verification(jobs[name], {**(others or {}), **jobs}, path)
        except JobFileError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    return jobs


def write_catalogue(jobs: Mapping[str, AnyJob]) -> bytes:
    """The jobs as the Lambda layer carries them: one JSON document, by name."""
    return json.dumps({name: job.document() for name, job in sorted(jobs.items())}, indent=1).encode()


def read_catalogue(data: bytes) -> dict[str, AnyJob]:
    """The jobs of such a document."""
    job = TypeAdapter[AnyJob](AnyJob)
    return {name: job.validate_python(document) for name, document in json.loads(data).items()}


def find(jobs: Mapping[str, AnyJob], name: str) -> AnyJob:
    """The job of a name. UsageError suggests what may have been meant."""
    if name in jobs:
        return jobs[name]
    raise UsageError(
        f"no job is called {cut(name, 60)!r}.",
        remedy=instead(name, list(jobs), _NONE_HERE),
    )


__all__ = [
    "catalogue",
    "check_verification",
    "dotted",
    "find",
    "instead",
    "line_of",
    "load",
    "loads",
    "read_catalogue",
    "write_catalogue",
]
