"""Versions and aliases ([dg:concepts-state-machine-version], [dg:concepts-state-machine-alias])."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError

from .harness import ROLE, World, machine, passing, play


def says(word: str) -> str:
    return json.dumps(machine(("P", passing(Result=word))))


def create(world: World, **body: Any) -> Any:
    return world.api("CreateStateMachine", name="m", definition=says("one"), roleArn=ROLE, **body)


async def output(world: World, arn: str) -> Any:
    execution = world.engine.start_execution(arn, None, None)
    await execution.ended()
    return execution.output and execution.output.value


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.name


def scene(act: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
    """A test that is played in virtual time."""

    def test() -> None:
        play(act)

    return test


@scene
async def test_a_version_runs_what_it_was_published_with(world: World) -> None:
    arn = create(world)["stateMachineArn"]
    first = world.api("PublishStateMachineVersion", stateMachineArn=arn)["stateMachineVersionArn"]
    assert f"{arn}:1" == first
    updated = world.api("UpdateStateMachine", stateMachineArn=arn, definition=says("two"), publish=True)
    assert f"{arn}:2" == updated["stateMachineVersionArn"]
    outputs = [await output(world, one) for one in (first, f"{arn}:2", arn)]
    assert ["one", "two", "two"] == outputs
    described = world.api("DescribeStateMachine", stateMachineArn=first)
    assert (first, says("one")) == (described["stateMachineArn"], described["definition"])


@scene
async def test_a_revision_is_published_once_and_numbers_are_not_given_twice(world: World) -> None:
    made = create(world, publish=True, versionDescription="first")
    arn = made["stateMachineArn"]
    again = world.api("PublishStateMachineVersion", stateMachineArn=arn)
    assert made["stateMachineVersionArn"] == again["stateMachineVersionArn"]
    world.api("DeleteStateMachineVersion", stateMachineVersionArn=f"{arn}:1")
    assert [] == world.api("ListStateMachineVersions", stateMachineArn=arn)["stateMachineVersions"]
    assert (
        f"{arn}:2" == world.api("PublishStateMachineVersion", stateMachineArn=arn)["stateMachineVersionArn"]
    )


@scene
async def test_another_revision_than_the_present_one_is_not_published(world: World) -> None:
    arn = create(world)["stateMachineArn"]
    world.api("PublishStateMachineVersion", stateMachineArn=arn, revisionId="INITIAL")
    world.api("UpdateStateMachine", stateMachineArn=arn, definition=says("two"))
    publish = lambda: world.api("PublishStateMachineVersion", stateMachineArn=arn, revisionId="INITIAL")  # noqa: E731
    assert "ConflictException" == refused(publish)


def alias(world: World, *routes: tuple[str, int], name: str = "live") -> Any:
    routing = [{"stateMachineVersionArn": arn, "weight": weight} for arn, weight in routes]
    return world.api("CreateStateMachineAlias", name=name, routingConfiguration=routing)


@scene
async def test_an_alias_shares_executions_out_by_weight(world: World) -> None:
    arn = create(world, publish=True)["stateMachineArn"]
    world.api("UpdateStateMachine", stateMachineArn=arn, definition=says("two"), publish=True)
    live = alias(world, (f"{arn}:1", 80), (f"{arn}:2", 20))["stateMachineAliasArn"]
    assert f"{arn}:live" == live
    outputs = Counter([await output(world, live) for _ in range(200)])
    assert 120 < outputs["one"] < 190
    assert 200 == sum(outputs.values())
    listed = world.api("ListExecutions", stateMachineArn=live, maxResults=1000)["executions"]
    assert 200 == len(listed)
    of_version = world.api("ListExecutions", stateMachineArn=f"{arn}:2", maxResults=1000)["executions"]
    assert outputs["two"] == len(of_version)
    told = world.api("DescribeExecution", executionArn=of_version[0]["executionArn"])
    assert (live, f"{arn}:2") == (told["stateMachineAliasArn"], told["stateMachineVersionArn"])
    assert arn == told["stateMachineArn"]


@scene
async def test_an_alias_is_moved_described_listed_and_deleted(world: World) -> None:
    arn = create(world, publish=True)["stateMachineArn"]
    world.api("UpdateStateMachine", stateMachineArn=arn, definition=says("two"), publish=True)
    live = alias(world, (f"{arn}:1", 100))["stateMachineAliasArn"]
    routing = [{"stateMachineVersionArn": f"{arn}:2", "weight": 100}]
    world.api("UpdateStateMachineAlias", stateMachineAliasArn=live, routingConfiguration=routing)
    assert (
        routing == world.api("DescribeStateMachineAlias", stateMachineAliasArn=live)["routingConfiguration"]
    )
    assert "two" == await output(world, live)
    of_first = world.api("ListStateMachineAliases", stateMachineArn=f"{arn}:1")
    assert [] == of_first["stateMachineAliases"]
    in_use = lambda: world.api("DeleteStateMachineVersion", stateMachineVersionArn=f"{arn}:2")  # noqa: E731
    assert "ConflictException" == refused(in_use)
    world.api("DeleteStateMachineAlias", stateMachineAliasArn=live)
    gone = lambda: world.api("DescribeStateMachineAlias", stateMachineAliasArn=live)  # noqa: E731
    assert "ResourceNotFound" == refused(gone)


@pytest.mark.parametrize(
    ("error", "name", "weights"),
    [
        ("ValidationException", "live", [50, 40]),
        ("ValidationException", "live", [100, 0, 0]),
        ("ValidationException", "12", [100]),
        ("ValidationException", "live", [101]),
        ("ResourceNotFound", "live", [90, 10]),
    ],
)
def test_an_alias_is_refused(error: str, name: str, weights: list[int]) -> None:
    async def act(world: World) -> None:
        arn = create(world, publish=True)["stateMachineArn"]
        routes = [(f"{arn}:{number}", weight) for number, weight in enumerate(weights, 1)]
        assert error == refused(lambda: alias(world, *routes, name=name))

    play(act)


@scene
async def test_an_alias_is_created_twice_only_when_it_is_the_same(world: World) -> None:
    arn = create(world, publish=True)["stateMachineArn"]
    assert alias(world, (f"{arn}:1", 100)) == alias(world, (f"{arn}:1", 100))
    world.api("UpdateStateMachine", stateMachineArn=arn, definition=says("two"), publish=True)
    assert "ConflictException" == refused(lambda: alias(world, (f"{arn}:2", 100)))


@scene
async def test_what_is_not_published_cannot_be_started(world: World) -> None:
    arn = create(world)["stateMachineArn"]
    start = lambda: world.api("StartExecution", stateMachineArn=f"{arn}:1")  # noqa: E731
    assert "StateMachineDoesNotExist" == refused(start)
    describe = lambda: create(world, versionDescription="without publish")  # noqa: E731
    assert "ValidationException" == refused(describe)
