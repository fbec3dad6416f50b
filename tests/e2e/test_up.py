"""`trueup up`: says where it is, and leaves nothing behind.

More seeds: `SEEDS=50 pytest tests/e2e/test_up.py -k starts`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trueup.cli import demo
from trueup.cli import up as command

from .following import follower
from .watching import TRUEUP, begin, nothing_is_left, started_by

pytestmark = pytest.mark.timeout(300)

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SEEDS = int(os.environ.get("SEEDS", "3"))

LOOK = """
import boto3
print(*(machine["name"] for machine in boto3.client("stepfunctions").list_state_machines()["stateMachines"]))
print(boto3.client("ecs").describe_task_definition(taskDefinition="trueup-flights-rows-write")
      ["taskDefinition"]["containerDefinitions"][0]["secrets"][0]["name"])
print(boto3.client("lambda").get_function(FunctionName="trueup-start")["Configuration"]["FunctionName"])
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_stack_that_is_stopped_leaves_nothing(folder: Path, number: signal.Signals, code: int) -> None:
    with begin("up", "--json") as up:
        assert up.stdout is not None
        told = json.loads(up.stdout.readline())
        assert {"trueup-start", "trueup-accept"} <= set(told["functions"])
        assert started_by(folder)
        up.send_signal(number)
    assert code == up.returncode
    assert nothing_is_left(folder, seconds=0 if number is not signal.SIGKILL else 20)


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, str]:
    """How long a start takes here and now, and what tools find that know the lines of `trueup up` alone."""
    begun = time.monotonic()
    with begin("up") as up:
        assert up.stdout is not None
        lines = []
        while not (line := up.stdout.readline()).startswith("# taskDefinitions"):
            lines.append(line)
        seconds = time.monotonic() - begun
        script = "".join(lines) + f'exec "{sys.executable}" - <<"END"\n{LOOK}\nEND\n'
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home"))}
        found = subprocess.run(
            ["/bin/sh", "-c", script], env=clean, capture_output=True, text=True, check=False
        )
        up.send_signal(signal.SIGINT)
    return seconds, found.stdout


@pytest.fixture
def start_seconds(looked: tuple[float, str]) -> float:
    """How long a start takes here and now."""
    return looked[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stack_that_is_stopped_while_it_starts_leaves_nothing(
    folder: Path, start_seconds: float, number: signal.Signals, seed: int
) -> None:
    rng = random.Random(f"{seed} {number}")
    with begin("up") as up:
        # More often early: guards, copies and initdb are begun then.
        time.sleep(rng.uniform(0, 1) ** 2 * start_seconds)
        up.send_signal(number)
    assert nothing_is_left(folder, seconds=20)


@pytest.mark.parametrize(("name", "program"), [("MiniStack", "hypercorn"), ("PostgreSQL", "bin/postgres")])
def test_a_server_that_dies_is_named_and_ends_the_stack(folder: Path, name: str, program: str) -> None:
    with begin("up", "--json", stderr=subprocess.PIPE) as up:
        assert up.stdout is not None
        assert up.stdout.readline()
        first, *_ = [one for one in started_by(folder) if any(program in word for word in one.cmdline())]
        first.kill()
        _, told = up.communicate(timeout=60)
    assert f"{name} ended with exit code 137, and the stack with it. The end of its log:" in told
    assert "Start the stack again" in told
    assert 1 == up.returncode
    assert nothing_is_left(folder)


def test_its_lines_point_every_tool_at_the_stack(looked: tuple[float, str]) -> None:
    machines = "trueup-backfill trueup-partitions trueup-reconcile"
    assert [machines, "SECRET_DSN", "trueup-start"] == looked[1].splitlines()


def test_the_readme_and_the_demo_say_how_to_go_on_and_it_works_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with it the example of `trueup up`, which the first of the commands is."""
    monkeypatch.setattr(sys, "argv", [".venv/bin/trueup"])
    (tmp_path / ".venv").symlink_to(TRUEUP.parents[1])
    section = README.partition("## Start it, watch it, sign for it\n")[2].partition("\n## ")[0]
    shown = section.replace("\\\n    ", "")
    assert [] == [line for line in demo.going_on() if f"\n{line}\n" not in shown]
    assert demo.going_on()[0].startswith(f".venv/bin/{command.EXAMPLE} >")
    with follower(tmp_path, tmp_path) as somebody:
        somebody.follow(section)
    assert "SUCCEEDED: 31 of 31 partitions" in somebody.said[-1]
