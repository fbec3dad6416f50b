"""What is left of the local ECS when it is gone, however it goes: nothing."""

from __future__ import annotations

import signal
import sys

import psutil
import pytest

SECONDS = 20.0
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")

# Stands in for a local stack: serves, starts a task that hears no SIGTERM and has children, and waits.
HOLDER = """
import sys
from pathlib import Path
from trueup.local.aws import client
from trueup.local.ecs import Image, KnownImages, Options, serve

with serve(Options(images=KnownImages({"app": Image(("/bin/sh", "-c"), Path("/"))}))) as ecs:
    api = client("ecs", ecs.endpoint)
    main = {"name": "main", "image": "app", "command": [sys.argv[1]]}
    api.register_task_definition(family="a", cpu="256", memory="512", containerDefinitions=[main])
    arn = api.run_task(taskDefinition="a")["tasks"][0]["taskArn"]
    while "up" not in ecs.log(arn):
        pass
    print("up", flush=True)
    sys.stdin.read()
"""


ONE_CHILD = "trap '' TERM; sleep 60 & echo up; wait"
# The second leaves the task's group, so that nobody finds it by that.
TWO_CHILDREN = "trap '' TERM; sleep 60 & setsid sleep 60 & echo up; wait"


@pytest.mark.parametrize(
    ("how", "script"),
    [
        ("its end", ONE_CHILD),
        ("SIGKILL", ONE_CHILD),
        *(
            pytest.param(how, TWO_CHILDREN, marks=ON_LINUX)
            for how in ("its end", "SIGKILL", "SIGKILL of the nursery")
        ),
    ],
)
def test_nothing_is_left_when_the_stack_is_gone(how: str, script: str) -> None:
    with psutil.Popen([sys.executable, "-c", HOLDER, script], stdin=-1, stdout=-1, text=True) as holder:
        assert "up\n" == holder.stdout.readline()
        below = holder.children(recursive=True)
        nursery = next(process for process in below if "_nursery.py" in " ".join(process.cmdline()))
        tasks = nursery.children(recursive=True)
        # The shell and its children, which may not have become `sleep` yet.
        assert 1 + script.count("&") == len(tasks)
        if how == "SIGKILL of the nursery":
            nursery.send_signal(signal.SIGKILL)
        elif how == "SIGKILL":
            holder.send_signal(signal.SIGKILL)
        holder.stdin.close()
        assert [] == psutil.wait_procs([*tasks, nursery], timeout=SECONDS)[1]
        assert [] == psutil.wait_procs([holder], timeout=SECONDS)[1]
