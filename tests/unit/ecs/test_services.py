"""Services keep their count, deploy, scale in and end as ECS's do.

Sources are pages of the ECS developer guide and API reference, by title, or [botocore ecs] by shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from trueup.local.ecs.errors import ApiError
from trueup.local.ecs.faults import Launch, NoFaults, Refusal
from trueup.local.ecs.tasks import Status, Stop, StopCode

from .ecs_cases import on_a_loop
from .service_cases import ServiceCase

DEPLOYMENT = r"ecs-svc/\d{19}"
OTHER_IMAGE = "registry.example/other@sha256:" + "b" * 64


@on_a_loop
async def test_a_service_starts_its_tasks_and_reaches_a_steady_state() -> None:
    """CreateService; Viewing Amazon ECS service event messages."""
    case = ServiceCase()
    made = case.api("CreateService", serviceName="work", taskDefinition="job", desiredCount=2)["service"]
    assert ("ACTIVE", 2, 0, 0) == tuple(
        made[name] for name in ("status", "desiredCount", "runningCount", "pendingCount")
    )
    assert "arn:aws:ecs:us-east-1:000000000000:service/default/work" == made["serviceArn"]
    (deployment,) = made["deployments"]
    assert ("PRIMARY", "IN_PROGRESS") == (deployment["status"], deployment["rolloutState"])
    assert f"ECS deployment {deployment['id']} in progress." == deployment["rolloutStateReason"]
    told = await case.later(2)
    (deployment,) = told["deployments"]
    assert (2, 0, "COMPLETED") == (told["runningCount"], told["pendingCount"], deployment["rolloutState"])
    assert f"ECS deployment {deployment['id']} completed." == deployment["rolloutStateReason"]
    started, completed, steady = case.said()
    assert re.fullmatch(r"has started 2 tasks: \(task [0-9a-f]{32}\) \(task [0-9a-f]{32}\)\.", started)
    assert f"(deployment {deployment['id']}) deployment completed." == completed
    assert "has reached a steady state." == steady
    await case.fargate.close()


@on_a_loop
async def test_its_tasks_are_of_its_group_and_started_by_its_deployment() -> None:
    """API reference, Task: group and startedBy of a task that a service started."""
    case = ServiceCase()
    (deployment,) = (await case.create(1))["deployments"]
    assert re.fullmatch(DEPLOYMENT, deployment["id"])
    (task,) = case.running()
    assert ("service:work", deployment["id"]) == (task.group, task.started_by)
    with pytest.raises(ApiError, match="Invalid namespace for group") as refusal:
        case.fargate.run({"taskDefinition": "job", "group": "service:work"})
    assert "InvalidParameterException" == refusal.value.name
    await case.fargate.close()


@on_a_loop
async def test_a_task_that_ends_is_replaced() -> None:
    """Amazon ECS services; a task that ran and exits is not throttled ("service throttle logic")."""
    case = ServiceCase()
    await case.create(2)
    for code in (1, 1, 1, 1, 0):
        case.launcher.processes[-1].exit(code)
        told = await case.later(2)
        assert 2 == told["runningCount"]
        assert 0 == told["deployments"][0]["failedTasks"]
    assert 7 == len(case.launcher.processes)
    assert 6 == case.said().count("has reached a steady state.")
    case.fargate.stop(case.running()[0], "a person stops one")
    assert 2 == (await case.later(2))["runningCount"]
    await case.fargate.close()


@on_a_loop
async def test_tasks_that_never_run_are_tried_ever_more_seldom() -> None:
    """Amazon ECS service throttle logic: up to 27 minutes apart, and a word about it."""
    case = ServiceCase(pace=30.0, kept=5 * 3600)
    case.register(image=OTHER_IMAGE)
    await case.create(1)
    await case.clock.pass_(4 * 3600)
    began = [task.times["createdAt"] for task in case.fargate.tasks("default")]
    gaps = [after - before for before, after in pairwise(began)]
    assert gaps == sorted(gaps)
    assert [27 * 60 + 30] * 4 == gaps[-4:]  # it is looked at every 30 s
    assert "is unable to consistently start tasks successfully." in case.said()
    assert ("WARN", "SERVICE_TASK_START_IMPAIRED") in case.announced("ECS Service Action")
    assert any(word.startswith("was unable to place a task. Reason: CannotPull") for word in case.said())
    await case.fargate.close()


@on_a_loop
async def test_the_first_attempts_are_10_20_and_40_seconds_apart_and_a_new_revision_starts_at_once() -> None:
    """Amazon ECS service throttle logic; the steps are ours. "If you update your service to use a new task
    definition, your service returns to a normal, non-throttled state immediately"."""
    case = ServiceCase()
    case.register(image=OTHER_IMAGE)
    await case.create(1)
    told = await case.later(75)
    began = [task.times["createdAt"] for task in case.fargate.tasks("default")]
    assert [10, 20, 40] == [round(after - before, -1) for before, after in pairwise(began)]
    assert 4 == told["deployments"][0]["failedTasks"]
    case.register()
    assert 1 == (await case.update(taskDefinition="job"))["runningCount"]
    await case.fargate.close()


@on_a_loop
async def test_scaling_in_says_so_and_stops_what_is_too_much() -> None:
    """Stopped tasks error messages: "Scaling activity initiated by (deployment …)"."""
    case = ServiceCase()
    deployment = (await case.create(3))["deployments"][0]["id"]
    told = await case.update(desiredCount=1)
    assert (1, 1, "COMPLETED") == (
        told["desiredCount"],
        told["runningCount"],
        told["deployments"][0]["rolloutState"],
    )
    stopped = [task for task in case.fargate.tasks("default") if task.stopped]
    reason = f"Scaling activity initiated by (deployment {deployment})"
    assert [Stop(StopCode.SCHEDULER, reason)] * 2 == [task.stop for task in stopped]
    assert re.fullmatch(
        r"has stopped 2 running tasks: \(task \w+\) \(task \w+\)\.has reached a steady state\.",
        "".join(case.said()[-2:]),
    )
    await case.fargate.close()


@on_a_loop
async def test_scaling_in_passes_over_protected_tasks() -> None:
    """Protect your Amazon ECS tasks from being terminated by scale-in events."""
    case = ServiceCase()
    await case.create(4)
    busy = case.running()[1:3]
    assert 2 == len(case.protect(*busy, expiresInMinutes=1)["protectedTasks"])
    told = await case.update(desiredCount=1)
    assert (2, busy) == (told["runningCount"], case.running())
    await case.clock.pass_(60)
    assert 1 == len(case.running())
    await case.fargate.close()


@on_a_loop
async def test_a_deployment_starts_the_new_before_it_stops_the_old() -> None:
    """[botocore ecs] DeploymentConfiguration: 100 and 200 percent by default."""
    case = ServiceCase(cold_start=5)
    await case.create(2)
    await case.clock.pass_(6)
    case.register()
    told = await case.update(taskDefinition="job")
    assert [("PRIMARY", 0, 2), ("ACTIVE", 2, 0)] == [
        (one["status"], one["runningCount"], one["pendingCount"]) for one in told["deployments"]
    ]
    assert told["deployments"][0]["taskDefinition"].endswith("job:2")
    told = await case.later(7)
    (deployment,) = told["deployments"]
    assert (2, "COMPLETED") == (deployment["runningCount"], deployment["rolloutState"])
    assert {"job:2"} == {task.definition.arn.rpartition("/")[2] for task in case.running()}
    assert [
        ("INFO", "SERVICE_DEPLOYMENT_IN_PROGRESS"),
        ("INFO", "SERVICE_DEPLOYMENT_COMPLETED"),
    ] * 2 == case.announced("ECS Deployment State Change")
    await case.fargate.close()


@pytest.mark.parametrize(
    ("least", "most", "lowest", "highest"),
    [(100, 200, 4, 8), (50, 100, 2, 4), (100, 150, 4, 6), (0, 100, 0, 4), (75, 125, 3, 5)],
)
@on_a_loop
async def test_a_deployment_keeps_within_its_percentages(
    least: int, most: int, lowest: int, highest: int
) -> None:
    """[botocore ecs] DeploymentConfiguration: with four tasks and 200 % "the scheduler may start four new
    tasks before stopping the four older", with 50 % it "may stop two existing tasks" first."""
    case = ServiceCase(cold_start=3)
    limits = {"minimumHealthyPercent": least, "maximumPercent": most}
    await case.create(4, deploymentConfiguration=limits)
    await case.clock.pass_(5)
    case.register()
    case.api("UpdateService", service="work", taskDefinition="job")
    seen = []
    for _ in range(60):
        await case.clock.pass_(0.5)
        live = [task for task in case.fargate.tasks("default") if task.lives]
        seen.append((len([task for task in live if task.status is Status.RUNNING]), len(live)))
    assert (lowest, highest) == (min(running for running, _ in seen), max(live for _, live in seen))
    assert "COMPLETED" == case.told()["deployments"][0]["rolloutState"]
    await case.fargate.close()


@on_a_loop
async def test_a_task_counts_as_healthy_when_it_has_run_for_a_while() -> None:
    """[botocore ecs] DeploymentConfiguration: "the service scheduler will wait for 40 seconds"."""
    case = ServiceCase(healthy_after=40)
    await case.create(1)
    case.register()
    told = await case.update(39, taskDefinition="job")
    assert 2 == told["runningCount"]
    assert 1 == (await case.later(3))["runningCount"]
    await case.fargate.close()


@on_a_loop
async def test_a_deployment_waits_for_protected_tasks() -> None:
    """Protect your Amazon ECS tasks …: rolling updates leave those until they are free."""
    case = ServiceCase()
    await case.create(2)
    (busy, *_) = case.running()
    case.protect(busy)
    case.register()
    told = await case.update(30, taskDefinition="job")
    assert [("PRIMARY", 2, "IN_PROGRESS"), ("ACTIVE", 1, "COMPLETED")] == [
        (one["status"], one["runningCount"], one["rolloutState"]) for one in told["deployments"]
    ]
    case.protect(busy, protectionEnabled=False)
    (deployment,) = (await case.later(3))["deployments"]
    assert "COMPLETED" == deployment["rolloutState"]
    await case.fargate.close()


@on_a_loop
async def test_a_deployment_that_can_neither_start_nor_stop_says_so_once() -> None:
    """Viewing Amazon ECS service event messages: "was unable to stop or start tasks during a deployment"."""
    case = ServiceCase()
    await case.create(1, deploymentConfiguration={"minimumHealthyPercent": 50, "maximumPercent": 100})
    case.register()
    await case.update(10, taskDefinition="job")
    stuck = (
        "was unable to stop or start tasks during a deployment because of the service deployment "
        "configuration. Update the minimumHealthyPercent or maximumPercent value and try again."
    )
    assert 1 == case.said().count(stuck)
    told = await case.update(5, deploymentConfiguration={"minimumHealthyPercent": 0})
    assert 1 == len(told["deployments"])
    await case.fargate.close()


@on_a_loop
async def test_a_forced_deployment_replaces_tasks_of_the_same_revision() -> None:
    """UpdateService, forceNewDeployment; other updates that change nothing start nothing."""
    case = ServiceCase()
    first = (await case.create(1))["deployments"][0]["id"]
    assert first == (await case.update(taskDefinition="job:1"))["deployments"][0]["id"]
    (deployment,) = (await case.update(5, forceNewDeployment=True))["deployments"]
    assert first != deployment["id"]
    assert 2 == len(case.launcher.processes)
    await case.fargate.close()


@pytest.mark.parametrize("rollback", [True, False])
@on_a_loop
async def test_a_circuit_breaker_gives_up_a_deployment_whose_tasks_do_not_run(rollback: bool) -> None:
    """How the Amazon ECS deployment circuit breaker detects failures: half the count, at least 3."""
    case = ServiceCase()
    breaker = {"deploymentCircuitBreaker": {"enable": True, "rollback": rollback}}
    first = (await case.create(1, deploymentConfiguration=breaker))["deployments"][0]["id"]
    case.register(image=OTHER_IMAGE)
    told = await case.update(120, taskDefinition="job")
    assert 1 == told["runningCount"]
    assert ("ERROR", "SERVICE_DEPLOYMENT_FAILED") in case.announced("ECS Deployment State Change")
    (failed,) = [word for word in case.said() if word.endswith("deployment failed: tasks failed to start.")]
    assert re.match(rf"\(deployment {DEPLOYMENT}\)", failed)
    if rollback:
        (deployment,) = told["deployments"]
        assert (first, "COMPLETED") == (deployment["id"], deployment["rolloutState"])
        assert f"rolling back to deployment {first}." in case.said()
        assert told["taskDefinition"].endswith("job:1")
    else:
        reason = "ECS deployment circuit breaker: tasks failed to start."
        assert ("FAILED", reason) == (
            told["deployments"][0]["rolloutState"],
            told["deployments"][0]["rolloutStateReason"],
        )
        assert 3 == len([task for task in case.fargate.tasks("default") if task.stopped])
    await case.fargate.close()


class RefusesOnce(NoFaults):
    """The second launch is refused."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def refuses(self, launch: Launch) -> Refusal | None:
        return self._refusal if launch.number == 2 else None


@pytest.mark.parametrize(
    ("refusal", "words", "event"),
    [
        (
            Refusal("ThrottlingException", "Rate exceeded"),
            "operations are being throttled. Will try again later.",
            ("ERROR", "ECS_OPERATION_THROTTLED"),
        ),
        (
            Refusal(None, "RESOURCE:FARGATE"),
            "was unable to place a task. Reason: RESOURCE:FARGATE",
            ("ERROR", "SERVICE_TASK_PLACEMENT_FAILURE"),
        ),
    ],
)
@on_a_loop
async def test_a_launch_that_is_refused_is_tried_again(
    refusal: Refusal, words: str, event: tuple[str, str]
) -> None:
    """Viewing Amazon ECS service event messages; Amazon ECS service action events."""
    case = ServiceCase(faults=RefusesOnce(refusal))
    await case.create(2)
    told = await case.later(15)
    assert 2 == told["runningCount"]
    assert words in case.said()
    assert event in case.announced("ECS Service Action")
    await case.fargate.close()


@on_a_loop
async def test_a_deleted_service_drains_and_stays_described_as_inactive() -> None:
    """[botocore ecs] DeleteService; "Unable to Start a service that is still Draining."."""
    case = ServiceCase()
    case.launcher.obey = False
    await case.create(2)
    refused = "The service cannot be stopped while it is scaled above 0."
    with pytest.raises(ApiError, match=refused):
        case.api("DeleteService", service="work")
    assert "DRAINING" == case.api("DeleteService", service="work", force=True)["service"]["status"]
    with pytest.raises(ApiError, match=r"Unable to Start a service that is still Draining\."):
        case.api("CreateService", serviceName="work", taskDefinition="job", desiredCount=1)
    assert [] == case.api("ListServices")["serviceArns"]
    told = await case.later(2)
    assert ("INACTIVE", []) == (told["status"], told["deployments"])
    with pytest.raises(ApiError, match=r"Service was not ACTIVE\.") as refusal:
        case.api("UpdateService", service="work", desiredCount=1)
    assert "ServiceNotActiveException" == refusal.value.name
    assert "ACTIVE" == (await case.create(1))["status"]
    await case.fargate.close()


TAGS = [{"key": "team", "value": "data"}]
MANAGED = [
    {"key": "aws:ecs:clusterName", "value": "default"},
    {"key": "aws:ecs:serviceName", "value": "work"},
]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"propagateTags": "SERVICE"}, TAGS),
        ({"propagateTags": "TASK_DEFINITION"}, [{"key": "from", "value": "definition"}]),
        ({"enableECSManagedTags": True}, MANAGED),
    ],
)
@on_a_loop
async def test_tags_of_a_services_tasks(given: dict[str, Any], expected: list[dict[str, str]]) -> None:
    """Tagging Amazon ECS resources: what is propagated, and the tags that ECS itself gives."""
    case = ServiceCase()
    case.fargate.definitions.describe("job").tags = [{"key": "from", "value": "definition"}]
    await case.create(1, tags=TAGS, **given)
    assert expected == case.running()[0].tags
    await case.fargate.close()


async def _steady(case: ServiceCase) -> None:
    await case.create(1)


async def _one_pulled(case: ServiceCase) -> None:
    case.register(image=OTHER_IMAGE)
    await case.create(1)
    await case.later(40)


@pytest.mark.parametrize(
    ("scene", "kind", "name", "expected"),
    [
        (_steady, "ECS Service Action", "SERVICE_STEADY_STATE", {"createdAt"}),
        (_one_pulled, "ECS Service Action", "SERVICE_TASK_START_IMPAIRED", {"createdAt"}),
        (
            _steady,
            "ECS Deployment State Change",
            "SERVICE_DEPLOYMENT_IN_PROGRESS",
            {"deploymentId", "updatedAt", "reason"},
        ),
    ],
)
@on_a_loop
async def test_events_of_services_have_the_documented_fields(
    scene: Callable[[ServiceCase], Any], kind: str, name: str, expected: set[str]
) -> None:
    """Amazon ECS service action events; Amazon ECS service deployment state change events."""
    case = ServiceCase()
    await scene(case)
    told = [event for event in case.events if event["detail"].get("eventName") == name]
    assert (kind, "aws.ecs", [case.told()["serviceArn"]]) == tuple(
        told[0][field] for field in ("detail-type", "source", "resources")
    )
    assert {"eventType", "eventName", "clusterArn", *expected} == set(told[0]["detail"])
    await case.fargate.close()
