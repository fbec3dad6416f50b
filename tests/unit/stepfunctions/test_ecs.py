"""`ecs:runTask` (aws-facts section 2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from trueup.local.stepfunctions.integrations.task_watch import MISSING_ROUNDS

from .harness import Ran, Services, World, execute, machine, play, ran, refuse

ARN = "arn:aws:ecs:us-east-1:000000000000:task/c/1"
PARAMETERS = {"Cluster": "c", "TaskDefinition": "d:1", "LaunchType": "FARGATE"}


def run_task(pattern: str, **fields: Any) -> dict[str, Any]:
    parameters = fields.pop("Parameters", PARAMETERS)
    state = {"Type": "Task", "Resource": f"arn:aws:states:::ecs:runTask{pattern}", "Parameters": parameters}
    return machine(("T", {**state, **fields}))


def fargate(code: int | None = 0, seconds: float = 60, **stopped: Any) -> Services:
    """An ECS whose one task ends with a code after a while."""
    started: list[float] = []
    container = {"name": "main"} if code is None else {"name": "main", "exitCode": code}

    def run(_: Any) -> Any:
        started.append(asyncio.get_running_loop().time())
        return {"tasks": [{"taskArn": ARN, "lastStatus": "PROVISIONING"}], "failures": []}

    def describe(_: Any) -> Any:
        over = asyncio.get_running_loop().time() - started[0] >= seconds
        task = {"taskArn": ARN, "lastStatus": "STOPPED" if over else "RUNNING", "containers": [container]}
        return {"tasks": [{**task, **stopped}], "failures": []}

    return Services(ecs_runTask=run, ecs_describeTasks=describe, ecs_stopTask=lambda _: {})


def test_sync_waits_until_the_task_has_stopped_and_gives_its_description_in_pascal_case() -> None:
    # Recorded on AWS: test_ecs_task_service (aws-facts section 6.5).
    services = fargate(0, stopCode="EssentialContainerExited")
    ended = execute(run_task(".sync"), services=services)
    assert [0] == [container["ExitCode"] for container in ended.output["Containers"]]
    assert ("EssentialContainerExited", ARN) == (ended.output["StopCode"], ended.output["TaskArn"])
    assert ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"] == ended.types[2:6]
    assert 60 <= ended.seconds < 61
    assert "AWS Step Functions" == services.called("ecs:runTask")[0]["StartedBy"]
    submitted = json.loads(ended.details("TaskSubmitted")["output"])
    assert [[], "PROVISIONING"] == [submitted["Failures"], submitted["Tasks"][0]["LastStatus"]]


def test_a_non_zero_exit_fails_with_the_task_s_description_as_the_cause() -> None:
    ended = execute(run_task(".sync"), services=fargate(75, stopCode="EssentialContainerExited"))
    assert "States.TaskFailed" == ended.error
    assert 75 == json.loads(str(ended.cause))["Containers"][0]["ExitCode"]


def test_a_task_that_never_started_fails() -> None:
    ended = execute(run_task(".sync"), services=fargate(None, stopCode="TaskFailedToStart"))
    assert ("States.TaskFailed", "TaskFailedToStart") == (
        ended.error,
        json.loads(str(ended.cause))["StopCode"],
    )


@pytest.mark.parametrize("pattern", [".sync", ".waitForTaskToken"])
def test_failures_in_the_answer_are_amazon_ecs_unknown_when_the_task_is_waited_for(pattern: str) -> None:
    services = Services(ecs_runTask=lambda _: {"tasks": [], "failures": [{"reason": "RESOURCE:CPU"}]})
    fields = {**PARAMETERS, "Group.$": "$$.Task.Token"} if "Token" in pattern else PARAMETERS
    ended = execute(run_task(pattern, Parameters=fields), services=services)
    assert "AmazonECS.Unknown" == ended.error
    assert "RESOURCE:CPU" in str(ended.cause)


def test_failures_in_the_answer_are_the_result_of_a_plain_call() -> None:
    services = Services(ecs_runTask=lambda _: {"tasks": [], "failures": [{"reason": "RESOURCE:ENI"}]})
    assert [{"Reason": "RESOURCE:ENI"}] == execute(run_task(""), services=services).output["Failures"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ECS.AmazonECSException", "ThrottlingException"),
        ("ECS.InvalidParameterException", "InvalidParameterException"),
        ("ECS.ClientException", "ClientException"),
        ("ECS.ServerException", "ServerException"),
    ],
)
def test_refused_launches_are_named(error: str, code: str) -> None:
    ended = execute(run_task(".sync"), services=Services(ecs_runTask=refuse(code, "Rate exceeded")))
    assert error == ended.error
    assert str(ended.cause).startswith("Rate exceeded (Service: AmazonECS; Status Code: 400;")


def stop_after(seconds: float, services: Services, definition: Any) -> Ran:
    async def scene(world: World) -> Ran:
        execution = world.start(world.create(definition))
        await asyncio.sleep(seconds)
        execution.stop()
        await asyncio.sleep(10)
        return ran(execution)

    result: Ran = play(scene, services)
    return result


def test_stopping_the_execution_stops_the_task() -> None:
    services = fargate(seconds=1000)
    assert "ABORTED" == stop_after(5, services, run_task(".sync")).status
    assert [ARN] == [call["Task"] for call in services.called("ecs:stopTask")]


def test_a_task_whose_launch_was_under_way_when_the_execution_was_stopped_is_stopped_too() -> None:
    services = fargate(seconds=1000)
    launch = services.answers["ecs:runTask"]

    async def slowly(parameters: Any) -> Any:
        await asyncio.sleep(3)
        return launch(parameters)

    services.answers["ecs:runTask"] = slowly
    stop_after(1, services, run_task(".sync"))
    assert [ARN] == [call["Task"] for call in services.called("ecs:stopTask")]


def test_a_timeout_leaves_the_task_running() -> None:
    # Not documented by AWS; the harder reading is the one to be right under (aws-facts section 9).
    services = fargate(seconds=1000)
    assert "States.Timeout" == execute(run_task(".sync", TimeoutSeconds=20), services=services).error
    assert [] == services.called("ecs:stopTask")


def test_a_callback_task_is_not_stopped_with_its_execution() -> None:
    # aws-facts section 2.2: waitForTaskToken has no permission to stop.
    services = fargate(seconds=1000)
    fields = {**PARAMETERS, "Group.$": "$$.Task.Token"}
    stop_after(5, services, run_task(".waitForTaskToken", Parameters=fields))
    assert [] == services.called("ecs:stopTask")


def missing_whenever(unknown: Callable[[int], bool]) -> Services:
    """An ECS that does not know its task the n-th time, as `unknown` says; the task never stops."""
    services = fargate(seconds=100_000)
    known = services.answers["ecs:describeTasks"]

    def describe(parameters: Any) -> Any:
        if unknown(len(services.called("ecs:describeTasks"))):
            return {"tasks": [], "failures": [{"arn": ARN, "reason": "MISSING"}]}
        return known(parameters)

    services.answers["ecs:describeTasks"] = describe
    return services


def test_a_task_that_ecs_never_knows_is_lost() -> None:
    # [botocore ecs] Failure.reason. How long Step Functions asks is not documented: a minute is ours.
    services = missing_whenever(lambda nth: True)
    ended = execute(run_task(".sync"), services=services)
    assert ("States.TaskFailed", f"ECS does not know the task {ARN}: MISSING") == (ended.error, ended.cause)
    assert MISSING_ROUNDS == len(services.called("ecs:describeTasks")) - 1


def test_a_task_that_is_seen_again_was_never_lost() -> None:
    # aws-facts section 3: eventually consistent. Twice as long unknown, but not at a stretch.
    services = missing_whenever(lambda nth: nth % MISSING_ROUNDS > 1 and nth < 2 * MISSING_ROUNDS)
    ended = execute(run_task(".sync", TimeoutSeconds=200), services=services)
    assert "States.Timeout" == ended.error


def test_a_task_that_ecs_does_not_know_yet_is_waited_for() -> None:
    # aws-facts section 3: eventually consistent.
    services = fargate(seconds=10)
    known = services.answers["ecs:describeTasks"]

    def late(parameters: Any) -> Any:
        if len(services.called("ecs:describeTasks")) < 20:
            return {"tasks": [], "failures": [{"arn": ARN, "reason": "MISSING"}]}
        return known(parameters)

    services.answers["ecs:describeTasks"] = late
    assert "SUCCEEDED" == execute(run_task(".sync"), services=services).status
