"""What machines log to CloudWatch Logs ([dg:cw-logs]; the form of a line: linz/geostore#2300)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import ApiError
from trueup.local.stepfunctions.integrations.port import ServiceFailure
from trueup.local.stepfunctions.log_groups import wants

from .harness import EPOCH, ROLE, Services, World, machine, passing, play, ran

GROUP = "/aws/vendedlogs/states/mine"
ARN = f"arn:aws:logs:us-east-1:000000000000:log-group:{GROUP}:*"
FAILING = machine(("P", passing()), ("F", {"Type": "Fail", "Error": "E", "Cause": "c"}))


def settings(level: str, arn: str = ARN, **more: Any) -> dict[str, Any]:
    return {"level": level, "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}], **more}


def logged(level: str, services: Services | None = None, **more: Any) -> list[dict[str, Any]]:
    """The lines that an execution leaves behind."""
    services = services or Services(logs_createLogStream=lambda _: {}, logs_putLogEvents=lambda _: {})

    async def scene(world: World) -> list[str]:
        arn = world.api(
            "CreateStateMachine",
            name="m",
            definition=json.dumps(FAILING),
            roleArn=ROLE,
            loggingConfiguration=settings(level, **more),
        )["stateMachineArn"]
        execution = world.start(arn, {"a": 1})
        await execution.ended()
        await world.engine.close()
        return ran(execution).types

    kinds = play(scene, services)
    assert "ExecutionFailed" == kinds[-1]
    puts = services.called("logs:putLogEvents")
    assert {(GROUP, "states/m/2026-09-21")} >= {(put["LogGroupName"], put["LogStreamName"]) for put in puts}
    return [json.loads(event["Message"]) for put in puts for event in put["LogEvents"]]


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        (
            "ALL",
            [
                "ExecutionStarted",
                "PassStateEntered",
                "PassStateExited",
                "FailStateEntered",
                "ExecutionFailed",
            ],
        ),
        ("ERROR", ["FailStateEntered", "ExecutionFailed"]),
        ("FATAL", ["ExecutionFailed"]),
        ("OFF", []),
    ],
)
def test_a_machine_logs_its_events_as_its_level_says(level: str, kinds: list[str]) -> None:
    assert kinds == [line["type"] for line in logged(level)]


def test_a_line_is_an_event_with_its_numbers_as_text() -> None:
    line = logged("FATAL")[0]
    arn = line.pop("execution_arn")
    assert ":execution:m:" in arn
    assert {
        "id": "5",
        "type": "ExecutionFailed",
        "details": {"error": "E", "cause": "c"},
        "redrive_count": "0",
        "previous_event_id": "4",
        "event_timestamp": str(round(EPOCH * 1000)),
    } == line


def test_data_is_logged_when_the_machine_says_so() -> None:
    assert '{"a": 1}' == logged("ALL", includeExecutionData=True)[0]["details"]["input"]
    assert "input" not in logged("ALL", includeExecutionData=False)[0]["details"]


def test_a_stream_that_is_there_is_written_on_and_a_group_that_is_not_fails_nobody() -> None:
    def there(_: Any) -> Any:
        raise ServiceFailure("ResourceAlreadyExistsException", "it is there")

    def missing(_: Any) -> Any:
        raise ServiceFailure("ResourceNotFoundException", "no such group")

    puts = {"logs_putLogEvents": lambda _: {}}
    assert 1 == len(logged("FATAL", Services(logs_createLogStream=there, **puts)))
    assert [] == logged("FATAL", Services(logs_createLogStream=missing, **puts))


def test_no_call_puts_more_than_it_can_take() -> None:
    # PutLogEvents: 1 MiB, with 26 bytes for each event.
    services = Services(logs_createLogStream=lambda _: {}, logs_putLogEvents=lambda _: {})
    wide = machine(*((f"P{number}", passing()) for number in range(10)))

    async def scene(world: World) -> None:
        told = settings("ALL", includeExecutionData=True)
        body = {"name": "m", "definition": json.dumps(wide), "roleArn": ROLE, "loggingConfiguration": told}
        execution = world.start(
            world.api("CreateStateMachine", **body)["stateMachineArn"], {"text": "x" * 200_000}
        )
        await execution.ended()
        await asyncio.sleep(1)

    play(scene, services)
    puts = services.called("logs:putLogEvents")
    assert 22 == sum(len(put["LogEvents"]) for put in puts)
    assert all(sum(len(event["Message"]) + 26 for event in put["LogEvents"]) <= 2**20 for put in puts)


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("Must specify exactly one Log Destination", {"level": "ALL"}),
        ("ends with :\\*", settings("ERROR", ARN.removesuffix(":*"))),
        ("ends with :\\*", {"level": "ALL", "destinations": [{}]}),
    ],
)
def test_a_configuration_that_logs_nowhere_is_refused(said: str, given: dict[str, Any]) -> None:
    async def scene(world: World) -> None:
        world.api(
            "CreateStateMachine",
            name="m",
            definition=json.dumps(FAILING),
            roleArn=ROLE,
            loggingConfiguration=given,
        )

    with pytest.raises(ApiError, match=f"InvalidLoggingConfiguration: .*{said}"):
        play(scene)


@pytest.mark.parametrize(
    ("kind", "levels"),
    [
        ("TaskTimedOut", {"ALL", "ERROR"}),
        ("MapRunAborted", {"ALL", "ERROR"}),
        ("TaskSucceeded", {"ALL"}),
        ("ExecutionTimedOut", {"ALL", "ERROR", "FATAL"}),
    ],
)
def test_levels_take_the_types_of_their_table(kind: str, levels: set[str]) -> None:
    assert levels == {level for level in ("ALL", "ERROR", "FATAL") if wants(level, kind)}
