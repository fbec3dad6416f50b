"""Every operation of the service's own model is there, refuses what the model refuses, and answers with what
the model says [botocore].
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import botocore.session
import pytest

from trueup.local.stepfunctions.api.operations import OPERATIONS
from trueup.local.stepfunctions.errors import ApiError

from .harness import ROLE, World, machine, passing, play

MODEL = botocore.session.Session().get_service_model("stepfunctions")
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float),
    "list": list,
    "map": dict,
    "structure": dict,
}
OWN_NAMES = ("definition", "nextToken", "resourceArn")
"""What operations refuse by names of their own: InvalidDefinition, InvalidToken, InvalidArn."""


def test_every_operation_of_the_model_is_there() -> None:
    assert set(MODEL.operation_names) == set(OPERATIONS)


def broken() -> Iterator[Any]:
    """For each constraint of each input a request that breaks it, and the sentence that tells of it."""
    for operation in MODEL.operation_names:
        shape = MODEL.operation_model(operation).input_shape
        for name, member in shape.members.items():
            for value, said in _wrong(name, member, required=name in shape.required_members):
                case = f"{operation}-{name}-{said.rpartition('Member must ')[2][:30]}"
                yield pytest.param(operation, name, value, said, id=case)


def _wrong(name: str, shape: Any, *, required: bool) -> Iterator[tuple[Any, str]]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if required:
        yield None, f"Value null at '{name}' failed to satisfy constraint: Member must not be null"
    if name in OWN_NAMES:
        return
    sized = shape.type_name == "string"
    if shape.type_name not in ("string", "integer", "float"):
        return
    noun, at = ("length", "x".__mul__) if sized else ("value", lambda number: number)
    if least:
        yield at(least - 1), f"Member must have {noun} greater than or equal to {least}"
    if most is not None:
        yield at(most + 1), f"Member must have {noun} less than or equal to {most}"
    if getattr(shape, "enum", None):
        yield "NONE OF THEM", f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"
    if shape.metadata.get("pattern"):
        yield "ü", "Member must satisfy regular expression pattern: "


@pytest.mark.parametrize(("operation", "name", "value", "said"), list(broken()))
def test_what_breaks_a_constraint_of_the_model_is_refused(
    operation: str, name: str, value: Any, said: str
) -> None:
    async def scene(world: World) -> None:
        with pytest.raises(ApiError) as refused:
            world.api(operation, **{name: value})
        assert "ValidationException" == refused.value.name
        assert said in refused.value.message
        assert f"at '{name}'" in refused.value.message

    play(scene)


class Calls:
    """Calls operations, and holds each answer to the model."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.told: dict[str, set[str]] = {}

    async def __call__(self, operation: str, **body: Any) -> Any:
        answer = self._world.api(operation, **body)
        if inspect.isawaitable(answer):
            answer = await answer
        shape = MODEL.operation_model(operation).output_shape
        if shape is None:
            assert answer == {}
        else:
            check(shape, answer, operation)
            self.told.setdefault(operation, set()).update(answer)
        return answer


def check(shape: Any, value: Any, where: str) -> None:
    """An answer has what the model requires, nothing that it does not know, and no other types."""
    assert isinstance(value, _TYPES[shape.type_name]), f"{where}: {value!r}"
    match shape.type_name:
        case "structure":
            assert set(shape.required_members) <= set(value) <= set(shape.members), (
                f"{where}: {sorted(value)}"
            )
            for name, item in value.items():
                check(shape.members[name], item, f"{where}.{name}")
        case "list":
            for item in value:
                check(shape.member, item, f"{where}[]")
        case "map":
            for name, item in value.items():
                check(shape.value, item, f"{where}.{name}")
        case "string" if getattr(shape, "enum", None):
            assert value in shape.enum, where


def test_answers_are_those_of_the_model_and_tell_all_that_it_has() -> None:
    async def scene(world: World) -> set[str]:
        call = Calls(world)
        for part in (machines, versions, executions, express, activities, map_runs, state_tests):
            await part(call)
        return {
            f"{operation}.{name}"
            for operation in MODEL.operation_names
            if (shape := MODEL.operation_model(operation).output_shape) is not None
            for name in set(shape.members) - call.told.get(operation, set())
        }

    # A label belongs to the ARN of a Distributed Map, which the operation refuses.
    assert {"DescribeStateMachine.label"} == play(scene)


PASS = machine(
    ("A", passing(Assign={"count": 1})),
    ("B", passing(Parameters={"told.$": "States.Format('{} of $x', $count)"})),
)
FAIL = machine(("F", {"Type": "Fail", "Error": "E", "Cause": "C"}))


async def create(call: Calls, name: str, definition: Any, **more: Any) -> Any:
    return await call(
        "CreateStateMachine", name=name, definition=json.dumps(definition), roleArn=ROLE, **more
    )


async def machines(call: Calls) -> None:
    made = await create(call, "m", PASS, publish=True, versionDescription="first", tags=[TAG])
    arn = made["stateMachineArn"]
    assert arn == (await create(call, "other", PASS))["stateMachineArn"].replace("other", "m")
    await call("UpdateStateMachine", stateMachineArn=arn, roleArn=ROLE, publish=True)
    told = await call("DescribeStateMachine", stateMachineArn=made["stateMachineVersionArn"])
    assert ("first", {"B": ["count"]}) == (told["description"], told["variableReferences"])
    await call("DescribeStateMachine", stateMachineArn=arn)
    await call("ListStateMachines", maxResults=1)
    for definition in (PASS, {}):
        await call("ValidateStateMachineDefinition", definition=json.dumps(definition))
    await call("TagResource", resourceArn=arn, tags=[TAG])
    await call("ListTagsForResource", resourceArn=arn)
    await call("UntagResource", resourceArn=arn, tagKeys=["k"])
    await call("DeleteStateMachine", stateMachineArn=arn)


TAG = {"key": "k", "value": "v"}


async def versions(call: Calls) -> None:
    arn = (await create(call, "versions", PASS))["stateMachineArn"]
    first = (await call("PublishStateMachineVersion", stateMachineArn=arn))["stateMachineVersionArn"]
    await call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(FAIL), publish=True)
    await call("ListStateMachineVersions", stateMachineArn=arn, maxResults=1)
    routes = [{"stateMachineVersionArn": first, "weight": 100}]
    for name in ("live", "next"):
        made = await call("CreateStateMachineAlias", name=name, description="d", routingConfiguration=routes)
    alias = made["stateMachineAliasArn"]
    await call("UpdateStateMachineAlias", stateMachineAliasArn=alias, description="e")
    await call("DescribeStateMachineAlias", stateMachineAliasArn=alias)
    await call("ListStateMachineAliases", stateMachineArn=arn, maxResults=1)
    started = await call("StartExecution", stateMachineArn=alias, traceHeader="Root=1")
    await asyncio.sleep(1)
    told = await call("DescribeExecution", executionArn=started["executionArn"])
    assert (alias, first, "Root=1") == (
        told["stateMachineAliasArn"],
        told["stateMachineVersionArn"],
        told["traceHeader"],
    )
    await call("DeleteStateMachineAlias", stateMachineAliasArn=alias)
    for version in (f"{arn}:2", f"{arn}:9"):
        await call("DeleteStateMachineVersion", stateMachineVersionArn=version)


async def executions(call: Calls) -> None:
    arn = (await create(call, "executions", FAIL))["stateMachineArn"]
    await call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(PASS))
    await call("StartExecution", stateMachineArn=arn)
    await call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(FAIL))
    started = (await call("StartExecution", stateMachineArn=arn, input='{"a": 1}'))["executionArn"]
    await asyncio.sleep(1)
    await call("RedriveExecution", executionArn=started)
    await asyncio.sleep(1)
    await call("StopExecution", executionArn=started)
    await call("DescribeExecution", executionArn=started)
    await call("GetExecutionHistory", executionArn=started, maxResults=1)
    await call("ListExecutions", stateMachineArn=arn, maxResults=1)


async def express(call: Calls) -> None:
    for name, definition in (("well", PASS), ("badly", FAIL)):
        arn = (await create(call, name, definition, type="EXPRESS"))["stateMachineArn"]
        await call("StartSyncExecution", stateMachineArn=arn, traceHeader="Root=1")


async def activities(call: Calls) -> None:
    for name in ("work", "more"):
        arn = (await call("CreateActivity", name=name))["activityArn"]
    await call("DescribeActivity", activityArn=arn)
    await call("ListActivities", maxResults=1)
    task = {"Type": "Task", "Resource": arn}
    waiting = (await create(call, "waiting", machine(("T", task))))["stateMachineArn"]
    for answer, given in (("SendTaskSuccess", {"output": "1"}), ("SendTaskFailure", {"error": "E"})):
        await call("StartExecution", stateMachineArn=waiting)
        token = (await call("GetActivityTask", activityArn=arn))["taskToken"]
        await call("SendTaskHeartbeat", taskToken=token)
        await call(answer, taskToken=token, **given)
    await call("DeleteActivity", activityArn=arn)


def mapping(label: str) -> dict[str, Any]:
    waiting = ("wait " + label, {"Type": "Wait", "Seconds": 60, "Assign": {"count": 1}})
    referring = ("refer " + label, passing(Parameters={"told.$": "$count"}))
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    processor = {"ProcessorConfig": config, **machine(waiting, referring)}
    return machine(("map " + label, {"Type": "Map", "Label": label, "ItemProcessor": processor}))


async def map_runs(call: Calls) -> None:
    definition = machine(("P", {"Type": "Parallel", "Branches": [mapping("L"), mapping("M")]}))
    arn = (await create(call, "mapping", definition))["stateMachineArn"]
    await call("UpdateStateMachine", stateMachineArn=arn, roleArn=ROLE)
    started = (await call("StartExecution", stateMachineArn=arn, input="[1, 2]"))["executionArn"]
    await asyncio.sleep(1)
    run = (await call("ListMapRuns", executionArn=started, maxResults=1))["mapRuns"][0]["mapRunArn"]
    await call("UpdateMapRun", mapRunArn=run, maxConcurrency=1)
    child = (await call("ListExecutions", mapRunArn=run))["executions"][0]["executionArn"]
    await call("DescribeExecution", executionArn=child)
    told = await call("DescribeStateMachineForExecution", executionArn=child)
    assert ("M", {"refer M": ["count"]}) == (told["label"], told["variableReferences"])
    for _ in range(2):
        await call("StopExecution", executionArn=started, error="e", cause="c")
        await asyncio.sleep(1)
        await call("DescribeMapRun", mapRunArn=run)
        await call("RedriveExecution", executionArn=started)
        await asyncio.sleep(1)


async def state_tests(call: Calls) -> None:
    for state in (passing(Next="B"), FAIL["States"]["F"]):
        await call(
            "TestState", definition=json.dumps(state), roleArn=ROLE, input="{}", inspectionLevel="DEBUG"
        )
