"""The published schemas are what the models give, and both accept and refuse the same documents."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from trueup.contract import parse
from trueup.model.base import Value
from trueup.model.reconcile_job import as_lists
from trueup.schemas import FOLDER, MODELS, REPORT_FILES, file_name, published, published_report, read, schema
from trueup.schemas.__main__ import main
from trueup.schemas.texts import BEYOND_SCHEMA, TITLES
from trueup.schemas.validator import validator

from .contract_cases import Case, full_entry

JOB: dict[str, Any] = {
    "name": "flights-summary",
    "class": "flights.job:FlightsSummary",
    "description": "Flights by day",
    "parameters": {"type": "object"},
    "secrets": {"read": {"db": "flights-read"}, "write": {"db": "flights-write"}},
    "partitions": {
        "by": "date",
        "unit": "day",
        "timezone": "UTC",
        "input": "s3://in/{label}.csv",
        "seconds": 2.5,
    },
    "order": "heaviest",
    "target": {"name": "flights", "guard": "fence"},
    "batch": {"size": 500, "targetSeconds": 5.0, "maximumSeconds": 20},
    "task": {"cpu": 256, "memory": 512, "minutes": 15, "wait": "exit", "stopSeconds": 30},
    "limits": {"maxConcurrency": 16, "recordsPerSecond": 100.5},
    "errors": {"rejects": 3},
    "abort": [{"of": "dollars", "above": 20, "unit": "usd", "minimum": 1}],
    "approval": {"required": True, "roles": ["ops"], "expiresHours": 24, "canary": 1},
    "verify": {"job": "flights-check", "params": {"since": "{from}", "depth": 1}},
}
SMALL_JOB = {"name": "j", "command": ["run"], "target": {"name": "flights", "guard": "none"}}
OTHER_PARTITIONS: list[dict[str, Any]] = [
    {"by": "key-range", "key": "id", "type": "integer", "size": 1000},
    {"by": "key-range", "key": "id", "type": "text", "splits": ["g", "p"]},
    {"by": "list", "key": "tenant", "items": ["a", "b"]},
    {"by": "s3-prefix", "key": "file", "prefix": "s3://in/days/", "suffix": ".csv"},
    {"by": "job", "key": "tenant", "empty": "allowed"},
]
RECONCILE: dict[str, Any] = {
    "name": "cases",
    "kind": "reconcile",
    "truth": {"kind": "postgres", "table": "case_status", "dsn": "dsn", "where": "not archived"},
    "target": {
        "kind": "dynamodb",
        "table": "{table}",
        "segments": 4,
        "absent": "null",
        "begins": {"id": "a"},
        "count": True,
    },
    "key": ["id"],
    "columns": [
        {"name": "id", "type": "text"},
        {
            "name": "paid",
            "type": "decimal",
            "tolerance": "0.01",
            "target": {"name": "cents", "times": "0.01"},
        },
        {"name": "at", "type": "timestamp", "compared": False, "truth": {"zone": "UTC"}},
        {"name": "note", "type": "text", "truth": {"nulls": ["-"]}},
    ],
    "parameters": {"type": "object", "properties": {"table": {"type": "string"}}},
    "invariant": {"kind": "rows"},
    "version": "at",
    "lag": 2.5,
    "waitFor": {"location": "s3://b/export/manifest-summary.json", "minutes": 5},
    "looks": 3,
    "partitions": {"by": "splits", "splits": [["g"], ["p"]], "seconds": 5},
    "locks": "cases",
}
OTHER_RECONCILE: list[dict[str, Any]] = [
    {"partitions": {"by": "quantiles", "count": 8}},
    {"truth": {"kind": "dynamodb-export", "location": "s3://b/export", "absent": "kept"}},
    {
        "truth": {"kind": "objects", "location": "s3://b/rows", "format": "csv", "delimiter": ";"},
        "target": {"kind": "s3-inventory", "location": "s3://b/inventory", "versions": "all"},
    },
    {"truth": {"kind": "objects", "location": "s3://b/rows", "format": "jsonl", "named": {"column": "id"}}},
    {"invariant": {"kind": "exists", "ways": "truth-in-target"}},
    {"invariant": {"kind": "aggregates", "figures": {"paid": {"op": "sum", "of": "paid"}}}},
    {
        "invariant": {
            "kind": "derived",
            "events": [{"name": "seq", "type": "integer"}],
            "order": ["seq"],
            "figures": {"paid": {"op": "count"}},
        },
        "columns": [{"name": "id", "type": "text"}, {"name": "paid", "type": "integer"}],
        "version": None,
    },
    {"target": None, "invariant": {"kind": "conservation", "sums": ["paid"]}},
]
REQUEST: dict[str, Any] = {
    "job": "flights-summary",
    "requestId": "2026-07-06:nightly",
    "requester": "ana",
    "from": "2013-01-01",
    "to": "2013-02-01",
    "params": {"carrier": "AA", "depth": 1.5},
    "dryRun": False,
    "sample": 3,
    "maxConcurrency": 4,
    "comment": "",
}


class Document(NamedTuple):
    """A valid document, and the schema that it is valid under."""

    schema: str
    content: dict[str, Any]


DOCUMENTS = [
    Document("result", Case(full_entry() | {"error": {"kind": "E", "message": "", "record": "7"}}).document),
    Document("request", REQUEST),
    Document("request", {"job": "j", "requestId": "r", "requester": "ana", "keys": ["a"]}),
    Document("job", JOB),
    *(Document("job", {**SMALL_JOB, "partitions": other}) for other in OTHER_PARTITIONS),
    Document("reconcile", RECONCILE),
    *(Document("reconcile", {**RECONCILE, **other}) for other in OTHER_RECONCILE),
]
NAMES = [f"{number}-{document.schema}" for number, document in enumerate(DOCUMENTS)]

# What stands where something else belongs. Each is near to something valid.
NUMBERS: list[Any] = [0, 1, 2, -1, 1.0, 720.0, -0.0, 1.5, 1e300, 2**53 - 1, 2**53, 2**64]
INSTANTS = [
    "2026-07-06T01:00:00Z",
    "2026-07-06T01:00:00.5+02:00",
    "2026-07-06T01:00:00.123456789Z",
    "2026-07-06 01:00:00Z",
    "2026-07-06t01:00:00z",
    "2026-07-06T01:00Z",
    "2026-07-06T01:00:00",
    "2026-07-06",
    "2026-02-30T01:00:00Z",
    "2026-07-06T24:00:00Z",
    "2026-07-06T01:00:60Z",
    "2026-07-06T01:00:00+24:00",
    "0000-01-01T00:00:00Z",
    "2026-07-06T01:00:00Z\n",
    "1783299600",
]
HASHES = ["a" * 64, "a" * 64 + "\n", "a" * 63 + "\n", "A" * 64, "sha256:" + "b" * 64]
WORDS = [
    "",
    "1",
    "720",
    "true",
    "x",
    "X",
    "a-b",
    "a" * 41,
    "é",
    "mod:Ü",
    "m:C",
    "s3://b/k",
    "v1:",
    "v1:7",
    "1:7",
    "v1:" + "x" * 5_000,  # longer than any text may be
]
CHOICES = ["date", "job", "SUCCEEDED", "REJECTED", "apply"]
HOLDERS = [
    [],
    [1],
    ["x"],
    [None],
    [{}],
    {},
    {"x": 1},
    {"x": "1"},
    {"x": None},
    {"by": "date"},
    {"by": "nothing"},
    {"x" * 201: 1},
    {str(number): 1 for number in range(101)},
    ["x"] * 101,
]
ODD: list[Any] = [None, True, False, *NUMBERS, *INSTANTS, *HASHES, *WORDS, *CHOICES, *HOLDERS]


def places(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything in the document, from the outside in."""
    if isinstance(content, dict | list):
        for key, part in content.items() if isinstance(content, dict) else enumerate(content):
            yield (*path, key)
            yield from places(part, (*path, key))


def parent_of(content: Any, path: tuple[str | int, ...]) -> Any:
    """The object or list that holds what is at the path."""
    for key in path[:-1]:
        content = content[key]
    return content


def replaced(content: dict[str, Any], path: tuple[str | int, ...], odd: Any) -> dict[str, Any]:
    """The document with something odd at the path."""
    changed = copy.deepcopy(content)
    parent_of(changed, path)[path[-1]] = odd
    return changed


def disturbed(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with one thing replaced, left out, named as in Python, or added."""
    for path in places(content):
        yield from (replaced(content, path, odd) for odd in ODD)
        last = path[-1]
        without = copy.deepcopy(content)
        value = parent_of(without, path).pop(last)
        yield without
        if isinstance(last, str):
            yield replaced(without, (*path[:-1], re.sub(r"([A-Z])", r"_\1", last).lower()), value)
            yield replaced(content, (*path[:-1], "unheard"), 1)


def model_accepts(name: str, content: object) -> bool:
    """Whether the model takes the structure, leaving out the rules that a schema cannot say."""
    if name == "result":
        return not isinstance(parse(json.dumps(content).encode(), 10**6), list)
    try:
        read(MODELS[name], as_lists(content) if name == "reconcile" else content)  # type: ignore[arg-type]
    except ValidationError as invalid:
        return {"value_error"} == {error["type"] for error in invalid.errors()}
    return True


@pytest.mark.parametrize("name", MODELS)
def test_the_published_file_is_what_the_model_gives(name: str) -> None:
    # If this fails after a change to a model: python -m trueup.schemas
    assert published(name) == (FOLDER / file_name(name)).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODELS)
def test_a_published_schema_is_valid_names_itself_and_describes_every_field(name: str) -> None:
    document = schema(name)
    Draft202012Validator.check_schema(document)
    objects = [part for part in (document, *document.get("$defs", {}).values()) if "properties" in part]

    assert f"urn:trueup:schema:{name}:v1" == document["$id"]
    assert TITLES[name] == document["title"]
    assert [] == [
        field for part in objects for field in part["properties"].values() if not field["description"]
    ]


@pytest.mark.parametrize("name", REPORT_FILES)
def test_what_is_published_of_the_documents_that_trueup_leaves_is_what_their_models_give(name: str) -> None:
    text = (FOLDER / REPORT_FILES[name]).read_text(encoding="utf-8")
    assert published_report(name) == text, "run python -m trueup.schemas"
    document = json.loads(text)
    Draft202012Validator.check_schema(document)
    assert f"urn:trueup:schema:{name}:v1" == document["$id"]


def test_writing_the_schemas_writes_every_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trueup.schemas.__main__.FOLDER", tmp_path)
    main()

    assert {*map(file_name, MODELS), *REPORT_FILES.values()} == {file.name for file in tmp_path.iterdir()}
    assert published("result") == (tmp_path / file_name("result")).read_text(encoding="utf-8")
    assert sorted(map(str, tmp_path.iterdir())) == sorted(capsys.readouterr().out.split())


def test_there_is_no_other_schema() -> None:
    with pytest.raises(KeyError):
        schema("plan")


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_model_and_schema_accept_a_valid_document(document: Document) -> None:
    assert [] == [error.message for error in validator(document.schema).iter_errors(document.content)]
    assert model_accepts(*document)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_model_and_schema_agree_on_every_document_that_differs_in_one_place(document: Document) -> None:
    by_schema = validator(document.schema)
    changed = list(disturbed(document.content))
    verdicts = [(by_schema.is_valid(one), model_accepts(document.schema, one), one) for one in changed]

    assert [] == [one for by_schema_, by_model, one in verdicts if by_schema_ != by_model]
    assert {True, False} == {by_schema_ for by_schema_, _, _ in verdicts}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(DOCUMENTS), st.data())
def test_model_and_schema_agree_on_documents_that_differ_in_several_places(
    document: Document, data: st.DataObject
) -> None:
    content = document.content
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(content))))
        odd = data.draw(
            st.sampled_from(ODD)
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text()
        )
        content = replaced(content, path, odd)

    assert validator(document.schema).is_valid(content) == model_accepts(document.schema, content)


@pytest.mark.parametrize(
    ("count", "is_one"),
    [(720, True), (720.0, True), ("720", False), (True, False), (None, False), (7.5, False), (-1, False)],
)
def test_a_count_is_a_whole_number_however_it_is_written(count: object, is_one: bool) -> None:
    content = {**Case().document, "recordsRead": count}

    assert is_one == validator("result").is_valid(content)
    assert is_one == model_accepts("result", content)


def test_the_rules_beyond_the_schemas_are_all_listed() -> None:
    found: dict[str, set[str]] = {}
    waiting: list[type[Value]] = list(Value.__subclasses__())
    named = {part for name in MODELS for part in schema(name).get("$defs", {})} | {
        m.__name__ for m in MODELS.values()
    }
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        rules = set(model.__pydantic_decorators__.model_validators) | set(
            model.__pydantic_decorators__.field_validators
        )
        if model.__name__ in named and rules:
            found[model.__name__] = rules

    assert found == {name: set(rules) for name, rules in BEYOND_SCHEMA.items()}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("job", {**JOB, "command": ["run"]}),
        ("job", {**JOB, "batch": {"maximumSeconds": 40}}),
        ("job", {**JOB, "partitions": {"by": "key-range", "type": "text", "size": 3}}),
        ("job", {**JOB, "partitions": {"by": "list", "items": ["a", "a"]}}),
        ("request", {**REQUEST, "keys": ["a"]}),
    ],
)
def test_a_rule_beyond_the_schema_is_broken_without_the_schema_noticing(
    name: str, content: dict[str, Any]
) -> None:
    assert validator(name).is_valid(content)
    with pytest.raises(ValidationError):
        read(MODELS[name], content)
