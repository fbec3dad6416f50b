"""Tasks as containers: boto3's `ecs` client, our server, and an engine that speaks Docker's API.

There is no Docker on a machine that runs these tests: the engine is `fake_engine.py`, whose containers are
processes. Sources are operations of "Docker Engine API", and pages of the ECS developer guide, by title.
"""

from __future__ import annotations

import io
import os
import socket
import socketserver
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trueup.errors import LocalStackError
from trueup.local.ecs import Build, Containers, KnownImages, Options, serve
from trueup.local.ecs.containers import OWNER, owner_label

from .fake_engine import FakeContainer, FakeEngine, engine_on, image
from .test_ecs_api import DIGEST, IMAGE, ON_LINUX, SLEEP, Stack, wait_until

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="the engine listens on such a socket")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    with engine_on(tmp_path / "engine.sock") as made:
        made.images[IMAGE] = image(DIGEST)
        yield made


@pytest.fixture
def stack(engine: FakeEngine, tmp_path: Path) -> Iterator[Stack]:
    with serving(tmp_path) as made:
        yield made


def options(tmp_path: Path, **builds: Build) -> Options:
    known = {f"local/{name}": build for name, build in builds.items()}
    containers = Containers(address=f"unix://{tmp_path}/engine.sock", builds=known)
    return Options(images=KnownImages(), containers=containers, environment={"STACK": "1"})


class serving:  # noqa: N801 - a context manager
    """A server whose tasks are containers of the engine of this folder."""

    def __init__(self, tmp_path: Path, **builds: Build) -> None:
        self._serving = serve(options(tmp_path, **builds))

    def __enter__(self) -> Stack:
        stack = Stack(self._serving.__enter__())
        stack.register("shell", stopTimeout=1)
        return stack

    def __exit__(self, *what: object) -> None:
        self._serving.__exit__(None, None, None)


def only(engine: FakeEngine) -> FakeContainer:
    (container,) = engine.containers.values()
    return container


def test_a_task_is_a_container_with_its_limits_and_its_environment(engine: FakeEngine, stack: Stack) -> None:
    """Create a container: Env, Cmd, HostConfig.NanoCpus and Memory; Wait for a container: StatusCode."""
    arn = stack.run("echo $STACK $AWS_EXECUTION_ENV $ECS_AGENT_URI; exit 3")
    task = stack.until(arn, "STOPPED")
    assert (3, "EssentialContainerExited") == (task["containers"][0]["exitCode"], task["stopCode"])
    assert DIGEST == task["containers"][0]["imageDigest"]
    stack_variable, execution, agent = stack.ecs.log(arn).split()
    assert ("1", "AWS_ECS_FARGATE") == (stack_variable, execution)
    assert agent.startswith(stack.ecs.endpoint)
    (gone,) = engine.removed
    assert {} == engine.containers
    memory = 512 * 1024 * 1024
    limits = {"NanoCpus": 250_000_000, "Memory": memory, "MemorySwap": memory}
    assert {"NetworkMode": "host", **limits} == gone.wanted["HostConfig"]
    labels = gone.wanted["Labels"]
    assert (owner_label(), arn.rpartition("/")[2]) == (labels[OWNER], labels["trueup.task"])
    assert arn == labels["com.amazonaws.ecs.task-arn"]
    assert not any(pair.startswith("PATH=") for pair in gone.wanted["Env"])


def test_a_container_has_its_own_labels_and_limit(engine: FakeEngine, stack: Stack) -> None:
    """Create a container: Labels and Memory; [botocore ecs] ContainerDefinition, dockerLabels and memory."""
    labels = {"com.example": "mine", "com.amazonaws.ecs.container-name": "forged"}
    stack.register("labelled", memory=256, memoryReservation=128, dockerLabels=labels)
    told = stack.until(stack.run("true", "labelled"), "STOPPED")["containers"][0]
    assert ("256", "128") == (told["memory"], told["memoryReservation"])
    (gone,) = engine.removed
    assert 256 * 1024 * 1024 == gone.wanted["HostConfig"]["Memory"]
    given = gone.wanted["Labels"]
    assert ("mine", "main") == (given["com.example"], given["com.amazonaws.ecs.container-name"])


def test_a_container_whose_creation_is_never_answered_is_removed(engine: FakeEngine, tmp_path: Path) -> None:
    """Create a container: name, by which it can be removed before its id is known."""
    engine.answers_creation.clear()
    with serving(tmp_path) as stack:
        stack.run("true")
        wait_until(lambda: bool(engine.containers))
    assert {} == engine.containers


def test_the_name_of_an_image_cannot_end_the_head_of_a_request(engine: FakeEngine, stack: Stack) -> None:
    """Inspect an image: its name is a part of the path."""
    name = "lost HTTP/1.1\r\nX: é/?#"
    stack.register("strange", image=name)
    task = stack.until(stack.run("true", "strange"), "STOPPED")
    assert f"manifest for {name} not found" in task["stoppedReason"]


def test_what_the_definition_does_not_name_is_the_images_own(engine: FakeEngine, stack: Stack) -> None:
    """Create a container: an Entrypoint or Cmd that is not given is that of the image."""
    stack.register("plain")
    override = {"containerOverrides": [{"name": "main"}]}
    network = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
    told = stack.api.run_task(taskDefinition="plain", overrides=override, networkConfiguration=network)
    stack.until(told["tasks"][0]["taskArn"], "STOPPED")
    assert {"Entrypoint", "Cmd"}.isdisjoint(engine.removed[0].wanted)


def test_stopping_sends_the_signal_of_the_image_then_sigkill(engine: FakeEngine, stack: Stack) -> None:
    """Kill a container: signal; image configuration, StopSignal. Section 3, row Stop: stopTimeout is 1 s."""
    engine.images[IMAGE] = image(DIGEST, StopSignal="SIGUSR1")
    arn = stack.run("trap 'echo heard' USR1; echo up; while :; do sleep 0.05; done")
    stack.until_it_says(arn, "up")
    stack.api.stop_task(task=arn, reason="lunch")
    task = stack.until(arn, "STOPPED")
    assert (137, "lunch") == (task["containers"][0]["exitCode"], task["stoppedReason"])
    assert "heard" in stack.ecs.log(arn)
    assert ["SIGUSR1", "SIGKILL"] == engine.removed[0].told


def test_a_frozen_container_is_thawed_to_be_killed(engine: FakeEngine, stack: Stack) -> None:
    """Pause, Unpause, and Kill a container, in the order in which they were asked for."""
    arn = stack.run(f"echo up; {SLEEP}")
    stack.until_it_says(arn, "up")
    stack.ecs.harm(arn, "freeze")
    stack.ecs.harm(arn, "kill")
    assert 137 == stack.until(arn, "STOPPED")["containers"][0]["exitCode"]
    assert ["SIGSTOP", "SIGKILL"] == engine.removed[0].told


def test_an_engine_that_kills_nobody_who_is_frozen_is_asked_again(engine: FakeEngine, stack: Stack) -> None:
    """Kill a container: 409 where its state does not allow it."""
    engine.kills_frozen = False
    arn = stack.run(f"echo up; {SLEEP}")
    stack.until_it_says(arn, "up")
    stack.ecs.harm(arn, "freeze")
    stack.ecs.harm(arn, "kill")
    assert 137 == stack.until(arn, "STOPPED")["containers"][0]["exitCode"]
    assert ["SIGSTOP", "SIGCONT", "SIGKILL"] == engine.removed[0].told


def test_a_frozen_container_does_not_obey_before_it_is_killed(engine: FakeEngine, stack: Stack) -> None:
    """As a process that is frozen does not; Podman 4.3 let it end with 0, when it was thawed first."""
    stack.register("obeys", stopTimeout=2)
    arn = stack.run("trap 'echo late; exit 0' TERM; echo up; while :; do sleep 0.05; done", "obeys")
    stack.until_it_says(arn, "up")
    stack.ecs.harm(arn, "freeze")
    stack.api.stop_task(task=arn)
    assert 137 == stack.until(arn, "STOPPED")["containers"][0]["exitCode"]
    assert "late" not in stack.ecs.log(arn)


def test_a_container_that_ran_out_of_memory_says_so(engine: FakeEngine, stack: Stack) -> None:
    """Inspect a container: State.OOMKilled; OutOfMemoryError task errors."""
    engine.kills_for_memory = True
    arn = stack.run(f"echo up; {SLEEP}")
    stack.until_it_says(arn, "up")
    stack.ecs.harm(arn, "kill")
    container = stack.until(arn, "STOPPED")["containers"][0]
    assert (137, "OutOfMemoryError: Container killed due to memory usage") == (
        container["exitCode"],
        container["reason"],
    )


def test_an_image_that_is_not_there_is_pulled_once(engine: FakeEngine, stack: Stack) -> None:
    """Create an image: without a tag all of them would be pulled."""
    engine.registry["registry.example/other"] = image("sha256:" + "e" * 64)
    stack.register("other", image="registry.example/other")
    arns = [stack.run("true", "other") for _ in range(3)]
    digests = {stack.until(arn, "STOPPED")["containers"][0]["imageDigest"] for arn in arns}
    assert ({"sha256:" + "e" * 64}, [("registry.example/other", "latest")]) == (digests, engine.pulls)


def test_an_image_that_cannot_be_pulled_stops_its_task(engine: FakeEngine, stack: Stack) -> None:
    """Create an image: a failure is a line under 200. CannotPullContainer task errors."""
    stack.register("lost", image="registry.example/lost:1")
    task = stack.until(stack.run("true", "lost"), "STOPPED")
    assert "TaskFailedToStart" == task["stopCode"]
    assert task["stoppedReason"].startswith("CannotPullContainerError: ")
    assert "manifest unknown" in task["stoppedReason"]
    assert {} == engine.containers


def test_a_container_that_does_not_start_is_removed(engine: FakeEngine, stack: Stack) -> None:
    """Start a container; CannotStartContainerError in "Stopped tasks error codes"."""
    engine.refuses_start = 'exec: "run": executable file not found in $PATH'
    task = stack.until(stack.run("true"), "STOPPED")
    assert f"CannotStartContainerError: {engine.refuses_start}" == task["stoppedReason"]
    assert {} == engine.containers


def test_the_image_of_a_job_is_built_of_its_dockerfile_once(engine: FakeEngine, tmp_path: Path) -> None:
    """Build an image: an archive with the Dockerfile and what it copies."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "Dockerfile").write_text("FROM scratch\n")
    build = Build("trueup/job:1", "containers/job/Dockerfile", {"containers/job": tmp_path / "job"})
    with serving(tmp_path, job=build) as stack:
        stack.register("job", image="local/job")
        for arn in [stack.run("true", "job") for _ in range(2)]:
            stack.until(arn, "STOPPED")
    ((dockerfile, archive),) = engine.builds
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        names = packed.getnames()
    assert "containers/job/Dockerfile" == dockerfile
    assert "containers/job/Dockerfile" in names
    assert {"trueup/job:1"} == {container.wanted["Image"] for container in engine.removed}


def test_nothing_is_left_of_a_server_that_ends(engine: FakeEngine, tmp_path: Path) -> None:
    """Remove a container: force."""
    with serving(tmp_path) as stack:
        arn = stack.run(f"echo up; {SLEEP}")
        stack.until_it_says(arn, "up")
        process = only(engine).process
        assert process is not None
    assert ({}, 1) == (engine.containers, len(engine.removed))
    wait_until(lambda: process.returncode is not None)


def test_what_a_dead_owner_left_is_removed_by_the_next_start(engine: FakeEngine, tmp_path: Path) -> None:
    """List containers: filters by label. Containers of those who live, and of others, stay."""
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    host = socket.gethostname()
    labels = {
        "dead": {OWNER: f"{host}:{dead.pid}:1"},
        "alive": {OWNER: owner_label()},
        "elsewhere": {OWNER: "another-host:1:1"},
        "someone": {"com.example": "1"},
    }
    for name, label in labels.items():
        engine.containers[name] = FakeContainer({"Image": IMAGE, "Labels": label, "Env": []})
    with serving(tmp_path):
        assert {"alive", "elsewhere", "someone"} == set(engine.containers)


@ON_LINUX
def test_a_process_that_has_the_number_of_a_dead_owner_is_none(engine: FakeEngine, tmp_path: Path) -> None:
    label = {OWNER: f"{socket.gethostname()}:{os.getpid()}:1"}
    engine.containers["reused"] = FakeContainer({"Image": IMAGE, "Labels": label, "Env": []})
    with serving(tmp_path):
        assert {} == engine.containers


def test_without_an_engine_it_says_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(LocalStackError, match="No container engine answers at unix://") as error,
        serve(options(tmp_path)),
    ):
        pass
    assert "DOCKER_HOST" in str(error.value)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ssh://elsewhere", "only unix:// and tcp:// are spoken here"),
        ("tcp://[", "which is no address: Invalid IPv6 URL"),
        ("tcp://127.0.0.1:99999", "which is no address: Port out of range"),
        ("tcp://127.0.0.1:docker", "which is no address: Port could not be cast"),
        (f"tcp://{'a' * 64}.example:1", "No container engine answers at tcp://a"),
    ],
)
def test_an_address_that_is_not_spoken_is_refused(address: str, why: str) -> None:
    refused = Options(images=KnownImages(), containers=Containers(address=address))
    with pytest.raises(LocalStackError, match=why), serve(refused):
        pass


@contextmanager
def answering(said: bytes) -> Iterator[str]:
    """The address of a server that says the same to each question."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(said)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


OK = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "the engine went away in the middle of an answer"),
        (b"HTTP/1.1\r\n\r\n", "what it says is no answer of HTTP: it begins with 'HTTP/1.1'"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no answer of HTTP"),
        (b"x" * 100_000, "has no end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nall\r\n", "a chunk begins with b'all"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "a chunk begins with b'-1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 100_000, "has no end"),
        (OK + b"<html>", "something other than JSON"),
        (OK + b"[" * 100_000, "something other than JSON"),
        (OK, "it does not list containers"),
        (OK + b"{}", "it does not list containers"),
        (OK + b"[null]", "it does not list containers"),
        (OK + b'[{"Labels": {}}]', "it does not list containers"),
        (b"HTTP/1.1 500 No\r\n\r\n" + b"[" * 100_000, "500: "),
    ],
)
def test_what_is_no_engine_is_told(said: bytes, why: str) -> None:
    with answering(said) as address:
        refused = Options(images=KnownImages(), containers=Containers(address=address))
        with pytest.raises(LocalStackError, match=why) as error, serve(refused):
            pass
    assert "DOCKER_HOST" in str(error.value)


def test_containers_without_labels_are_somebody_elses() -> None:
    """List containers: Labels may be null."""
    with answering(OK + b'[{"Id": "a", "Labels": null}, {"Id": "b"}]') as address:
        taken = Options(images=KnownImages(), containers=Containers(address=address))
        with serve(taken):
            pass
