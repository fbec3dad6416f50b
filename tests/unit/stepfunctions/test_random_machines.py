"""Random small machines neither hang nor lose an event nor end twice: every history is well formed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.running.execution import Execution
from trueup.local.stepfunctions.values import Document

from .harness import Services, World, machine, passing, play

ENDS = {"ExecutionSucceeded", "ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"}
RETRY = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "JitterStrategy": "FULL"}]
CATCH = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.caught", "Next": "Last"}]
INPUT = {"list": [{"list": []}, {"list": [{"list": []}]}], "n": 1}


def waits() -> st.SearchStrategy[dict[str, Any]]:
    return st.integers(0, 9).map(lambda seconds: {"Type": "Wait", "Seconds": seconds})


def tasks() -> st.SearchStrategy[dict[str, Any]]:
    """Calls that answer, refuse, take their time, or wait for a callback that comes or does not."""
    kinds = st.sampled_from(["good", "bad", "slow", "called", "never"])

    def make(kind: str, timeout: int) -> dict[str, Any]:
        parameters: dict[str, Any] = {"QueueUrl": kind, "MessageBody": {"token.$": "$$.Task.Token"}}
        pattern = ".waitForTaskToken" if kind in ("called", "never") else ""
        if not pattern:
            parameters["MessageBody"] = "x"
        resource = f"arn:aws:states:::sqs:sendMessage{pattern}"
        return {"Type": "Task", "Resource": resource, "Parameters": parameters, "ResultPath": None,
                "TimeoutSeconds": timeout}  # fmt: skip

    return st.builds(make, kinds, st.integers(1, 5))


def nests(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Parallels and Maps of both modes."""
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    mapped = {"Type": "Map", "ItemsPath": "$.list", "ResultPath": None}
    parallel = st.lists(inner, min_size=1, max_size=3).map(
        lambda branches: {"Type": "Parallel", "Branches": branches, "ResultPath": None}
    )
    inline = st.builds(
        lambda one, most: {**mapped, "MaxConcurrency": most, "ItemProcessor": one}, inner, st.integers(0, 2)
    )
    distributed = inner.map(lambda one: {**mapped, "Label": "L", "ItemProcessor": {**config, **one}})
    return st.one_of(parallel, inline, distributed)


def workflows(depth: int) -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.one_of(st.just(passing()), waits(), tasks(), st.just({"Type": "Fail", "Error": "E"}))
    states = leaves if depth == 0 else st.one_of(leaves, nests(workflows(depth - 1)))
    return st.builds(row, st.lists(states, min_size=1, max_size=3), st.booleans(), st.booleans())


def row(states: list[dict[str, Any]], retried: bool, caught: bool) -> dict[str, Any]:
    """States one after the other, then a last one that catchers can go to."""
    named: list[tuple[str, dict[str, Any]]] = []
    for index, state in enumerate(states):
        extra: dict[str, Any] = {}
        if state["Type"] in ("Task", "Parallel", "Map"):
            extra = ({"Retry": RETRY} if retried else {}) | ({"Catch": CATCH} if caught else {})
        named.append((f"S{index}", {**state, **extra}))
        if state["Type"] == "Fail":
            break
    reached = named[-1][1]["Type"] != "Fail" or any("Catch" in state for _, state in named)
    return machine(*named, *([("Last", passing())] if reached else []))


def named_apart(workflow: dict[str, Any], place: str = "") -> dict[str, Any]:
    """With its place before each state's name: a machine has no name twice."""
    states = {f"{place}{name}": _placed(state, place, name) for name, state in workflow["States"].items()}
    return {**workflow, "StartAt": f"{place}{workflow['StartAt']}", "States": states}


def _placed(state: dict[str, Any], place: str, name: str) -> dict[str, Any]:
    placed, inside = dict(state), f"{place}{name}."
    if "Next" in state:
        placed["Next"] = f"{place}{state['Next']}"
    if "Catch" in state:
        placed["Catch"] = [{**entry, "Next": f"{place}{entry['Next']}"} for entry in state["Catch"]]
    if "ItemProcessor" in state:
        placed["ItemProcessor"] = named_apart(state["ItemProcessor"], inside)
    if "Branches" in state:
        branches = enumerate(state["Branches"])
        placed["Branches"] = [named_apart(branch, f"{inside}{index}.") for index, branch in branches]
    return placed


def services(world: list[World]) -> Services:
    async def send(parameters: Any) -> Any:
        kind = parameters["QueueUrl"]
        if kind == "bad":
            raise ServiceFailure("Refused", "no")
        if kind == "slow":
            await asyncio.sleep(3)
        if kind == "called":
            token = parameters["MessageBody"]["token"]
            asyncio.get_running_loop().call_later(2, call_back, token)
        return {}

    def call_back(token: str) -> None:
        with contextlib.suppress(ApiError):  # it came too late, as callbacks do
            world[0].engine.tokens.succeed(token, Document(None))

    return Services(sqs_sendMessage=send)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(workflows(2), st.one_of(st.none(), st.integers(0, 12)), st.booleans())
def test_a_random_machine_ends_once_with_a_well_formed_history(
    definition: dict[str, Any], stop_after: int | None, redrive: bool
) -> None:
    worlds: list[World] = []

    async def scene(world: World) -> None:
        worlds.append(world)
        arn = world.create({**named_apart(definition), "TimeoutSeconds": 500})
        execution = world.start(arn, INPUT)
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, execution.stop)
        await execution.ended()
        if (
            redrive
            and world.api("DescribeExecution", executionArn=execution.arn)["redriveStatus"] == "REDRIVABLE"
        ):
            await again(world, execution)
        await asyncio.sleep(10)
        for each in world.engine.executions.values():
            check(each)
        assert not world.engine.tokens._open

    play(scene, services(worlds))


async def again(world: World, execution: Execution) -> None:
    """Redrive where that is possible."""
    try:
        world.api("RedriveExecution", executionArn=execution.arn)
    except ApiError:
        return
    await execution.ended()


def check(execution: Execution) -> None:
    """One start, one end for each life, numbers without gaps, pointers backwards, JSON throughout."""
    events = [event.as_answer() for event in execution.history.events]
    assert execution.status != "RUNNING"
    assert "ExecutionStarted" == events[0]["type"]
    assert events[-1]["type"] in ENDS
    assert execution.redrive_count + 1 == sum(event["type"] in ENDS for event in events)
    assert list(range(1, len(events) + 1)) == [event["id"] for event in events]
    assert all(event["previousEventId"] < event["id"] for event in events)
    assert "Internal error" not in str(execution.cause)
    json.dumps(events)
