"""The task metadata endpoint, version 4, field by field.

Source: developer guide, "Amazon ECS task metadata v4 JSON response for tasks on Fargate" and its examples.
"""

from __future__ import annotations

from trueup.local.ecs.describing import instant
from trueup.local.ecs.metadata import container_metadata, task_metadata

from .ecs_cases import IMAGE, Case, on_a_loop

FAMILY = "com.amazonaws.ecs.task-definition-family"


@on_a_loop
async def test_a_container_learns_its_limits_its_labels_and_its_network() -> None:
    """ "Limits": CPU and Memory of the container; "Labels"; "Networks": awsvpc with its addresses."""
    case = Case()
    case.register(cpu=64, memory=128, dockerLabels={"team": "data", FAMILY: "forged"})
    task = await case.run()
    told = container_metadata(task, case.fargate.place)
    assert {"CPU": 64, "Memory": 128} == told["Limits"]
    assert ("data", "job") == (told["Labels"]["team"], told["Labels"][FAMILY])
    assert [{"NetworkMode": "awsvpc", "IPv4Addresses": ["127.0.0.1"], "AttachmentIndex": 0}] == told[
        "Networks"
    ]
    assert ("main", IMAGE, "RUNNING", "NORMAL") == (
        told["Name"],
        told["Image"],
        told["KnownStatus"],
        told["Type"],
    )
    assert "ExitCode" not in told
    assert "FinishedAt" not in told
    await case.fargate.close()


@on_a_loop
async def test_what_a_call_overrides_is_what_a_container_learns() -> None:
    """RunTask, ContainerOverride: cpu and memory, "instead of the default value from the task definition"."""
    case = Case()
    case.register(cpu=64, memory=128)
    override = {"name": "main", "cpu": 32, "memory": 256}
    task = await case.run(overrides={"containerOverrides": [override]})
    assert {"CPU": 32, "Memory": 256} == container_metadata(task, case.fargate.place)["Limits"]
    assert 256 == case.process.order.memory
    await case.fargate.close()


@on_a_loop
async def test_metadata_tell_when_a_task_ended_and_how() -> None:
    """ "ExecutionStoppedAt": when DesiredStatus moved to STOPPED; also "FinishedAt" and "ExitCode"."""
    case = Case(deprovision=30.0)
    task = await case.run()
    await case.clock.pass_(5)
    case.process.exit(3)
    await case.clock.pass_(0)
    told = task_metadata(task, case.fargate.place)
    ended = instant(case.clock.now())
    (container,) = told["Containers"]
    assert ("STOPPED", ended) == (told["DesiredStatus"], told["ExecutionStoppedAt"])
    assert ("STOPPED", 3, ended) == (container["KnownStatus"], container["ExitCode"], container["FinishedAt"])
    assert told["PullStartedAt"] <= container["CreatedAt"] <= container["StartedAt"] < ended
    await case.clock.pass_(30)
    await case.fargate.close()
