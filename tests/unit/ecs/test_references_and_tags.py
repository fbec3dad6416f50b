"""What names a task or a service, and what a tag may be: refused in AWS's words where they are known.

Sources are threads in which people met the words, and shapes of [botocore ecs].
"""

from __future__ import annotations

from typing import Any

import pytest

from trueup.local.ecs.errors import ApiError

from .ecs_cases import on_a_loop
from .service_cases import ServiceCase

UNKNOWN = "f" * 32
CLUSTER = "arn:aws:ecs:us-east-1:000000000000:cluster/default"


def refused(case: ServiceCase, operation: str, **body: Any) -> tuple[str, str]:
    """Name and message of a refusal."""
    with pytest.raises(ApiError) as refusal:
        case.api(operation, **body)
    return refusal.value.name, refusal.value.message


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("short", "taskId length should be one of [32,36]"),
        ("f" * 33, "taskId length should be one of [32,36]"),
        ("arn:aws:ecs:us-east-1:000000000000:task/default/", "taskId length should be one of [32,36]"),
        ("arn:aws:ecs:us-east-1:000000000000:service/default/work", "Task Identifier is invalid"),
        (
            f"arn:aws:ecs:us-east-1:000000000000:task/other/{UNKNOWN}",
            "Invalid identifier: Identifier is for cluster other. Your cluster is default",
        ),
    ],
)
@pytest.mark.parametrize("operation", ["StopTask", "DescribeTasks", "GetTaskProtection"])
@on_a_loop
async def test_what_is_no_task_is_refused(operation: str, task: str, words: str) -> None:
    """aws/aws-cli#10057, sil-org/ecs-deploy#43, aws/aws-sdk-js#1466."""
    named = {"task": task} if operation == "StopTask" else {"tasks": [task]}
    assert ("InvalidParameterException", words) == refused(
        ServiceCase(), operation, cluster="default", **named
    )


@on_a_loop
async def test_a_task_that_nobody_knows_is_missing_or_not_found() -> None:
    """Of both lengths that ids have had; the words of StopTask: griptape-ai/griptape-nodes-engine#1454."""
    case = ServiceCase()
    ids = [UNKNOWN, "05f37b7d-ad14-4a48-9265-328139e71f3b"]
    answer = case.api("DescribeTasks", tasks=ids)
    assert ["MISSING", "MISSING"] == [failure["reason"] for failure in answer["failures"]]
    for identifier in ids:
        words = "The referenced task was not found."
        assert ("InvalidParameterException", words) == refused(case, "StopTask", task=identifier)


@on_a_loop
async def test_tasks_of_a_service_that_is_not_there_cannot_be_listed() -> None:
    """turbot/steampipe-plugin-aws#1415."""
    case = ServiceCase()
    await case.create(1)
    assert 1 == len(case.api("ListTasks", serviceName="work")["taskArns"])
    expected = ("ServiceNotFoundException", "Service not found.")
    assert expected == refused(case, "ListTasks", serviceName="nothing")
    await case.fargate.close()


@pytest.mark.parametrize("token", ["", "a" * 37, "a b", "é"])
@on_a_loop
async def test_the_token_of_a_service_has_36_characters(token: str) -> None:
    """CreateService, clientToken: "Up to 36 ASCII characters in the range of 33-126 (inclusive)"."""
    body = {"serviceName": "work", "taskDefinition": "job", "desiredCount": 0, "clientToken": token}
    name, words = refused(ServiceCase(), "CreateService", **body)
    assert ("InvalidParameterException", True) == (name, words.startswith("Invalid clientToken: up to 36"))


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ([{"value": "x"}], "tags[0].key can not be blank."),
        ([{"key": "a" * 129}], "tags[0].key can have at most 128 characters."),
        ([{"key": "a", "value": "b" * 257}], "tags[0].value can have at most 256 characters."),
        ([{"key": "AWS:mine"}], "tags[0].key cannot begin with aws:"),
        ([{"key": "a", "value": "aws:b"}], "tags[0].value cannot begin with aws:"),
        ([{"key": str(number)} for number in range(51)], "tags can have at most 50 items."),
    ],
)
@pytest.mark.parametrize("operation", ["RunTask", "CreateService", "CreateCluster", "TagResource"])
@on_a_loop
async def test_tags_keep_within_their_restrictions(
    operation: str, tags: list[dict[str, str]], words: str
) -> None:
    """Tag: lengths, "Do not use aws:, AWS: … as a prefix for either keys or values"; Tags: at most 50."""
    body = {
        "RunTask": {"taskDefinition": "job"},
        "CreateService": {"serviceName": "work", "taskDefinition": "job", "desiredCount": 0},
        "TagResource": {"resourceArn": CLUSTER},
    }.get(operation, {})
    name, message = refused(ServiceCase(), operation, **body, tags=tags)
    assert ("InvalidParameterException", True) == (name, message.startswith(words))


@on_a_loop
async def test_tags_of_aws_stay_and_do_not_count() -> None:
    """Tag: "You cannot edit or delete tag keys or values with this prefix", which "do not count"."""
    case = ServiceCase()
    task = await case.run(enableECSManagedTags=True, tags=[{"key": str(number)} for number in range(49)])
    case.api("TagResource", resourceArn=task.arn, tags=[{"key": "49"}])
    assert (
        "A resource has at most 50 tags."
        == refused(case, "TagResource", resourceArn=task.arn, tags=[{"key": "50"}])[1]
    )
    _, words = refused(case, "UntagResource", resourceArn=task.arn, tagKeys=["0", "aws:ecs:clusterName"])
    assert words.startswith("The tag aws:ecs:clusterName is AWS's own")
    assert 51 == len(case.api("ListTagsForResource", resourceArn=task.arn)["tags"])
    await case.fargate.close()
