"""What a Distributed Map leaves behind: outputs in the state, or files in S3 with a manifest
([dg:input-output-resultwriter]).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from trueup.local.stepfunctions.errors import TIMEOUT, StateError
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.model import Writer
from trueup.local.stepfunctions.running.batches import ChildInput
from trueup.local.stepfunctions.running.execution import FAILED, REDRIVABLE, SUCCEEDED, TIMED_OUT, Execution
from trueup.local.stepfunctions.running.map_run import MapRun
from trueup.local.stepfunctions.running.visit import Visit
from trueup.local.stepfunctions.timestamps import iso_millis
from trueup.local.stepfunctions.values import Json, to_text

MAX_FILE = 5 * 2**30
"""Bytes of one result file; above it the next number begins."""


def collect(run: MapRun, writer: Writer | None) -> Json:
    """All outputs in the order of the items; of a tolerated failure, its error and cause."""
    outputs = [_output(child) for child in run.children if child is not None]
    if writer is not None and writer.transformation == "FLATTEN":
        return _flatten(outputs)
    return outputs


def _output(child: Execution) -> Json:
    if child.output is not None:
        return child.output.value
    return {"Error": TIMEOUT if child.status == TIMED_OUT else child.error, "Cause": child.cause}


def _flatten(outputs: list[Json]) -> list[Json]:
    flat: list[Json] = []
    for output in outputs:
        flat += output if isinstance(output, list) else [output]
    return flat


async def write_results(visit: Visit, run: MapRun, writer: Writer, given: Json) -> Json:
    """Write the files and the manifest, and give what the state's result is. Raises StateError."""
    parameters = visit.render(writer.parameters, given)
    bucket, prefix = parameters.get("Bucket"), parameters.get("Prefix", "")
    folder = "/".join(part for part in (str(prefix).strip("/"), run.id) if part)
    files = _Files(visit, bucket, folder, writer)
    try:
        listed = {
            name: await files.write(name, _entries(run, name, writer))
            for name in ("FAILED", "PENDING", "SUCCEEDED")
        }
        manifest = {"DestinationBucket": bucket, "MapRunArn": run.arn, "ResultFiles": listed}
        await files.put(f"{folder}/manifest.json", to_text(manifest))
    except ServiceFailure as failure:
        raise StateError("States.ResultWriterFailed", failure.message) from failure
    run.results_written = sum(child is not None for child in run.children)
    details = {"Bucket": bucket, "Key": f"{folder}/manifest.json"}
    return {"MapRunArn": run.arn, "ResultWriterDetails": details}


def _entries(run: MapRun, name: str, writer: Writer) -> list[Json]:
    pairs = zip(run.inputs, run.children, strict=True)
    if name == "PENDING":
        return [_pending(run, given) for given, child in pairs if child is None]
    chosen = [child for _, child in pairs if child and (child.status == SUCCEEDED) is (name == "SUCCEEDED")]
    if name == "SUCCEEDED" and writer.transformation != "NONE":
        outputs = [_output(child) for child in chosen]
        return outputs if writer.transformation == "COMPACT" else _flatten(outputs)
    return [_entry(child) for child in chosen]


def _pending(run: MapRun, given: ChildInput) -> Json:
    return {"Input": given.document.text, "MapRunArn": run.arn, "Status": "PENDING"}


def _entry(child: Execution) -> Json:
    entry: dict[str, Json] = {
        "ExecutionArn": child.arn,
        "Input": child.input.text,
        "InputDetails": {"Included": True},
        "Name": child.name,
    }
    if child.output is not None:
        entry |= {"Output": child.output.text, "OutputDetails": {"Included": True}}
    if child.status == FAILED:
        entry |= {"Error": child.error, "Cause": child.cause}
    redrivable = child.status in REDRIVABLE
    entry |= {
        "RedriveCount": child.redrive_count,
        "RedriveStatus": "REDRIVABLE_BY_MAP_RUN" if redrivable else "NOT_REDRIVABLE",
        "StartDate": iso_millis(child.started_at),
        "StateMachineArn": child.origin.machine_arn,
        "Status": child.status,
        "StopDate": iso_millis(child.stopped_at or child.started_at),
    }
    if not redrivable:
        entry["RedriveStatusReason"] = f"Execution is {child.status} and cannot be redriven"
    return dict(sorted(entry.items()))


class _Files:
    """Result files of one Map Run."""

    def __init__(self, visit: Visit, bucket: Json, folder: str, writer: Writer) -> None:
        self._calls = visit.strand.execution.services.calls
        self._bucket = bucket
        self._folder = folder
        self._lines = writer.lines

    async def write(self, name: str, entries: list[Json]) -> list[Mapping[str, Json]]:
        """Write entries to as many files as they need; the manifest's list of them."""
        written: list[Mapping[str, Json]] = []
        numbers = count()
        for texts in _split([to_text(entry) for entry in entries]):
            body = "\n".join(texts) if self._lines else "[" + ",".join(texts) + "]"
            key = f"{self._folder}/{name}_{next(numbers)}.{'jsonl' if self._lines else 'json'}"
            await self.put(key, body)
            written.append({"Key": key, "Size": len(body.encode())})
        return written

    async def put(self, key: str, body: str) -> None:
        """Write one object."""
        await self._calls.call("s3", "putObject", {"Bucket": self._bucket, "Key": key, "Body": body})


def _split(texts: list[str]) -> list[list[str]]:
    files: list[list[str]] = []
    size = MAX_FILE
    for text in texts:
        if size + len(text) > MAX_FILE:
            files.append([])
            size = 0
        files[-1].append(text)
        size += len(text) + 1
    return files
