"""boto3's `ecs` client against our server, with real processes.

Sources are sections of `aws-facts.md`, or pages of the ECS developer guide and API reference, by title.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from trueup.local.aws import client
from trueup.local.ecs import Ecs, Image, KnownImages, Options, serve
from trueup.local.faults import Faults, served

SECONDS = 20.0
DIGEST = "sha256:" + "d" * 64
IMAGE = f"registry.example/shell@{DIGEST}"
NETWORK = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
SLEEP = "exec sleep 60"
STUBBORN = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")


@dataclass
class Stack:
    """A server that runs shell scripts as containers, and a client of it."""

    ecs: Ecs
    events: list[dict[str, Any]] = field(default_factory=list)
    faults: Faults | None = None

    def __post_init__(self) -> None:
        self.api = client("ecs", self.ecs.endpoint, config=Config(retries={"total_max_attempts": 1}))

    def register(self, family: str, **container: Any) -> str:
        made = self.api.register_task_definition(
            family=family,
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            containerDefinitions=[{"name": "main", "image": IMAGE, **container}],
        )
        return str(made["taskDefinition"]["taskDefinitionArn"])

    def run(self, script: str, family: str = "shell", **call: Any) -> str:
        override = {"containerOverrides": [{"name": "main", "command": [script]}]}
        answer = self.api.run_task(
            taskDefinition=family, overrides=override, networkConfiguration=NETWORK, **call
        )
        return str(answer["tasks"][0]["taskArn"])

    def task(self, arn: str) -> dict[str, Any]:
        return dict(self.api.describe_tasks(tasks=[arn], include=["TAGS"])["tasks"][0])

    def until(self, arn: str, status: str) -> dict[str, Any]:
        wait_until(lambda: self.task(arn)["lastStatus"] == status)
        return self.task(arn)

    def until_it_says(self, arn: str, word: str) -> None:
        wait_until(lambda: word in self.ecs.log(arn))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def images() -> KnownImages:
    return KnownImages({DIGEST: Image(("/bin/sh", "-c"), Path("/"), ("true",))})


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    events: list[dict[str, Any]] = []
    with (
        served() as faults,
        serve(Options(images=images(), sink=events.append, faults=faults.launches)) as ecs,
    ):
        made = Stack(ecs, events, faults)
        made.register("shell", stopTimeout=1)
        yield made


def refused(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ClientError) as refusal:
        call()
    return refusal.value.response["Error"]["Code"], refusal.value.response["Error"]["Message"]


@pytest.mark.parametrize("code", [0, 3])
def test_a_task_stops_with_the_exit_code_of_its_container(stack: Stack, code: int) -> None:
    """Section 2.4: a real failure document."""
    task = stack.until(stack.run(f"exit {code}"), "STOPPED")
    assert (code, "EssentialContainerExited") == (task["containers"][0]["exitCode"], task["stopCode"])
    assert "Essential container in task exited" == task["stoppedReason"]
    assert task["createdAt"] <= task["startedAt"] <= task["stoppingAt"] <= task["stoppedAt"]


def test_run_task_answers_at_once_with_a_task_in_provisioning(stack: Stack) -> None:
    """Amazon ECS task lifecycle; API reference, RunTask."""
    answer = stack.api.run_task(taskDefinition="shell", count=3, networkConfiguration=NETWORK)
    assert ["PROVISIONING"] * 3 == [task["lastStatus"] for task in answer["tasks"]]
    assert [] == answer["failures"]


def test_stop_task_sends_sigterm_and_tells_who_did_it(stack: Stack) -> None:
    """Section 3, row Stop; API reference, StopTask."""
    arn = stack.run("trap 'exit 75' TERM; echo ready; while :; do sleep 0.05; done")
    stack.until_it_says(arn, "ready")
    told = stack.api.stop_task(task=arn, reason="lunch")["task"]
    assert ("RUNNING", "STOPPED") == (told["lastStatus"], told["desiredStatus"])
    task = stack.until(arn, "STOPPED")
    assert (75, "UserInitiated", "lunch") == (
        task["containers"][0]["exitCode"],
        task["stopCode"],
        task["stoppedReason"],
    )


def test_who_ignores_sigterm_gets_sigkill_after_stop_timeout(stack: Stack) -> None:
    """Section 3, row Stop: `stopTimeout` is 1 s here."""
    arn = stack.run(STUBBORN)
    stack.until_it_says(arn, "deaf")
    stack.api.stop_task(task=arn)
    task = stack.until(arn, "STOPPED")
    assert 137 == task["containers"][0]["exitCode"]
    assert 0.9 < (task["stoppedAt"] - task["stoppingAt"]).total_seconds() < SECONDS


def test_an_unknown_image_cannot_be_pulled(stack: Stack) -> None:
    """Section 2.4, row "Image pull fails"; CannotPullContainer task errors."""
    stack.register("lost", image=f"registry.example/lost@sha256:{'0' * 64}")
    task = stack.until(stack.run("true", "lost"), "STOPPED")
    assert ("TaskFailedToStart", False) == (task["stopCode"], "exitCode" in task["containers"][0])
    assert task["stoppedReason"].startswith("CannotPullContainerError: ")
    assert task["containers"][0]["reason"] == task["stoppedReason"]


def test_a_program_that_is_not_there_cannot_be_started(stack: Stack) -> None:
    """CannotStartContainerError in "Stopped tasks error codes"."""
    stack.register("empty", entryPoint=["/no/such/program"])
    task = stack.until(stack.run("true", "empty"), "STOPPED")
    assert task["stoppedReason"].startswith("CannotStartContainerError: FileNotFoundError")


def test_the_same_client_token_is_the_same_task_or_a_conflict(stack: Stack) -> None:
    """Section 3, row clientToken."""
    first = stack.run("true", clientToken="once")
    assert first == stack.run("true", clientToken="once")
    with pytest.raises(stack.api.exceptions.ConflictException) as conflict:
        stack.run("false", clientToken="once")
    assert [first] == conflict.value.response["resourceIds"]


def test_overrides_that_are_too_long_are_refused(stack: Stack) -> None:
    """Section 3, row Overrides."""
    assert ("InvalidParameterException", "Container Overrides length must be at most 8192") == refused(
        lambda: stack.run("x" * 8192)
    )


def test_a_task_learns_from_its_metadata_endpoint_who_it_is(stack: Stack) -> None:
    """Section 3, row Metadata; Amazon ECS task metadata v4 JSON response for tasks on Fargate."""
    read = "import os, urllib.request as u; print(u.urlopen(os.environ['ECS_CONTAINER_METADATA_URI_V4']"
    program = f"{read}+'/task').read().decode())"
    arn = stack.run(f'exec {sys.executable} -c "{program}"')
    stack.until(arn, "STOPPED")
    told = json.loads(stack.ecs.log(arn))
    assert (arn, "shell", "1", "RUNNING") == (
        told["TaskARN"],
        told["Family"],
        told["Revision"],
        told["KnownStatus"],
    )
    assert "arn:aws:ecs:us-east-1:000000000000:cluster/default" == told["Cluster"]
    assert {"CPU": 0.25, "Memory": 512} == told["Limits"]
    assert (DIGEST, IMAGE) == (told["Containers"][0]["ImageID"], told["Containers"][0]["Image"])


def test_describe_tasks_tells_unknown_tasks_as_missing(stack: Stack) -> None:
    """Section 3, rows Consistency and Stopped tasks visible."""
    arn = stack.run("true")
    answer = stack.api.describe_tasks(tasks=[arn.rpartition("/")[2], "f" * 32])
    assert [arn] == [task["taskArn"] for task in answer["tasks"]]
    missing = "arn:aws:ecs:us-east-1:000000000000:task/default/" + "f" * 32
    assert [{"arn": missing, "reason": "MISSING"}] == answer["failures"]


def test_list_tasks_filters_and_pages(stack: Stack) -> None:
    """Section 3, row startedBy; aws/aws-sdk-go-v2#1893."""
    stack.api.create_cluster(clusterName="list")
    stack.register("listed", stopTimeout=0)
    arns = [stack.run(SLEEP, "listed", cluster="list", startedBy=name) for name in ("a", "a", "b")]

    def listed(**filters: Any) -> list[str]:
        pages = stack.api.get_paginator("list_tasks").paginate(
            cluster="list", PaginationConfig={"PageSize": 2}, **filters
        )
        return [arn for page in pages for arn in page["taskArns"]]

    assert arns == listed() == listed(family="listed")
    assert arns[:2] == listed(startedBy="a")
    assert [] == listed(family="shell")
    stack.api.stop_task(cluster="list", task=arns[0])
    assert (arns[:1], arns[1:]) == (listed(desiredStatus="STOPPED"), listed())
    assert ("InvalidParameterException", "cannot specify startedBy with other arguments") == refused(
        lambda: listed(startedBy="a", family="listed")
    )
    for arn in arns[1:]:
        stack.api.stop_task(cluster="list", task=arn)


def test_tags_group_and_started_by_are_the_tasks(stack: Stack) -> None:
    """Section 3, row tags, group; API reference, TagResource."""
    arn = stack.run("true", group="nightly", startedBy="me", tags=[{"key": "run", "value": "1"}])
    stack.api.tag_resource(resourceArn=arn, tags=[{"key": "slice", "value": "2"}])
    stack.api.untag_resource(resourceArn=arn, tagKeys=["run"])
    task = stack.task(arn)
    assert ("nightly", "me", [{"key": "slice", "value": "2"}]) == (
        task["group"],
        task["startedBy"],
        task["tags"],
    )
    assert task["tags"] == stack.api.list_tags_for_resource(resourceArn=arn)["tags"]
    assert [] == stack.api.describe_tasks(tasks=[arn])["tasks"][0]["tags"]


def test_revisions_count_up_and_a_deregistered_one_stays_described(stack: Stack) -> None:
    """API reference, RegisterTaskDefinition and DeregisterTaskDefinition."""
    arns = [stack.register("counted") for _ in range(3)]
    stack.api.deregister_task_definition(taskDefinition="counted:3")
    listed = stack.api.list_task_definitions
    assert arns[:2] == listed(familyPrefix="counted")["taskDefinitionArns"]
    assert arns[1::-1] == listed(familyPrefix="counted", sort="DESC")["taskDefinitionArns"]
    assert arns[2:] == listed(familyPrefix="counted", status="INACTIVE")["taskDefinitionArns"]
    described = stack.api.describe_task_definition
    assert "INACTIVE" == described(taskDefinition=arns[2])["taskDefinition"]["status"]
    assert 2 == described(taskDefinition="counted")["taskDefinition"]["revision"]
    assert arns[2].replace(":3", ":4") == stack.register("counted")


def test_clusters_are_created_once_and_described(stack: Stack) -> None:
    """API reference, CreateCluster and DescribeClusters."""
    made = [stack.api.create_cluster(clusterName="twice")["cluster"]["clusterArn"] for _ in range(2)]
    answer = stack.api.describe_clusters(clusters=["twice", "never"])
    assert made == [answer["clusters"][0]["clusterArn"]] * 2
    assert ["MISSING"] == [failure["reason"] for failure in answer["failures"]]
    assert made[0] in stack.api.list_clusters()["clusterArns"]


def test_what_is_not_implemented_is_refused_with_what_is(stack: Stack) -> None:
    code, words = refused(lambda: stack.api.create_task_set(cluster="c", service="s", taskDefinition="shell"))
    assert "UnsupportedFeatureException" == code
    assert words.startswith("ECS operation CreateTaskSet is not implemented in the local stack. Supported: ")


def test_every_change_of_state_is_an_event(stack: Stack) -> None:
    """Amazon ECS task state change events."""
    arn = stack.run("exit 3")
    stack.until(arn, "STOPPED")
    events = [event for event in stack.events if event["resources"] == [arn]]
    assert {("aws.ecs", "ECS Task State Change")} == {(e["source"], e["detail-type"]) for e in events}
    last = events[-1]["detail"]
    assert ("STOPPED", 3, 6) == (last["lastStatus"], last["containers"][0]["exitCode"], last["version"])
    assert last["stoppedAt"].endswith("Z")


def admin(method: str, url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - our own server
        return json.load(answer)


def test_faults_are_given_over_http(stack: Stack) -> None:
    stack.register("doomed")
    assert stack.faults is not None
    url = stack.faults.address
    given = [
        {"fault": fault, "job": "doomed", "times": 1} for fault in ("throttled", "capacity-failure", "kill")
    ]
    told = admin("POST", url, {"faults": given})
    assert [{**fault, "struck": 0} for fault in given] == told["faults"]
    assert ("ThrottlingException", "Rate exceeded") == refused(lambda: stack.run(SLEEP, "doomed"))
    answer = stack.api.run_task(taskDefinition="doomed", networkConfiguration=NETWORK)
    assert answer["failures"][0]["reason"].startswith("Capacity is unavailable at this time.")
    task = stack.until(stack.run(SLEEP, "doomed"), "STOPPED")
    assert 137 == task["containers"][0]["exitCode"]
    assert [1, 1, 1] == [fault["struck"] for fault in admin("GET", url)["faults"]]
    with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
        admin("POST", url, {"faults": [{"fault": "sabotage"}]})
    assert "'sabotage'" in json.load(refusal.value)["error"]
    assert [] == admin("DELETE", url)["faults"]
    arn = stack.run("exit 0", "doomed")
    assert 0 == stack.until(arn, "STOPPED")["containers"][0]["exitCode"]


def test_a_running_task_is_frozen_thawed_interrupted_and_lost(stack: Stack) -> None:
    """Section 3, row Spot: SIGTERM, stop code SpotInterruption."""
    arn = stack.run("trap 'exit 75' TERM; while :; do echo beat; sleep 0.02; done")
    stack.until_it_says(arn, "beat")
    identifier = arn.rpartition("/")[2]
    assert admin("POST", f"{stack.ecs.endpoint}/_ecs/tasks/{identifier}/freeze")["done"]
    time.sleep(0.2)
    before = stack.ecs.log(arn)
    time.sleep(0.2)
    assert before == stack.ecs.log(arn)
    assert "RUNNING" == stack.task(arn)["lastStatus"]
    stack.ecs.harm(arn, "lose")
    assert "MISSING" == stack.api.describe_tasks(tasks=[arn])["failures"][0]["reason"]
    stack.ecs.harm(arn, "find")
    stack.ecs.harm(arn, "thaw")
    stack.ecs.harm(arn, "interrupt")
    task = stack.until(arn, "STOPPED")
    assert (75, "SpotInterruption") == (task["containers"][0]["exitCode"], task["stopCode"])
    assert not stack.ecs.harm(arn, "kill")


def test_a_task_is_made_to_end_with_an_exit_code(stack: Stack) -> None:
    arn = stack.run(SLEEP)
    stack.until(arn, "RUNNING")
    assert admin("POST", f"{stack.ecs.endpoint}/_ecs/tasks/{arn.rpartition('/')[2]}/exit?code=64")["done"]
    task = stack.until(arn, "STOPPED")
    assert (64, "EssentialContainerExited") == (task["containers"][0]["exitCode"], task["stopCode"])
    for code in ("bad", "-1", "256", "%C2%B2", "9" * 5000):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            admin("POST", f"{stack.ecs.endpoint}/_ecs/tasks/{arn.rpartition('/')[2]}/exit?code={code}")


@ON_LINUX
def test_a_container_ends_with_its_first_process(stack: Stack) -> None:
    """As PID namespaces have it: whoever is left, in a session of its own too, is killed."""
    arn = stack.run("setsid sleep 61 & sleep 62 & echo $$; sleep 0.2")
    stack.until(arn, "STOPPED")
    own = psutil.Process().children(recursive=True)
    assert [] == [process for process in own if process.cmdline()[:1] == ["sleep"]]


def test_a_definition_of_another_ecs_is_taken_over_with_its_revision(stack: Stack) -> None:
    described = stack.api.describe_task_definition(taskDefinition="shell")["taskDefinition"]
    arn = stack.ecs.take_over({**described, "family": "taken", "revision": 12})
    assert arn.endswith("task-definition/taken:12")
    assert arn == stack.task(stack.run("true", "taken"))["taskDefinitionArn"]
    assert arn.replace(":12", ":13") == stack.register("taken")


def test_a_module_that_is_warm_starts_by_a_fork_and_runs_as_ever(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    program = "import beside, os, sys\nif __name__ == '__main__':\n"
    program += "    print(beside.WORD, sys.argv[1:], os.environ['A'], os.getcwd())\n    sys.exit(3)\n"
    (tmp_path / "warmed.py").write_text(program)
    known = KnownImages({DIGEST: Image((sys.executable, "-m", "warmed"), tmp_path, ("x",), {"A": "1"})})
    with serve(Options(images=known, logs=tmp_path / "logs")) as ecs:
        cold = run_warmed(Stack(ecs))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        with serve(Options(images=known, logs=tmp_path / "logs", warm=("warmed",))) as ecs:
            warm = run_warmed(Stack(ecs))
    assert (3, f"beside ['x'] 1 {tmp_path}\n") == cold == warm


def test_a_task_that_says_nowhere_what_to_run_does_not_start(tmp_path: Path) -> None:
    """Docker's words for an image without ENTRYPOINT and CMD, of which the definition names none either."""
    known = KnownImages({DIGEST: Image((), tmp_path)})
    with serve(Options(images=known, logs=tmp_path / "logs")) as ecs:
        stack = Stack(ecs)
        stack.register("nothing")
        answer = stack.api.run_task(taskDefinition="nothing", networkConfiguration=NETWORK)
        task = stack.until(answer["tasks"][0]["taskArn"], "STOPPED")
    words = "CannotCreateContainerError: Error response from daemon: no command specified"
    assert ("TaskFailedToStart", words) == (task["stopCode"], task["stoppedReason"])


def run_warmed(stack: Stack) -> tuple[int, str]:
    stack.register("warmed")
    answer = stack.api.run_task(taskDefinition="warmed", networkConfiguration=NETWORK)
    arn = answer["tasks"][0]["taskArn"]
    task = stack.until(arn, "STOPPED")
    return task["containers"][0]["exitCode"], stack.ecs.log(arn)
