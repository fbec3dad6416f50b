"""What a task asks the agent beside it: a queue worker protects itself, and learns what it is and uses.

Sources: developer guide, "Amazon ECS task scale-in protection endpoint" and "Task metadata endpoint version 4
for tasks on Fargate"; aws/amazon-ecs-agent (its answers, and the pull requests named below).
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from trueup.local.ecs import Options, serve

from .test_ecs_api import IMAGE, NETWORK, ON_LINUX, SECONDS, SLEEP, Stack, images, wait_until

PROTECTION = "task-protection/v1/state"
ROLE = "arn:aws:iam::000000000000:role/worker"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with serve(Options(images=images(), pace=0.02)) as ecs:
        made = Stack(ecs)
        yield made


def register(stack: Stack, family: str, script: str, **more: Any) -> str:
    main = {"name": "main", "image": IMAGE, "command": [script], "stopTimeout": 1}
    sizes = {"networkMode": "awsvpc", "cpu": "256", "memory": "512"}
    made = stack.api.register_task_definition(family=family, containerDefinitions=[main], **sizes, **more)
    return str(made["taskDefinition"]["taskDefinitionArn"])


def serve_work(stack: Stack, name: str, desired: int = 1, **more: Any) -> list[str]:
    """A service of sleeping tasks; gives their ARNs once they run."""
    register(stack, name, SLEEP, **{"taskRoleArn": ROLE, **more})
    stack.api.create_service(
        serviceName=name, taskDefinition=name, desiredCount=desired, networkConfiguration=NETWORK
    )
    wait_until(lambda: running(stack, name) == desired)
    return list(stack.api.list_tasks(family=name)["taskArns"])


def running(stack: Stack, name: str) -> int:
    return int(stack.api.describe_services(services=[name])["services"][0]["runningCount"])


def agent(stack: Stack, task: str) -> str:
    """What its ECS_AGENT_URI is."""
    return f"{stack.ecs.endpoint}/api/{stack.task(task)['containers'][0]['runtimeId']}"


def ask(url: str, body: object = None, method: str = "GET") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - our own server
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_worker_protects_itself_by_the_agent(stack: Stack) -> None:
    """The page's examples: PUT with and without minutes, GET; times are whole seconds in UTC."""
    (task,) = serve_work(stack, "busy")
    url = f"{agent(stack, task)}/{PROTECTION}"
    free = {"ExpirationDate": None, "ProtectionEnabled": False, "TaskArn": task}
    assert (200, {"protection": free}) == ask(url)
    status, told = ask(url, {"ProtectionEnabled": True, "ExpiresInMinutes": 60}, "PUT")
    assert (200, True, task) == (
        status,
        told["protection"]["ProtectionEnabled"],
        told["protection"]["TaskArn"],
    )
    assert told["protection"]["ExpirationDate"].endswith("Z")
    assert (200, told) == ask(url)
    (protected,) = stack.api.get_task_protection(cluster="default", tasks=[task])["protectedTasks"]
    assert protected["protectionEnabled"]
    assert (200, {"protection": free}) == ask(url, {"ProtectionEnabled": False}, "PUT")


def test_a_standalone_task_is_refused_under_200(stack: Stack) -> None:
    """aws-facts section 3, row Task protection API; the page: "failure" in an answer that is a success."""
    register(stack, "alone", SLEEP, taskRoleArn=ROLE)
    (told,) = stack.api.run_task(taskDefinition="alone", networkConfiguration=NETWORK)["tasks"]
    task = told["taskArn"]
    failure = {"failure": {"Arn": task, "Detail": None, "Reason": "TASK_NOT_VALID"}}
    url = f"{agent(stack, task)}/{PROTECTION}"
    assert (200, failure) == ask(url, {"ProtectionEnabled": True}, "PUT") == ask(url)


def test_a_service_with_too_many_protected_tasks_is_refused_under_200(stack: Stack) -> None:
    """The page on protection: DEPLOYMENT_BLOCKED; aws-containers/ecs-task-protection-examples#3."""
    first, second = serve_work(stack, "crowd", 2)
    urls = [f"{agent(stack, task)}/{PROTECTION}" for task in (first, second)]
    for url in urls:
        assert "protection" in ask(url, {"ProtectionEnabled": True}, "PUT")[1]
    stack.api.update_service(service="crowd", desiredCount=1)
    status, told = ask(urls[1], {"ProtectionEnabled": True}, "PUT")
    assert (200, "DEPLOYMENT_BLOCKED") == (status, told["failure"]["Reason"])
    assert 2 == running(stack, "crowd")
    ask(urls[0], {"ProtectionEnabled": False}, "PUT")
    wait_until(lambda: running(stack, "crowd") == 1)
    stopped = stack.task(first)
    assert ("ServiceSchedulerInitiated", "STOPPED") == (stopped["stopCode"], stopped["desiredStatus"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "UpdateTaskProtection: failed to decode request"),
        (b"\xff", "UpdateTaskProtection: failed to decode request"),
        (b"[" * 100_000, "UpdateTaskProtection: failed to decode request"),
        ({"ProtectionEnabled": True, "Forever": True}, "UpdateTaskProtection: failed to decode request"),
        ({"ProtectionEnabled": "yes"}, "UpdateTaskProtection: failed to decode request"),
        ({"ExpiresInMinutes": 5}, "Invalid request: does not contain 'ProtectionEnabled' field"),
        (
            {"ProtectionEnabled": True, "ExpiresInMinutes": 0},
            "expiresInMinutes must be between 1 and 2880",
        ),
    ],
)
def test_a_request_that_is_none_is_a_400(stack: Stack, body: object, message: str) -> None:
    """aws/amazon-ecs-agent, handlers of task protection; aws/amazon-ecs-agent#3411."""
    names = stack.api.list_services()["serviceArns"]
    (task,) = (
        stack.api.list_tasks(family="asked")["taskArns"]
        if any(name.endswith("/asked") for name in names)
        else serve_work(stack, "asked")
    )
    status, told = ask(f"{agent(stack, task)}/{PROTECTION}", body, "PUT")
    assert (400, "InvalidParameterException", message) == (
        status,
        told["error"]["Code"],
        told["error"]["Message"],
    )


def test_a_task_without_a_role_may_not_ask(stack: Stack) -> None:
    """aws/amazon-ecs-agent#3411: the agent asks ECS in the name of the task's role."""
    register(stack, "roleless", SLEEP)
    (told,) = stack.api.run_task(taskDefinition="roleless", networkConfiguration=NETWORK)["tasks"]
    status, answer = ask(f"{agent(stack, told['taskArn'])}/{PROTECTION}")
    assert (403, "AccessDeniedException") == (status, answer["error"]["Code"])


def test_an_unknown_container_is_not_found(stack: Stack) -> None:
    """aws/amazon-ecs-agent#3748: the words of Fargate's agent."""
    told = {
        "error": {"Code": "ResourceNotFoundException", "Message": "Failed to find a task for the request"}
    }
    assert (404, told) == ask(f"{stack.ecs.endpoint}/api/bad/{PROTECTION}")


def test_the_agent_is_where_the_container_is_told(stack: Stack) -> None:
    """The page: "automatically injects the ECS_AGENT_URI environment variable"."""
    register(stack, "env", "echo $ECS_AGENT_URI $ECS_CONTAINER_METADATA_URI_V4")
    (told,) = stack.api.run_task(taskDefinition="env", networkConfiguration=NETWORK)["tasks"]
    stack.until(told["taskArn"], "STOPPED")
    agent_uri, metadata_uri = stack.ecs.log(told["taskArn"]).split()
    assert agent(stack, told["taskArn"]) == agent_uri
    assert metadata_uri.startswith(f"{stack.ecs.endpoint}/v4/")


def test_metadata_tell_the_service_and_the_tags(stack: Stack) -> None:
    """Task metadata v4: "ServiceName"; `/taskWithTags` adds TaskTags."""
    register(stack, "tagged", SLEEP)
    stack.api.create_service(
        serviceName="tagged",
        taskDefinition="tagged",
        desiredCount=1,
        networkConfiguration=NETWORK,
        tags=[{"key": "team", "value": "data"}],
        propagateTags="SERVICE",
    )
    wait_until(lambda: running(stack, "tagged") == 1)
    (task,) = stack.api.list_tasks(family="tagged")["taskArns"]
    metadata = agent(stack, task).replace("/api/", "/v4/")
    _, told = ask(f"{metadata}/taskWithTags")
    assert ("tagged", {"team": "data"}, task) == (told["ServiceName"], told["TaskTags"], told["TaskARN"])
    assert "TaskTags" not in ask(f"{metadata}/task")[1]


@ON_LINUX
def test_statistics_are_docker_s_and_null_for_what_does_not_run(stack: Stack) -> None:
    """Task metadata v4: `/stats` and `/task/stats`; Docker's API, Get container stats."""
    work = f"exec {sys.executable} -c \"print('up', flush=True)\nwhile True: pass\""
    register(stack, "stats", work)
    (told,) = stack.api.run_task(taskDefinition="stats", networkConfiguration=NETWORK)["tasks"]
    stack.until_it_says(told["taskArn"], "up")
    metadata = agent(stack, told["taskArn"]).replace("/api/", "/v4/")
    wait_until(lambda: ask(f"{metadata}/stats")[1]["cpu_stats"]["cpu_usage"]["total_usage"] > 0)
    container = metadata.rpartition("/")[2]
    of_task = ask(f"{metadata}/task/stats")[1][container]
    assert 0 < of_task["memory_stats"]["usage"] < of_task["memory_stats"]["limit"] == 512 * 1024 * 1024
    stack.api.stop_task(task=told["taskArn"])
    stack.until(told["taskArn"], "STOPPED")
    assert (200, None) == ask(f"{metadata}/stats")
