"""Machines played from `mocks/MockConfigFile.json` at an endpoint, one execution a case.

The endpoints are ours and MiniStack's, started here, or the one that SFN_ENDPOINT names. That one has to have
been started with the same file, since Step Functions Local reads it at its start.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trueup.local.aws import client, ministack
from trueup.local.stepfunctions import stepfunctions

from .definitions import ROOT, state, substituted
from .ministack_faults import Fault

FOREIGN = os.environ.get("SFN_ENDPOINT")
MOCKS = ROOT / "tests" / "workflows" / "mocks" / "MockConfigFile.json"
ROLE = "arn:aws:iam::123456789012:role/trueup"
SECONDS = 100
MINISTACK = ROOT / ".venv-ministack" / "bin" / "python"
FAILURES = ("TaskFailed", "TaskTimedOut", "TaskStartFailed", "TaskSubmitFailed")


@cache
def mocks() -> dict[str, Any]:
    """The mock configuration."""
    read: dict[str, Any] = json.loads(MOCKS.read_text())
    return read


@cache
def definition(machine: str) -> dict[str, Any]:
    """`backfill` and `partitions` are whole definitions.

    `slice` is what `partitions` does with each slice, as a machine of its own: Step Functions Local has no
    Distributed Map.
    """
    if machine != "slice":
        return substituted(ROOT / "statemachines" / f"{machine}.asl.yaml")
    inner: dict[str, Any] = state("partitions", "Work every slice")["ItemProcessor"]
    return {name: value for name, value in inner.items() if name != "ProcessorConfig"}


def hastened(machine: dict[str, Any]) -> dict[str, Any]:
    """The machine with a second for every wait, and nothing else changed.

    For endpoints that wait in real time: ten minutes of retries would be ten minutes of test.
    """
    states = {name: _hastened(one) for name, one in machine["States"].items()}
    return {**machine, "States": states}


def _hastened(one: dict[str, Any]) -> dict[str, Any]:
    if one["Type"] == "Wait":
        return {**{key: value for key, value in one.items() if key != "SecondsPath"}, "Seconds": 1}
    if "Retry" not in one:
        return one
    retry = [{key: entry[key] for key in ("ErrorEquals", "MaxAttempts")} for entry in one["Retry"]]
    return {**one, "Retry": [{**entry, "IntervalSeconds": 1, "BackoffRate": 1.0} for entry in retry]}


@dataclass(frozen=True)
class Endpoint:
    """Where machines are played. `in_real_time`: it waits as long as they say."""

    client: Any
    in_real_time: bool = False


@contextmanager
def own_endpoint(endpoints: Mapping[str, str] | None = None, file: Path = MOCKS) -> Iterator[Endpoint]:
    """An endpoint of ours, where waits take no time and timeouts last as long as they say."""
    with stepfunctions(endpoints, mocks=file, scale=0, timeouts=1) as url:
        yield Endpoint(client("stepfunctions", url))


@contextmanager
def ministack_endpoint(file: Path = MOCKS) -> Iterator[Endpoint]:
    """MiniStack, which nobody here wrote, from an environment that holds nothing else."""
    if not MINISTACK.exists():
        pytest.skip("`make .venv-ministack/.ready` sets up MiniStack in an environment of its own")
    env = {"SFN_MOCK_CONFIG": str(file), "SFN_WAIT_SCALE": "0", "PYTHONPATH": ""}
    with ministack(["stepfunctions"], env, python=str(MINISTACK)) as url:
        yield Endpoint(client("stepfunctions", url))


@contextmanager
def named_endpoint() -> Iterator[Endpoint]:
    """The endpoint that SFN_ENDPOINT names."""
    assert FOREIGN is not None
    yield Endpoint(client("stepfunctions", FOREIGN), in_real_time=True)


ENDPOINTS = {"ours": own_endpoint, "ministack": ministack_endpoint, "named": named_endpoint}
Open = Callable[[str], Endpoint]
"""Gives the endpoint of a name, started when it is first asked for."""


@contextmanager
def opened(**how: Any) -> Iterator[Open]:
    """Endpoints that stay up while the block lasts."""
    with ExitStack() as ups:
        yield cache(lambda name: ups.enter_context(ENDPOINTS[name](**how)))


NAMES = ("named",) if FOREIGN else ("ours", "ministack")


def endpoints(fault: Fault | None = None) -> list[Any]:
    """The names of the endpoints to test at. A fault of MiniStack's makes a test fail there, for certain."""
    marks = [pytest.mark.xfail(reason=f"MiniStack: {fault.says}")] if fault else []
    return [pytest.param(name, marks=marks if name == "ministack" else []) for name in NAMES]


def created(endpoint: Endpoint, name: str) -> str:
    """The ARN of the machine, as the repository defines it now: another test process may have made it."""
    sfn = endpoint.client
    text = json.dumps(hastened(definition(name)) if endpoint.in_real_time else definition(name))
    try:
        made = sfn.create_state_machine(name=name, definition=text, roleArn=ROLE)
    except sfn.exceptions.StateMachineAlreadyExists:
        made = next(one for one in sfn.list_state_machines()["stateMachines"] if one["name"] == name)
        sfn.update_state_machine(stateMachineArn=made["stateMachineArn"], definition=text, roleArn=ROLE)
    return str(made["stateMachineArn"])


@dataclass
class Visit:
    """A state that was entered: with which input, and what its attempts were called with and came to."""

    name: str
    given: Any
    calls: list[Any] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    succeeded: int = 0

    @property
    def attempts(self) -> int:
        """How often its task was tried."""
        return len(self.failures) + self.succeeded


@dataclass
class Ran:
    """What became of an execution."""

    arn: str
    status: str
    error: str | None
    output: Any
    visits: list[Visit]

    @property
    def path(self) -> list[str]:
        """The names of the states in the order in which they were entered."""
        return [visit.name for visit in self.visits]

    @property
    def retried(self) -> list[tuple[str, int]]:
        """The visits that took more than one attempt, and how many."""
        return [(visit.name, visit.attempts) for visit in self.visits if visit.attempts > 1]

    def of(self, name: str) -> list[Visit]:
        """The visits to a state."""
        return [visit for visit in self.visits if visit.name == name]


def run(endpoint: Endpoint, machine: str, case: str, given: Any) -> Ran:
    """Play a case of the mock configuration to its end."""
    arn = f"{created(endpoint, machine)}#{case}"
    started = endpoint.client.start_execution(stateMachineArn=arn, input=json.dumps(given))
    return ended(endpoint, started["executionArn"])


def ended(endpoint: Endpoint, arn: str) -> Ran:
    """What became of an execution once it has ended."""
    sfn, end = endpoint.client, time.monotonic() + SECONDS
    while (told := sfn.describe_execution(executionArn=arn))["status"] == "RUNNING":
        assert time.monotonic() < end, f"{arn} is still running after {SECONDS} seconds"
        time.sleep(1 if endpoint.in_real_time else 0.01)
    pages = sfn.get_paginator("get_execution_history").paginate(executionArn=arn)
    events = [event for page in pages for event in page["events"]]
    # The reason is in the last event: Step Functions Local's DescribeExecution has none.
    error = _details(events[-1]).get("error")
    output = json.loads(told["output"]) if "output" in told else None
    return Ran(arn, told["status"], error, output, visits(events))


def visits(events: list[dict[str, Any]]) -> list[Visit]:
    """The visits in a history whose states follow each other."""
    found: list[Visit] = []
    for event in events:
        kind, details = event["type"], _details(event)
        if kind.endswith("StateEntered"):
            found.append(Visit(details["name"], json.loads(details["input"])))
        elif kind == "TaskScheduled" and "parameters" in details:
            found[-1].calls.append(json.loads(details["parameters"]))
        elif kind in FAILURES:
            found[-1].failures.append((details["error"], details.get("cause", "")))
        elif kind == "TaskSucceeded":
            found[-1].succeeded += 1
    return found


def _details(event: dict[str, Any]) -> dict[str, Any]:
    return next((value for key, value in event.items() if key.endswith("EventDetails")), {})
