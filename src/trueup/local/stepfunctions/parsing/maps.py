"""Map states: inline and distributed."""

from __future__ import annotations

from collections.abc import Callable

from trueup.local.stepfunctions.model import (
    WHOLE,
    Batcher,
    Distributed,
    Map,
    Parallel,
    Reader,
    Task,
    Workflow,
    Writer,
)
from trueup.local.stepfunctions.names import is_name
from trueup.local.stepfunctions.parsing.fields import SCHEMA, UNSUPPORTED, Fields
from trueup.local.stepfunctions.paths import Path
from trueup.local.stepfunctions.templates import Template, parse_template
from trueup.local.stepfunctions.values import MAX_DATA, Json

MAX_ITEMS = 100_000_000
MAX_CONCURRENCY = 10_000
POINTER_END = 2_000
"""An ItemsPointer is shorter (aws-facts section 1.3)."""
_LABEL = 40
_READERS = {
    "arn:aws:states:::s3:getObject": "getObject",
    "arn:aws:states:::s3:listObjectsV2": "listObjectsV2",
}
_WRITER = "arn:aws:states:::s3:putObject"
_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}

ParseWorkflow = Callable[[Fields], Workflow]


def parse_map(fields: Fields, common: dict[str, Json], workflow: ParseWorkflow) -> Map:
    """A Map state. `ItemSelector` was once called Parameters, `ItemProcessor` Iterator: both still work."""
    fields.exclusive("ItemSelector", "Parameters")
    fields.exclusive("ItemProcessor", "Iterator")
    selector = fields.template("ItemSelector")
    if selector is not None:
        common = {**common, "parameters": selector}
    name = "Iterator" if fields.has("Iterator") else "ItemProcessor"
    processor = fields.inner(name)
    distributed, express = _mode(processor)
    inner = workflow(processor) if fields.has(name) else Workflow(start_at="", states={})
    if express:
        check_express(fields, inner)
    return Map(
        **common,
        processor=inner,
        items_path=_items_path(fields),
        max_concurrency=_setting(fields, "MaxConcurrency", MAX_CONCURRENCY) or 0,
        distributed=_distributed(fields, express=express) if distributed else None,
    )


def _items_path(fields: Fields) -> Path:
    path = fields.path("ItemsPath") or WHOLE
    if path.query.keys() is None:
        # [dg:input-output-itemspath]
        fields.problem(SCHEMA, "Value is not a Reference Path: it has to name one node", "ItemsPath")
    return path


def _mode(processor: Fields) -> tuple[bool, bool]:
    """Whether the mode is distributed, and whether its children are Express executions."""
    if not processor.has("ProcessorConfig"):
        return False, False
    config = processor.inner("ProcessorConfig")
    distributed = config.one_of("Mode", ("INLINE", "DISTRIBUTED"), "INLINE") == "DISTRIBUTED"
    if distributed:
        config.text("ExecutionType", required=True)
    express = config.one_of("ExecutionType", ("STANDARD", "EXPRESS"), "STANDARD") == "EXPRESS"
    config.finish()
    return distributed, distributed and express


def check_express(fields: Fields, workflow: Workflow) -> None:
    """Express executions neither wait for jobs or callbacks nor fan out (aws-facts section 1.3)."""
    for state in workflow.states.values():
        if isinstance(state, Task) and (state.resource.pattern or state.resource.is_activity):
            fields.problem(
                SCHEMA, f"State '{state.name}': Express executions cannot use {state.resource.arn}"
            )
        elif isinstance(state, Map):
            if state.distributed is not None:
                fields.problem(
                    SCHEMA, f"State '{state.name}': Express executions have no Map of mode DISTRIBUTED"
                )
            check_express(fields, state.processor)
        elif isinstance(state, Parallel):
            for branch in state.branches:
                check_express(fields, branch)


def _setting(fields: Fields, field: str, most: int) -> int | Path | None:
    fields.exclusive(field, f"{field}Path")
    path = fields.path(f"{field}Path")
    return path if path is not None else fields.integer(field, 0, most)


def _distributed(fields: Fields, *, express: bool) -> Distributed:
    label = fields.text("Label")
    if label is not None and not is_name(label, _LABEL):
        fields.problem(SCHEMA, f"A label has 1 to {_LABEL} characters, of those that names may have", "Label")
    fields.exclusive("ToleratedFailurePercentage", "ToleratedFailurePercentagePath")
    percentage = fields.path("ToleratedFailurePercentagePath")
    return Distributed(
        label=label,
        express=express,
        reader=_reader(fields.inner("ItemReader", f"{fields.owner}, ItemReader"))
        if fields.has("ItemReader")
        else None,
        batcher=_batcher(fields.inner("ItemBatcher")) if fields.has("ItemBatcher") else None,
        writer=_writer(fields.inner("ResultWriter")) if fields.has("ResultWriter") else None,
        tolerated_percentage=(
            percentage if percentage is not None else fields.number("ToleratedFailurePercentage", 0, 100)
        ),
        tolerated_count=_setting(fields, "ToleratedFailureCount", MAX_ITEMS),
    )


def _reader(fields: Fields) -> Reader:
    resource = fields.text("Resource", required=True)
    if resource is not None and resource not in _READERS:
        fields.problem(
            UNSUPPORTED,
            f"{fields.owner}: Resource '{resource}' is not implemented; supported are {', '.join(_READERS)}",
            "Resource",
        )
    action = _READERS.get(resource or "", "getObject")
    parameters = fields.template("Parameters") or parse_template({})
    config = fields.inner("ReaderConfig") if fields.has("ReaderConfig") else _nothing(fields)
    reader = _configured(config, action, parameters)
    config.finish()
    fields.finish()
    return reader


def _configured(config: Fields, action: str, parameters: Template) -> Reader:
    kinds = ("JSON", "JSONL", "CSV")
    input_type = config.one_of("InputType", kinds, "JSON")
    return Reader(
        action=action,
        parameters=parameters,
        input_type=input_type,
        pointer=_pointer(config, input_type),
        flatten=_flattens(config, action),
        max_items=_setting(config, "MaxItems", MAX_ITEMS),
        csv_headers=_headers(config),
        csv_delimiter=_DELIMITERS[config.one_of("CSVDelimiter", tuple(_DELIMITERS), "COMMA")],
    )


def _pointer(config: Fields, input_type: str) -> str | None:
    """A JSON pointer (RFC 6901) into files of JSON."""
    pointer = config.text("ItemsPointer")
    if pointer is not None and input_type != "JSON":
        config.problem(SCHEMA, f"ItemsPointer selects in JSON, not in {input_type}", "ItemsPointer")
    elif pointer and not (pointer.startswith("/") and len(pointer) < POINTER_END):
        words = f"has to be a JSON pointer such as /items, of fewer than {POINTER_END:,} characters"
        config.problem(SCHEMA, f"ItemsPointer {words}", "ItemsPointer")
    return pointer


def _flattens(config: Fields, action: str) -> bool:
    flattens = config.one_of("Transformation", ("NONE", "LOAD_AND_FLATTEN"), "NONE") == "LOAD_AND_FLATTEN"
    if flattens and action != "listObjectsV2":
        config.problem(
            SCHEMA, "LOAD_AND_FLATTEN reads the objects that listObjectsV2 lists", "Transformation"
        )
    return flattens


def _headers(config: Fields) -> tuple[str, ...] | None:
    where = config.one_of("CSVHeaderLocation", ("FIRST_ROW", "GIVEN"), "FIRST_ROW")
    headers = config.list("CSVHeaders", required=where == "GIVEN")
    return tuple(str(header) for header in headers) if where == "GIVEN" else None


def _batcher(fields: Fields) -> Batcher:
    batcher = Batcher(
        max_items=_setting(fields, "MaxItemsPerBatch", MAX_ITEMS),
        max_bytes=_setting(fields, "MaxInputBytesPerBatch", MAX_DATA),
        batch_input=fields.template("BatchInput"),
    )
    if batcher.max_items is None and batcher.max_bytes is None:
        fields.problem(SCHEMA, "An ItemBatcher needs MaxItemsPerBatch or MaxInputBytesPerBatch")
    fields.finish()
    return batcher


def _writer(fields: Fields) -> Writer:
    resource = fields.text("Resource")
    if resource is not None and resource != _WRITER:
        fields.problem(
            UNSUPPORTED,
            f"{fields.owner}: ResultWriter '{resource}' is not implemented; supported is {_WRITER}",
            "Resource",
        )
    parameters = fields.template("Parameters")
    config = fields.inner("WriterConfig") if fields.has("WriterConfig") else _nothing(fields)
    writer = Writer(
        parameters=parameters,
        lines=config.one_of("OutputType", ("JSON", "JSONL"), "JSON") == "JSONL",
        transformation=config.one_of("Transformation", ("NONE", "COMPACT", "FLATTEN"), "NONE"),
    )
    config.finish()
    fields.finish()
    return writer


def _nothing(fields: Fields) -> Fields:
    return Fields({}, fields.location, fields.problems, fields.owner)
