"""Task protection: whose tasks can have it, for how long, and why not.

Sources: developer guide, "Protect your Amazon ECS tasks from being terminated by scale-in events" (below: the
guide); API reference, GetTaskProtection and UpdateTaskProtection; aws-facts section 3, row Task protection.
"""

from __future__ import annotations

from typing import Any

import pytest

from trueup.local.ecs.errors import ApiError

from .ecs_cases import on_a_loop
from .service_cases import ServiceCase


def reasons(answer: dict[str, Any]) -> list[str]:
    return [failure["reason"] for failure in answer["failures"]]


@on_a_loop
async def test_a_service_task_is_protected_for_two_hours_unless_it_says_how_long() -> None:
    """The guide: 2 hours by default, from 1 minute to 2,880."""
    case = ServiceCase()
    await case.create(1)
    (task,) = case.running()
    now = case.clock.now()
    told = case.protect(task)["protectedTasks"]
    protection = {"taskArn": task.arn, "protectionEnabled": True, "expirationDate": now + 7200}
    assert [protection] == told
    for minutes in (1, 2880):
        (told,) = case.protect(task, expiresInMinutes=minutes)["protectedTasks"]
        assert now + minutes * 60 == told["expirationDate"]
    await case.fargate.close()


@pytest.mark.parametrize("minutes", [0, 2881, -1])
@on_a_loop
async def test_minutes_beyond_the_limits_are_refused(minutes: int) -> None:
    """API reference, UpdateTaskProtection, expiresInMinutes."""
    case = ServiceCase()
    await case.create(1)
    with pytest.raises(ApiError) as refusal:
        case.protect(*case.running(), expiresInMinutes=minutes)
    assert "InvalidParameterException" == refusal.value.name
    await case.fargate.close()


@on_a_loop
async def test_protection_lapses_by_itself_and_is_taken_back() -> None:
    """The guide: "After this time period lapses, the protectionEnabled parameter is set to false"."""
    case = ServiceCase()
    await case.create(1)
    (task,) = case.running()
    unprotected = [{"taskArn": task.arn, "protectionEnabled": False}]
    read = {"cluster": "default", "tasks": [task.task_id]}
    case.protect(task, expiresInMinutes=1)
    assert case.api("GetTaskProtection", **read)["protectedTasks"][0]["protectionEnabled"]
    await case.clock.pass_(60)
    assert unprotected == case.api("GetTaskProtection", **read)["protectedTasks"]
    case.protect(task)
    assert unprotected == case.protect(task, protectionEnabled=False)["protectedTasks"]
    await case.fargate.close()


@on_a_loop
async def test_tasks_of_no_service_are_not_valid_and_unknown_ones_missing() -> None:
    """UpdateTaskProtection: "Invoking this operation for a standalone task will result in an TASK_NOT_VALID
    failure"; Amazon ECS API failure reasons."""
    case = ServiceCase()
    task = await case.run()
    unknown = "arn:aws:ecs:us-east-1:000000000000:task/default/" + "f" * 32
    for call in (
        {"operation": "UpdateTaskProtection", "protectionEnabled": True},
        {"operation": "GetTaskProtection"},
    ):
        answer = case.api(call.pop("operation"), cluster="default", tasks=[task.arn, unknown], **call)
        assert [] == answer["protectedTasks"]
        assert [(task.arn, "TASK_NOT_VALID"), (unknown, "MISSING")] == [
            (failure["arn"], failure["reason"]) for failure in answer["failures"]
        ]
    await case.fargate.close()


@on_a_loop
async def test_more_protected_tasks_than_desired_block_the_next_one() -> None:
    """The guide: DEPLOYMENT_BLOCKED "means the service has more protected tasks than the desired count of
    tasks": wait, unprotect others, or raise the count."""
    case = ServiceCase()
    await case.create(3)
    first, second, third = case.running()
    case.protect(first, second)
    await case.update(desiredCount=2)
    assert [first, second] == case.running()
    await case.update(desiredCount=3)
    fresh = case.running()[-1]
    assert third is not fresh
    case.api("UpdateService", service="work", desiredCount=2)
    assert ["DEPLOYMENT_BLOCKED"] == reasons(case.protect(fresh))
    assert [] == reasons(case.protect(first))  # what it has, it may extend
    case.protect(first, protectionEnabled=False)
    assert [] == reasons(case.protect(fresh))
    await case.fargate.close()


@on_a_loop
async def test_a_person_stops_a_protected_task() -> None:
    """The guide protects from scaling in and deployments, not from StopTask."""
    case = ServiceCase()
    await case.create(1)
    (task,) = case.running()
    case.protect(task)
    case.api("StopTask", task=task.arn)
    await case.clock.pass_(2)
    assert task.stopped
    assert ["TASK_NOT_VALID"] == reasons(case.protect(task))
    await case.fargate.close()


@pytest.mark.parametrize(("operation", "most"), [("UpdateTaskProtection", 10), ("GetTaskProtection", 100)])
@on_a_loop
async def test_a_call_names_a_limited_number_of_tasks(operation: str, most: int) -> None:
    """API reference: "A list of up to 10 task IDs" to update, "up to 100" to read."""
    case = ServiceCase()
    more = {"protectionEnabled": True} if operation == "UpdateTaskProtection" else {}
    names = [f"{number:032x}" for number in range(most + 1)]
    assert most == len(case.api(operation, cluster="default", tasks=names[:most], **more)["failures"])
    for tasks in (names, []):
        with pytest.raises(ApiError) as refusal:
            case.api(operation, cluster="default", tasks=tasks, **more)
        assert "InvalidParameterException" == refusal.value.name
