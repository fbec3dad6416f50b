"""Job files: read from YAML, checked as a whole, gathered into a catalogue.

A refusal lists everything that is wrong at once, each with its line, its field and what to do.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from trueup.errors import JobFileError, UsageError
from trueup.model.base import cut
from trueup.model.job import (
    AbortRule,
    BatchSettings,
    JobFile,
    Partitioning,
    TaskSettings,
    abort_problems,
    batch_problems,
    entry_point_problems,
    progress_problems,
    size_problems,
)
from trueup.planning.inputs import placeholders, unknown_placeholders
from trueup.schemas.parameters import note_parameters
from trueup.yamlfile import Document, Problem, dotted, is_old_boolean, read_yaml, refused_paths
from trueup.yamlfile import Path as Place

MOST_BYTES = 256 * 1024
_MOST_PROBLEMS = 30


def load(path: Path) -> JobFile:
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


def loads(text: str, file: str = "job.yaml") -> JobFile:
    """The job of a text that came from `file`. JobFileError as for `load`."""
    document = read_yaml(text)
    job = _validated(document)
    if document.problems or job is None:
        raise _refusal(file, document.problems)
    return job


def _refusal(file: str, problems: list[Problem]) -> JobFileError:
    first, *rest = sorted(set(problems))
    more = "".join(f"\n{file}:{problem.line}: {problem}" for problem in rest[: _MOST_PROBLEMS - 1])
    if len(rest) >= _MOST_PROBLEMS:
        more += f"\n{file}: and {len(rest) - _MOST_PROBLEMS + 1} more problems."
    return JobFileError(f"{first}{more}", file=file, line=first.line)


def catalogue(folder: Path) -> dict[str, JobFile]:
    """The jobs of `containers/*/job.yaml` under a folder, by name.

    JobFileError lists the problems of all files, two jobs of one name among them.
    """
    jobs: dict[str, JobFile] = {}
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
    if problems:
        raise UsageError("\n".join(problems))
    return jobs


def write_catalogue(jobs: Mapping[str, JobFile]) -> bytes:
    """The jobs as the Lambda layer carries them: one JSON document, by name."""
    return json.dumps({name: job.document() for name, job in sorted(jobs.items())}, indent=1).encode()


def read_catalogue(data: bytes) -> dict[str, JobFile]:
    """The jobs of such a document."""
    return {name: JobFile.model_validate(document) for name, document in json.loads(data).items()}


def find(jobs: Mapping[str, JobFile], name: str) -> JobFile:
    """The job of a name. UsageError suggests what may have been meant."""
    if name in jobs:
        return jobs[name]
    raise UsageError(
        f"no job is called {cut(name, 60)!r}.",
        remedy=instead(name, list(jobs), "There are no job files here."),
    )


def instead(name: str, known: list[str], none: str) -> str:
    """A suggestion for an unknown name: the closest one, or the known ones, or what to say of none."""
    close = get_close_matches(name, known, 1, 0.6)
    if close:
        return f"Did you mean `{close[0]}`?"
    if not known:
        return none
    shown = ", ".join(sorted(known)[:12])
    return f"Known: {shown}{', ...' if len(known) > 12 else '.'}"


def _validated(document: Document) -> JobFile | None:
    """The job, or None with the document's problems filled in."""
    if document.data is None and document.problems:
        return None
    if not isinstance(document.data, dict):
        document.add((), "a job file is a mapping of fields.", "Begin with `name: my-job`.")
        return None
    refused = set(refused_paths(document.data))
    job: JobFile | None = None
    try:
        job = _strictly(JobFile, document.data)
    except ValidationError as error:
        for details in error.errors():
            _note(details, document, refused)
    _note_rules(document)
    return job


def _strictly(model: Any, data: Any) -> Any:
    """Validated as JSON is: lists become tuples, but "5" is not a number and yes is not true."""
    return TypeAdapter(model).validate_json(json.dumps(data, default=lambda _: None), strict=True)


def _note(details: ErrorDetails, document: Document, refused: set[Place]) -> None:
    path = _place(details["loc"], document.data)
    if path in refused:
        return
    if details["type"] == "value_error" and not path:
        return  # the rules across sections, which are told field by field
    document.add(path, *_explained(details, path, document))


def _place(location: tuple[int | str, ...], data: Any) -> Place:
    """Pydantic's location without the tag of a union, which is not in the file."""
    if location[:1] == ("partitions",) and len(location) > 1 and location[1] == _tag(data):
        location = ("partitions", *location[2:])
    return location


def _tag(data: Any) -> object:
    partitions = data.get("partitions")
    return partitions.get("by") if isinstance(partitions, dict) else None


def _explained(details: ErrorDetails, path: Place, document: Document) -> tuple[str, str]:
    kind, found = details["type"], details["input"]
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields(JobFile, path[:-1], document.data)
        return "there is no such field.", instead(str(path[-1]), known, "Remove it.")
    if kind == "missing":
        return f"`{path[-1]}` is missing.", "Add it."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        kinds = ["date", "key-range", "list", "s3-prefix", "job"]
        if "tag" not in context:
            return "`by` is missing.", f"Add one of: {', '.join(kinds)}."
        return f"partitions cannot be made by {context['tag']!r}.", instead(context["tag"], kinds, "")
    if kind in ("literal_error", "enum"):
        return f"{_shown(found)} is not one of {context['expected']}.", _closest(
            found, str(context["expected"])
        )
    if kind == "value_error":
        return f"{context['error']}.", ""
    if kind == "string_pattern_mismatch":
        return f"{_shown(found)} cannot stand here.", f"Write {_FORMS[str(path[-1])]}."
    return _wrong_kind(kind, found, details["msg"])


def _closest(found: Any, expected: str) -> str:
    words = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    close = get_close_matches(str(found), words, 1)
    return f"Did you mean `{close[0]}`?" if close else "Choose one."


_FORMS = {
    "name": "lower case letters, digits and dashes, at most 40, such as flights-summary",
    "verify": "the name of a reconcile job",
    "class": "module:Class, such as flights:FlightsSummary",
    "key": "one word of letters, digits and underscores",
    "prefix": "s3://bucket/prefix/",
}
_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _wrong_kind(kind: str, found: Any, message: str) -> tuple[str, str]:
    wanted = _KINDS.get(kind)
    if wanted is None:
        return f"{_shown(found)}: {message[:1].lower()}{message[1:]}.", "Correct it."
    if found is None:
        return "it is empty.", f"Give {wanted}, or remove it."
    if wanted == "true or false" and is_old_boolean(found):
        return f"{found} is text here.", f"Write {'true' if found.lower() in ('yes', 'on') else 'false'}."
    if wanted == "text" and not isinstance(found, dict | list | None):
        return f"{_shown(found)} is not text.", f'Write it in quotes: "{_shown(found)}".'
    return f"{_shown(found)} is not {wanted}.", f"Give {wanted}."


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else str(json.dumps(value, ensure_ascii=False))[:80]


def _fields(model: Any, path: Place, data: Any) -> list[str]:
    """The names of the fields that may stand at a path."""
    for step in path:
        data = _child(data, step)
        model = _part(model, step)
    found = _model(model, data)
    if found is None:
        return []
    return [info.alias or name for name, info in found.model_fields.items()]


def _child(data: Any, step: str | int) -> Any:
    if isinstance(data, list) and isinstance(step, int):
        return data[step]
    return data.get(step) if isinstance(data, dict) else None


def _part(model: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return next((part for part in get_args(model) if part is not Ellipsis), None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return None
    return next(
        (info.annotation for name, info in model.model_fields.items() if step in (name, info.alias)), None
    )


def _model(annotation: Any, data: Any) -> type[BaseModel] | None:
    """The model that an annotation means for this data; of several, the one whose `by` is the data's."""
    if get_origin(annotation) in (Union, types.UnionType):
        by = data.get("by") if isinstance(data, dict) else None
        return next((one for one in get_args(annotation) if by in _literals(one)), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _literals(model: Any) -> tuple[Any, ...]:
    field = getattr(model, "model_fields", {}).get("by")
    annotation = field.annotation if field else None
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _note_rules(document: Document) -> None:
    """Rules that look at several fields, or deeper than types."""
    data = document.data
    for field, what in _across_sections(data):
        path: Place = tuple(int(part) if part.isdigit() else part for part in field.split("."))
        document.add(path, f"{what}.")
    partitions = _section(Partitioning, data.get("partitions"))
    if partitions is not None:
        _note_time_zone(partitions, document)
        _note_input(partitions, document)
    if isinstance(data.get("parameters"), dict):
        note_parameters(data["parameters"], document)


def _across_sections(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from entry_point_problems(data.get("class") is not None, data.get("command") is not None)
    batch = _section(BatchSettings, data.get("batch", {}))
    task = _section(TaskSettings, data.get("task", {}))
    if batch and task:
        yield from batch_problems(batch, task)
        yield from progress_problems(batch, task)
    if task:
        yield from size_problems(task)
    yield from abort_problems(_section(tuple[AbortRule, ...], data.get("abort", [])) or ())


def _section(model: Any, data: Any) -> Any:
    """A section as far as it is well-formed: what is wrong in it is left out, and told elsewhere."""
    for _ in range(2):
        try:
            return _strictly(model, data)
        except ValidationError as error:
            data = _without(data, [details["loc"] for details in error.errors()])
    return None


def _without(data: Any, locations: list[tuple[int | str, ...]]) -> Any:
    """A copy without the fields of a mapping that errors name."""
    if not isinstance(data, dict):
        return data
    wrong = {step for location in locations for step in location}
    return {name: part for name, part in data.items() if name not in wrong}


def _note_time_zone(partitions: Any, document: Document) -> None:
    name = getattr(partitions, "timezone", "UTC")
    try:
        ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        from zoneinfo import available_timezones

        remedy = instead(name, list(available_timezones()), "")
        if not remedy.startswith("Did"):
            remedy = "Use an IANA name such as Europe/Paris."
        document.add(("partitions", "timezone"), f"there is no time zone {name!r}.", remedy)


def _note_input(partitions: Any, document: Document) -> None:
    allowed = ", ".join(f"{{{name}}}" for name in placeholders(partitions))
    for name in unknown_placeholders(partitions):
        shown = f"{{{name}}}" if name not in "{}" else f"a stray {name}"
        close = get_close_matches(name, placeholders(partitions), 1)
        remedy = f"Did you mean {{{close[0]}}}?" if close else f"Use {allowed}."
        document.add(("partitions", "input"), f"the pattern has {shown}, which nothing fills.", remedy)


__all__ = [
    "catalogue",
    "dotted",
    "find",
    "instead",
    "load",
    "loads",
    "read_catalogue",
    "write_catalogue",
]
