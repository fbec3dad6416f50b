"""Random small machines neither hang nor lose an event nor end twice: every history is well formed.

TRUEUP_MACHINES says how many (`TRUEUP_MACHINES=10000`); a few dozen when it does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.running.execution import Execution
from trueup.local.stepfunctions.values import Document

from .harness import Services, World, machine, passing, play

MACHINES = int(os.environ.get("TRUEUP_MACHINES", "60"))

ACTIVITY = "arn:aws:states:us-east-1:000000000000:activity:idle"
ENDS = {"ExecutionSucceeded", "ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"}
RETRY = [
    {"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1, "IntervalSeconds": 2, "MaxDelaySeconds": 3},
    {"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "JitterStrategy": "FULL"},
]
CATCH = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.caught", "Next": "Last"}]
INPUT = {"list": [{"list": []}, {"list": [{"list": []}]}], "n": 1}


def waits() -> st.SearchStrategy[dict[str, Any]]:
    return st.integers(0, 9).map(lambda seconds: {"Type": "Wait", "Seconds": seconds})


def choices() -> st.SearchStrategy[dict[str, Any]]:
    """One that leaves a state out, or fails for want of a rule that holds."""
    rule = {"Variable": "$.n", "NumericEquals": 1, "Next": "Last"}
    wrong = {**rule, "Variable": "$.list"}
    return st.sampled_from([[rule], [wrong]]).map(lambda rules: {"Type": "Choice", "Choices": rules})


def tasks() -> st.SearchStrategy[dict[str, Any]]:
    """Calls that answer, refuse, take their time, or wait for a callback that comes in one way or another."""
    kinds = st.sampled_from(["good", "bad", "slow", *CALLBACKS])

    def make(kind: str, timeout: int, heartbeat: bool) -> dict[str, Any]:
        parameters: dict[str, Any] = {"QueueUrl": kind, "MessageBody": "x"}
        pattern = ""
        if kind in CALLBACKS:
            parameters["MessageBody"], pattern = {"token.$": "$$.Task.Token"}, ".waitForTaskToken"
        limits = {"TimeoutSeconds": timeout} | ({"HeartbeatSeconds": 1} if heartbeat and timeout > 1 else {})
        resource = f"arn:aws:states:::sqs:sendMessage{pattern}"
        return {"Type": "Task", "Resource": resource, "Parameters": parameters, "ResultPath": None, **limits}

    return st.builds(make, kinds, st.integers(1, 5), st.booleans())


def nests(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Parallels and Maps of both modes."""
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    batches = st.sampled_from([{}, {"ItemBatcher": {"MaxItemsPerBatch": 2}}])
    mapped = {"Type": "Map", "ItemsPath": "$.list", "ResultPath": None}
    parallel = st.lists(inner, min_size=1, max_size=3).map(
        lambda branches: {"Type": "Parallel", "Branches": branches, "ResultPath": None}
    )
    inline = st.builds(
        lambda one, most: {**mapped, "MaxConcurrency": most, "ItemProcessor": one}, inner, st.integers(0, 2)
    )
    distributed = st.builds(
        lambda one, most, tolerated, batch: {
            **mapped,
            **batch,
            "Label": "L",
            "MaxConcurrency": most,
            "ToleratedFailurePercentage": tolerated,
            "ItemProcessor": {**config, **one},
        },
        inner,
        st.integers(0, 2),
        st.sampled_from([0, 50, 100]),
        batches,
    )
    return st.one_of(parallel, inline, distributed)


def passes() -> st.SearchStrategy[dict[str, Any]]:
    """Some set a variable, read one that may be nobody's, or look past the end of an array."""
    reading = passing(Parameters={"x.$": "$kept", "list.$": "$.list", "n.$": "$.n"})
    past = passing(Parameters={"x.$": "$.list[9]", "y.$": "States.ArrayLength($.list)"}, ResultPath="$.seen")
    return st.sampled_from([passing(), passing(Assign={"kept.$": "$.n"}), reading, past])


def activities() -> st.SearchStrategy[dict[str, Any]]:
    """Work that nobody asks for until it is too late."""
    return st.integers(1, 5).map(
        lambda timeout: {"Type": "Task", "Resource": ACTIVITY, "TimeoutSeconds": timeout, "ResultPath": None}
    )


def workflows(depth: int) -> st.SearchStrategy[dict[str, Any]]:
    fails = st.just({"Type": "Fail", "Error": "E"})
    leaves = st.one_of(passes(), waits(), tasks(), activities(), choices(), fails)
    states = leaves if depth == 0 else st.one_of(leaves, nests(workflows(depth - 1)))
    return st.builds(row, st.lists(states, min_size=1, max_size=3), st.booleans(), st.booleans())


def row(states: list[dict[str, Any]], retried: bool, caught: bool) -> dict[str, Any]:
    """States one after the other, then a last one that catchers and choices can go to."""
    named: list[tuple[str, dict[str, Any]]] = []
    for index, state in enumerate(states):
        extra: dict[str, Any] = {}
        if state["Type"] in ("Task", "Parallel", "Map"):
            extra = ({"Retry": RETRY} if retried else {}) | ({"Catch": CATCH} if caught else {})
        named.append((f"S{index}", {**state, **extra}))
        if state["Type"] in ("Fail", "Choice"):
            break
    reached = named[-1][1]["Type"] != "Fail" or any("Catch" in state for _, state in named)
    return machine(*named, *([("Last", passing())] if reached else []))


CALLBACKS: dict[str, list[tuple[float, str]]] = {
    "called": [(3, "succeed")],
    "failed": [(2, "fail")],
    "twice": [(1, "succeed"), (2, "succeed")],
    "beating": [(0.9, "beat"), (1.8, "beat"), (2.7, "beat"), (3, "succeed")],
    "never": [],
}
"""What is sent for a token, and after how many seconds."""


def named_apart(workflow: dict[str, Any], place: str = "") -> dict[str, Any]:
    """With its place before each state's name: a machine has no name twice."""
    states = {f"{place}{name}": _placed(state, place, name) for name, state in workflow["States"].items()}
    return {**workflow, "StartAt": f"{place}{workflow['StartAt']}", "States": states}


def _placed(state: dict[str, Any], place: str, name: str) -> dict[str, Any]:
    placed, inside = dict(state), f"{place}{name}."
    if "Next" in state:
        placed["Next"] = f"{place}{state['Next']}"
    for field in {"Catch", "Choices"} & set(state):
        placed[field] = [{**entry, "Next": f"{place}{entry['Next']}"} for entry in state[field]]
    # Nor does an inner scope set a variable of an outer one ([dg:workflow-variables]).
    variable = f"kept{place.count('.')}"
    if "Assign" in state:
        placed["Assign"] = {f"{variable}.$": "$.n"}
    elif "x.$" in state.get("Parameters", {}) and state["Parameters"]["x.$"] == "$kept":
        placed["Parameters"] = {**state["Parameters"], "x.$": f"${variable}"}
    if "Label" in state:
        placed["Label"] = inside.replace(".", "-")
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
        for seconds, what in CALLBACKS.get(kind, []):
            asyncio.get_running_loop().call_later(seconds, tell, what, parameters["MessageBody"]["token"])
        return {}

    def tell(what: str, token: str) -> None:
        rest = {"succeed": [Document(None)], "fail": ["Mine", None], "beat": []}[what]
        with contextlib.suppress(ApiError):  # it came too late, as callbacks do
            getattr(world[0].engine.tokens, what)(token, *rest)

    return Services(sqs_sendMessage=send)


@pytest.mark.timeout(120 + MACHINES / 5)
@settings(max_examples=MACHINES, deadline=None, suppress_health_check=list(HealthCheck))
@given(workflows(2), st.one_of(st.none(), st.integers(0, 12)), st.integers(0, 2), st.sampled_from([8, 500]))
def test_a_random_machine_ends_once_with_a_well_formed_history(
    definition: dict[str, Any], stop_after: int | None, redrives: int, limit: int
) -> None:
    worlds: list[World] = []

    async def scene(world: World) -> None:
        worlds.append(world)
        world.api("CreateActivity", name="idle")
        arn = world.create({**named_apart(definition), "TimeoutSeconds": limit})
        execution = world.start(arn, INPUT)
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, execution.stop)
            asyncio.get_running_loop().call_later(stop_after / 2, stop_a_child, world)
        await execution.ended()
        for _ in range(redrives):
            await again(world, execution)
        await asyncio.sleep(10)
        for each in world.engine.executions.values():
            check(each)
            check_pages(world, each)
        assert not world.engine.tokens._open

    play(scene, services(worlds))


def stop_a_child(world: World) -> None:
    """Stop the newest child of a Map Run, from outside, where there is one."""
    children = [each for each in world.engine.executions.values() if each.origin.map_run]
    if children:
        children[-1].stop("Outside")


async def again(world: World, execution: Execution) -> None:
    """Redrive it, if it has not succeeded."""
    told = world.api("DescribeExecution", executionArn=execution.arn)["redriveStatus"]
    assert ("NOT_REDRIVABLE" if execution.status == "SUCCEEDED" else "REDRIVABLE") == told
    if told == "REDRIVABLE":
        world.api("RedriveExecution", executionArn=execution.arn)
        await execution.ended()


def check(execution: Execution) -> None:
    """One start, one end for each life, numbers without gaps, pointers backwards, JSON throughout."""
    events = [event.as_answer() for event in execution.history.events]
    types = [event["type"] for event in events]
    assert execution.status != "RUNNING"
    assert "ExecutionStarted" == types[0]
    assert types[-1] in ENDS
    assert execution.redrive_count + 1 == sum(kind in ENDS for kind in types)
    assert list(range(1, len(events) + 1)) == [event["id"] for event in events]
    assert all(event["previousEventId"] < event["id"] for event in events)
    assert "Internal error" not in str(execution.cause)
    json.dumps(events)
    check_states(events)
    untroubled = execution.status == "SUCCEEDED" and not any(TROUBLE.search(kind) for kind in types)
    check_pairs(Counter(types), untroubled=untroubled)
    check_chain(events)


def check_states(events: list[dict[str, Any]]) -> None:
    """No state is left more often than it was entered, and only after."""
    inside: Counter[str] = Counter()
    for event in events:
        if event["type"].endswith("StateEntered"):
            inside[event["stateEnteredEventDetails"]["name"]] += 1
        elif event["type"].endswith("StateExited"):
            inside[event["stateExitedEventDetails"]["name"]] -= 1
        assert not inside or min(inside.values()) >= 0, event


def check_pages(world: World, execution: Execution) -> None:
    """Page by page, in either order, the API gives every event once."""
    whole = [event.as_answer() for event in execution.history.events]
    for reverse in (False, True):
        pages: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        while True:
            asked = {"executionArn": execution.arn, "maxResults": 7, "reverseOrder": reverse, **more}
            answer = world.api("GetExecutionHistory", **asked)
            pages += answer["events"]
            if "nextToken" not in answer:
                break
            more = {"nextToken": answer["nextToken"]}
        assert pages == (whole[::-1] if reverse else whole)


TROUBLE = re.compile("Failed|Aborted|TimedOut")
PAIRS = {
    "TaskScheduled": ("TaskSucceeded", "TaskFailed", "TaskSubmitFailed", "TaskTimedOut"),
    "ActivityScheduled": ("ActivitySucceeded", "ActivityFailed", "ActivityTimedOut"),
    "MapIterationStarted": ("MapIterationSucceeded", "MapIterationFailed", "MapIterationAborted"),
    "MapRunStarted": ("MapRunSucceeded", "MapRunFailed", "MapRunAborted"),
    "MapStateStarted": ("MapStateSucceeded", "MapStateFailed"),
    "ParallelStateStarted": ("ParallelStateSucceeded", "ParallelStateFailed"),
} | {
    # Left once, however often it was cut off and redriven in between.
    f"{name}StateEntered": (f"{name}StateExited",)
    for name in ("Pass", "Wait", "Task", "Parallel", "Map", "Choice")
}


def check_pairs(types: Counter[str], *, untroubled: bool) -> None:
    """What begins ends at most once, and exactly once where nothing failed and nothing was cut off."""
    for start, ends in PAIRS.items():
        started = types[start] + (types["MapRunRedriven"] if start == "MapRunStarted" else 0)
        ended = sum(types[end] for end in ends)
        assert ended == started if untroubled else ended <= started, (start, types)


def check_chain(events: list[dict[str, Any]]) -> None:
    """From the last event the pointers lead back to the beginning."""
    event = events[-1]
    while event["previousEventId"]:
        event = events[event["previousEventId"] - 1]
    assert event["id"] <= 2 or event["type"] in ENDS
