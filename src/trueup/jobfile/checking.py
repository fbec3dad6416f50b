"""What is wrong with a job file: each problem with its line, its field and what to do."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

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
    verify_problems,
)
from trueup.model.jobs import AnyJob
from trueup.model.reconcile_job import Reconciliation, ReconciliationProblems, as_lists
from trueup.model.verification import Verify
from trueup.planning.inputs import placeholders, unknown_placeholders
from trueup.schemas.parameters import note_parameters
from trueup.yamlfile import Document, is_old_boolean, refused_paths
from trueup.yamlfile import Path as Place


def validated(document: Document) -> AnyJob | None:
    """The job, or None with the document's problems filled in."""
    if document.data is None and document.problems:
        return None
    if not isinstance(document.data, dict):
        document.add((), "a job file is a mapping of fields.", "Begin with `name: my-job`.")
        return None
    refused = set(refused_paths(document.data))
    model = None if ("kind",) in refused else _model_of(document)
    if model is None:
        return None
    job: AnyJob | None = None
    try:
        job = _strictly(model, _as_read(model, document.data))
    except ValidationError as error:
        for details in error.errors():
            _note(details, document, refused, model)
    _note_rules(document, model)
    return job


def _model_of(document: Document) -> type[JobFile] | type[Reconciliation] | None:
    """The model of the document's kind; None with a problem where there is no such kind."""
    kind = document.data.get("kind", "backfill")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    document.add(("kind",), f"there is no kind of job {_shown(kind)}.", instead(str(kind), list(KINDS), ""))
    return None


KINDS: dict[str, type[JobFile] | type[Reconciliation]] = {"backfill": JobFile, "reconcile": Reconciliation}


def _as_read(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    return as_lists(data) if model is Reconciliation else data


def _strictly(model: Any, data: Any) -> Any:
    """Validated as JSON is: lists become tuples, but "5" is not a number and yes is not true."""
    return TypeAdapter(model).validate_json(json.dumps(data, default=lambda _: None), strict=True)


def _note(details: ErrorDetails, document: Document, refused: set[Place], model: type[BaseModel]) -> None:
    path = _place(details["loc"], document.data)
    if path in refused or (details["type"] == "too_short" and details["input"]):
        return  # What is in it is wrong, and told of itself.
    if details["type"] == "value_error" and not path:
        _note_problems(details["ctx"]["error"], document)
        return
    document.add(path, *_explained(details, path, document, model))


def _note_problems(error: Exception, document: Document) -> None:
    """The rules across sections, field by field; those of a backfill are asked where they stand."""
    for field, what in error.problems if isinstance(error, ReconciliationProblems) else ():
        document.add(_path_of(field), f"{what}.")


def _path_of(field: str) -> Place:
    return tuple(int(part) if part.isdigit() else part for part in field.split("."))


def _place(location: tuple[int | str, ...], data: Any) -> Place:
    """Pydantic's location as the file has it: without the tag of a union, columns by their names."""
    if len(location) < 2:
        return location
    field, step, *rest = location
    section = data.get(field)
    if field in TAGS and isinstance(section, dict) and step == section.get(TAGS[str(field)]):
        return (field, *rest)
    if field == "columns" and isinstance(section, dict) and isinstance(step, int):
        return (field, list(section)[step], *rest)
    return location


TAGS = {"partitions": "by", "truth": "kind", "target": "kind", "invariant": "kind"}
"""The sections that may have several forms, and the field that says which."""


def _explained(
    details: ErrorDetails, path: Place, document: Document, model: type[BaseModel]
) -> tuple[str, str]:
    kind, found = details["type"], details["input"]
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1], document.data)
        return "there is no such field.", instead(str(path[-1]), known, "Remove it.")
    if kind == "missing":
        return f"`{path[-1]}` is missing.", "Add it."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = TAGS[str(path[-1])]
        kinds = _tags(model, str(path[-1]), tag)
        if "tag" not in context:
            return f"`{tag}` is missing.", f"Add one of: {', '.join(kinds)}."
        what = "partitions cannot be made by" if tag == "by" else f"{path[-1]} cannot be"
        return f"{what} {context['tag']!r}.", instead(context["tag"], kinds, "")
    if kind in ("literal_error", "enum"):
        return f"{_shown(found)} is not one of {context['expected']}.", _closest(
            found, str(context["expected"])
        )
    if kind == "value_error":
        return f"{context['error']}.", ""
    if kind == "string_pattern_mismatch":
        return f"{_shown(found)} cannot stand here.", f"Write {_form(path, context['pattern'])}."
    return _wrong_kind(kind, found, details["msg"])


def _closest(found: Any, expected: str) -> str:
    words = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    close = get_close_matches(str(found), words, 1)
    return f"Did you mean `{close[0]}`?" if close else "Choose one."


_FORMS = {
    "name": "lower case letters, digits and dashes, at most 40, such as flights-summary",
    "job": "the name of a reconcile job",
    "class": "module:Class, such as flights:FlightsSummary",
    "key": "one word of letters, digits and underscores",
    "prefix": "s3://bucket/prefix/",
    "location": "s3://bucket/key",
    "delimiter": "one character that is no quote and ends no line",
}
_WORD = _FORMS["key"]
_FORMS |= dict.fromkeys(("columns", "events", "figures", "order", "sums", "of", "version"), _WORD)


def _form(path: Place, pattern: str) -> str:
    """What a text has to look like, as its place is called, or the list or mapping that it is in."""
    names = (str(step) for step in reversed(path))
    return next((_FORMS[name] for name in names if name in _FORMS), f"a text like {pattern}")


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


def _tags(model: type[BaseModel], field: str, tag: str) -> list[str]:
    """The forms that a section may have."""
    annotation = model.model_fields[field].annotation
    return [text for one in _members(annotation) for text in _literals(one, tag)]


def _members(annotation: Any) -> Iterator[Any]:
    """The models of a union, whatever is annotated on the way."""
    if get_origin(annotation) in (Union, types.UnionType):
        for one in get_args(annotation):
            yield from _members(one)
    elif get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    else:
        yield annotation


def _model(annotation: Any, data: Any) -> type[BaseModel] | None:
    """The model that an annotation means for this data; of several, the one whose tag is the data's."""
    if get_origin(annotation) in (Union, types.UnionType):
        found = data if isinstance(data, dict) else {}
        return next(
            (
                one
                for one in _members(annotation)
                for tag in ("by", "kind")
                if found.get(tag) in _literals(one, tag)
            ),
            None,
        )
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _literals(model: Any, tag: str) -> tuple[Any, ...]:
    field = getattr(model, "model_fields", {}).get(tag)
    annotation = field.annotation if field else None
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _note_rules(document: Document, model: type[BaseModel]) -> None:
    """Rules that look at several fields, or deeper than types."""
    data = document.data
    if isinstance(data.get("parameters"), dict):
        note_parameters(data["parameters"], document)
    if model is not JobFile:
        return
    for field, what in _across_sections(data):
        document.add(_path_of(field), f"{what}.")
    partitions = _section(Partitioning, data.get("partitions"))
    if partitions is not None:
        _note_time_zone(partitions, document)
        _note_input(partitions, document)


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
    parameters = data.get("parameters")
    verify = _section(Verify | None, data.get("verify"))
    yield from verify_problems(verify, parameters if isinstance(parameters, dict) else {})


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


def instead(name: str, known: list[str], none: str) -> str:
    """A suggestion for an unknown name: the closest one, or the known ones, or what to say of none."""
    close = get_close_matches(name, known, 1, 0.6)
    if close:
        return f"Did you mean `{close[0]}`?"
    if not known:
        return none
    shown = ", ".join(sorted(known)[:12])
    return f"Known: {shown}{', ...' if len(known) > 12 else '.'}"
