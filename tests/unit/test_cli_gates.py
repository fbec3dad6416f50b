"""`gates`, `approve` and `reject`: what is shown before it is signed, and that its hash has to be named."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.cli import COMMANDS, main
from trueup.model.states import GateStatus, RunStatus

from .api_cases import api_of
from .api_server import be, serving
from .handler_fakes import Execution
from .handler_world import World
from .test_cli_api import as_json, told
from .worker_cases import job_file, job_of


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """A world whose job asks before it writes, and goes on with each call. Ann is at the keyboard."""
    here = World(job_of(), job_file(approval={"required": True, "roles": ["user/bob"]}))

    def play() -> None:
        for execution in list(here.steps.executions.values()):
            for _ in range(20):
                here._turn(execution)

    with serving(api_of(here), play) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        be(monkeypatch, "AKIAANN")
        yield here


@pytest.fixture
def run_id(world: World, capsys: pytest.CaptureFixture[str]) -> str:
    """A run that waits: `start --wait` comes back with 3."""
    detail = as_json(capsys, "start", "numbers", "--keys", "a,b", "--wait", "--every", "0", code=3)
    assert "apply" == detail["gate"]["name"]
    return str(detail["run"]["runId"])


def execution_of(world: World) -> Execution:
    """The only one."""
    (execution,) = world.steps.executions.values()
    return execution


def test_a_run_that_waits_says_so_and_exits_with_3(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"waits for a person at gate apply: trueup approve {run_id} apply"
    assert line in told(capsys, "status", run_id, code=3)
    assert line in told(capsys, "status", run_id, "--watch", code=3)
    assert run_id in told(capsys, "gates", code=3)
    assert "apply" == as_json(capsys, "gates", run_id, code=3)["gates"][0]["name"]


def test_a_second_person_sees_what_it_is_and_approves_it_by_its_hash(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "AKIABOB")
    gate = world.ledger.gates.get(run_id, "apply")
    out = told(capsys, "approve", run_id, "apply", "--sha", gate.sha256[:8], "--comment", "fine")
    for said in (
        "partitions",
        "dollars",
        "cannot prevent",
        "task-definition/",
        gate.sha256,
        "user/bob may decide",
    ):
        assert said in out
    assert "Approved." in out
    told(capsys, "status", run_id, "--watch", "--every", "0")
    assert RunStatus.SUCCEEDED is world.run(run_id).status
    assert 24 == len(world.job.sink.rows)
    assert "decided by user/bob" in told(capsys, "gates", run_id)
    assert "fine" in told(capsys, "audit", run_id)


def test_the_requester_and_a_wrong_hash_are_refused(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = world.ledger.gates.get(run_id, "apply")
    assert 1 == main(["approve", run_id, "apply", "--sha", gate.sha256])
    assert "Ask somebody else to look at it." in capsys.readouterr().err
    be(monkeypatch, "AKIABOB")
    for wrong in ("", gate.sha256[:5], "0123456789"):
        assert 2 == main(["approve", run_id, "apply", "--sha", wrong])
        assert f"Look at it with `trueup gates {run_id}`" in capsys.readouterr().err
    assert 2 == main(["approve", run_id, "repair", "--sha", gate.sha256])
    assert "It has apply." in capsys.readouterr().err
    assert gate.status is GateStatus.OPEN is world.ledger.gates.get(run_id, "apply").status


@pytest.mark.parametrize("right", [True, False])
def test_at_a_terminal_the_hash_is_typed(
    world: World,
    run_id: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    right: bool,
) -> None:
    be(monkeypatch, "AKIABOB")
    sha256 = world.ledger.gates.get(run_id, "apply").sha256
    asked: list[Any] = []

    def prompt(text: str) -> str:
        asked.append(text)
        return sha256[:8].upper() if right else "yes, please"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", prompt)
    assert (0 if right else 2) == main(["approve", run_id, "apply"])
    assert ["The first 8 characters of its hash, to approve"] == asked
    assert right is (world.ledger.gates.get(run_id, "apply").status is not GateStatus.OPEN)


def test_a_script_has_to_name_the_hash(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert 2 == main(["approve", run_id, "apply", "--json"])
    assert "Give its first characters with --sha." in capsys.readouterr().err


def test_a_rejection_needs_a_reason_and_ends_the_run_with_it(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "AKIABOB")
    sha = world.ledger.gates.get(run_id, "apply").sha256[:8]
    assert 2 == main(["reject", run_id, "apply", "--sha", sha])
    capsys.readouterr()
    gate = as_json(capsys, "reject", run_id, "apply", "--sha", sha, "--reason", "wrong window")
    assert ("REJECTED", "wrong window") == (gate["status"], gate["comment"])
    told(capsys, "status", run_id, "--watch", "--every", "0", code=4)
    assert "rejected at gate apply: wrong window" == world.run(run_id).reason


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_the_examples_of_the_commands_work(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    be(monkeypatch, "AKIABOB")
    sha = world.ledger.gates.get(run_id, "apply").sha256[:8]
    example = COMMANDS[verb].EXAMPLE.replace("3f9a1c07", sha)
    program, *arguments = shlex.split(re.sub(r"flights-summary-\d{8}T\d{6}Z-[a-z]{4}", run_id, example))
    assert ("trueup", verb) == (program, arguments[0])
    told(capsys, *arguments)


def test_every_command_that_asks_the_api_can_be_told_who_asks() -> None:
    takes = {name: inspect.signature(module.command).parameters for name, module in COMMANDS.items()}
    assert {"gates", "approve", "reject"} <= {name for name, found in takes.items() if "api" in found}
    assert [] == [name for name, found in takes.items() if "api" in found and "person" not in found]
