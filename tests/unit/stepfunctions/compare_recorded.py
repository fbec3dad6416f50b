"""Compare the engine with executions recorded on AWS, where they lie beside the checkout.

    python tests/unit/stepfunctions/compare_recorded.py [-v] [part of a name]

Prints how many agree field by field; with -v, each difference. Placeholders in the recordings match anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recorded_services import Recorded
from virtual_time import run

from trueup.local.stepfunctions.api.operations import perform
from trueup.local.stepfunctions.api.own_calls import OwnCalls
from trueup.local.stepfunctions.clock import Clock
from trueup.local.stepfunctions.engine import Engine, Settings
from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.running.execution import Execution

ROOT = Path(__file__).parents[3]
RECORDED = Path(os.environ.get("TRUEUP_RECORDED", ROOT.parent / "shared" / "recorded" / "executions.jsonl"))

_WORDS = [
    "timestamp",
    "date",
    "datetime",
    "start-date",
    "stop-date",
    "entered-time",
    "start-time",
    "snf_role_arn",
    "generated-uuid",
    "x-amzn-RequestId",
    "x-amzn-requestid",
    "x-amz-crc32",
    "RequestId",
    "X-Amzn-Trace-Id",
    "table-name",
    "bucket-name",
    "file-key",
    "lambda_function_name",
    "111111111111",
    "test_event_bridge_events-{short_uid()}",
]
_FREE = re.compile(
    r"<<[^<>]*>[^<>]*>|<[^<>]*>|(?<![\w-])(?:" + "|".join(map(re.escape, _WORDS)) + r")(?![\w-])"
)
_IGNORED = ("ResponseMetadata", "roleArn")


def differences(wanted: Any, got: Any, where: str, *, text: bool = False) -> Iterator[str]:
    """Every place where ours is not what was recorded. What was a `text` keeps the order of its names."""
    if isinstance(got, str) and not isinstance(wanted, str):
        got, text = _parsed(got), True
    if isinstance(wanted, dict) and isinstance(got, dict):
        if text and list(wanted) != list(got) and {*wanted} == {*got}:
            yield f"{where}: recorded in the order {list(wanted)}, ours {list(got)}"
        ignored = {*_IGNORED, *(_lengths(wanted))}
        for key in sorted({*wanted, *got} - ignored):
            if key not in got or key not in wanted:
                yield f"{where}.{key}: {'missing' if key not in got else f'extra: {got[key]}'}"
            else:
                yield from differences(wanted[key], got[key], f"{where}.{key}", text=text)
    elif isinstance(wanted, list) and isinstance(got, list):
        yield from _lists(wanted, got, where, text=text)
    elif not _same(wanted, got):
        yield f"{where}: recorded {str(wanted)[:300]!r}, ours {str(got)[:300]!r}"


def _lengths(wanted: dict[str, Any]) -> list[str]:
    """The length of an answer with names of ours in it is ours."""
    named = "X-Amz-Executed-Version" in wanted or wanted.get("Content-Length") in (
        "161",
        "164",
        ["161"],
        ["164"],
    )
    return ["Content-Length"] if named else []


def _lists(wanted: list[Any], got: list[Any], where: str, *, text: bool) -> Iterator[str]:
    if len(wanted) != len(got):
        yield f"{where}: recorded {len(wanted)}, ours {len(got)}"
    for index, (left, right) in enumerate(zip(wanted, got, strict=False)):
        yield from differences(left, right, f"{where}[{index}]", text=text)


def _same(wanted: Any, got: Any) -> bool:
    if not isinstance(wanted, str):
        return bool(wanted == got and isinstance(wanted, bool) == isinstance(got, bool))
    # An id is one word; whatever else was replaced may be anything.
    text = "([^()]+)".join(_pattern(part) for part in wanted.split("<request_id>"))
    return re.fullmatch(text, str(got), re.DOTALL) is not None


def _pattern(wanted: str) -> str:
    return ".*".join(re.escape(part) for part in _FREE.split(wanted))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def replay(recording: dict[str, Any]) -> dict[str, Any]:
    """Make the recorded calls, and give what ours answers, in the recording's shape."""
    events: list[dict[str, Any]] = []
    own = OwnCalls(Recorded(recording["recorded"]))
    engine = own.engine = Engine(own, _settings(events))
    try:
        executions = await _run(engine, recording)
    except ApiError as error:
        said = (
            f"An error occurred ({error.name}) when calling the CreateStateMachine operation: {error.message}"
        )
        return {"exception": {"exception_typename": error.name, "exception_value": said}}
    answers = _answers(engine, executions, recording["recorded"])
    return {**answers, "stepfunctions_events": events}


def _settings(events: list[dict[str, Any]]) -> Settings:
    return Settings(account="123456789012", clock=Clock(epoch=time.time()), sink=events.append)


async def _run(engine: Engine, recording: dict[str, Any]) -> list[Execution]:
    executions, machines = [], []
    starts = [call for call in recording["calls"] if call["call"] == "StartExecution"]
    several = "cases" in recording["recorded"] or len(recording["recorded"]) > 1
    last = len(recording["calls"]) - 1
    for index, call in enumerate(recording["calls"]):
        if call["call"] == "CreateStateMachine":
            machines.append(_create(engine, recording, call["definition"]))
        elif call["call"] == "StartExecution":
            executions.append(engine.start_execution(machines[-1], None, call.get("input")))
            if index == last or several:
                await executions[-1].ended()
    for part in list(recording["recorded"].values())[len(starts) :]:
        if isinstance(part, dict) and "events" in part:
            given = part["events"][0]["executionStartedEventDetails"]["input"]
            text = given if isinstance(given, str) else json.dumps(given)
            executions.append(engine.start_execution(machines[-1], None, text))
            await executions[-1].ended()
    return executions


def _create(engine: Engine, recording: dict[str, Any], definition: Any) -> str:
    """Under the name by which other machines and inputs of the recording know it."""
    named = re.findall(r"stateMachine:([\w-]+)", json.dumps(recording["calls"]))
    taken = {machine.name for machine in engine.machines.all()}
    free = [name for name in named if name not in taken and "NoSuchArn" not in name]
    name = free[0] if free else f"m{len(taken)}"
    return engine.machines.create(name, json.dumps(definition), "snf_role_arn").arn


def _answers(engine: Engine, executions: list[Execution], recorded: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    if "cases" in recorded:
        outputs = [execution.output for execution in executions]
        inputs = [case["input"] for case in recorded["cases"]]
        answers["cases"] = [
            {"input": given, "output": output.text if output else None}
            for given, output in zip(inputs, outputs, strict=True)
        ]
    for index, name in enumerate(name for name in recorded if "hist" in name):
        execution = executions[index if name[-1].isdigit() else -1]
        answers[name] = perform(
            engine, "GetExecutionHistory", {"executionArn": execution.arn, "maxResults": 1000}
        )
    answers["describe_execution"] = perform(engine, "DescribeExecution", {"executionArn": executions[-1].arn})
    return answers


def compare(recording: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """All differences of one recording."""
    found: list[str] = []
    for name, wanted in recording["recorded"].items():
        if name in ("get-s3-object", "messages"):
            continue  # what other services hold afterwards: theirs, not ours
        got = ours.get(name)
        if isinstance(wanted, dict) and any(event["id"] == [0] for event in wanted.get("events", [])):
            found += differences(_unordered(wanted), _unordered(got), name)
        else:
            found += differences(wanted, got, name)
    return found


def _unordered(history: Any) -> Any:
    """A history in which branches ran side by side: the recording keeps neither order nor numbers."""
    kept = [event for event in history["events"] if event["type"] != "ParallelStateSucceeded"]
    details = sorted(str(event["type"]) for event in kept)
    return {"events": details, "last": kept[-2:]}


async def _ours(recording: dict[str, Any]) -> dict[str, Any]:
    # A wait that the recording did not see the end of must not keep the comparison waiting.
    return await asyncio.wait_for(replay(recording), 10**7)


def main(arguments: list[str]) -> int:
    """Compare all, print what differs and how many agree."""
    verbose = "-v" in arguments
    wanted = [argument for argument in arguments if argument != "-v"]
    if not RECORDED.exists():
        print(f"No recordings at {RECORDED}: nothing compared.")  # noqa: T201
        return 0
    recordings = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    chosen = [each for each in recordings if all(part in each["name"] for part in wanted)]
    agree = 0
    for recording in chosen:
        try:
            found = compare(recording, run(_ours(recording)))
        except Exception as error:
            found = [repr(error)]
        agree += not found
        if found:
            print(f"differs: {recording['name']}: {len(found)}")  # noqa: T201
            for line in found[: 20 if verbose else 0]:
                print(f"    {line}")  # noqa: T201
    print(f"{agree} of {len(chosen)} agree.")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
