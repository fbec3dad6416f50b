"""A reconciliation through handlers, API and command line: its way, its report, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trueup.cli import main
from trueup.errors import SourceError
from trueup.jobs import Reconcile
from trueup.model.base import sha256
from trueup.model.ledger import Run
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import Phase, RunStatus
from trueup.reporting.comparison import Comparisons
from trueup.schemas import FOLDER, REPORT_FILES, published_report
from trueup.testing.rows import MemoryRows

from .api_cases import Client, api_of, event_of
from .api_server import be, serving
from .handler_world import World

ROWS = 40
JOB: dict[str, Any] = {
    "name": "numbers",
    "kind": "reconcile",
    "truth": {"kind": "postgres", "table": "truth"},
    "target": {"kind": "dynamodb", "table": "target"},
    "key": ["id"],
    "columns": {"id": "integer", "v": "text"},
    "lag": 90,
    "partitions": {"by": "splits", "splits": [20]},
}


def world_of(target: list[dict[str, Any]], **changes: Any) -> World:
    truth = [{"id": number, "v": f"v{number}"} for number in range(ROWS)]
    return World(Reconcile, Reconciliation.of({**JOB, **changes}), rows={"truth": truth, "target": target})


def same() -> list[dict[str, Any]]:
    return [{"id": number, "v": f"v{number}"} for number in range(ROWS)]


def drifted() -> list[dict[str, Any]]:
    return [*same()[1:], {"id": 99, "v": "<b>extra</b>"}]


def played(world: World, **changes: Any) -> tuple[Run, list[str]]:
    """A run to its end, and what the machine was told on its way."""
    run = world.ask(keys=None, **changes)
    execution = world.execution(run)
    told: list[str] = []
    while execution.status == "RUNNING":
        world.step(execution)
        if execution.told and (not told or told[-1] != execution.told["do"]):
            told.append(execution.told["do"])
        for child in list(execution.children):
            world.step_child(child)
            if child.task is not None:
                child.task.step()
    return world.run(run.run_id), told


def test_what_agrees_is_compared_once() -> None:
    world = world_of(same())
    run, told = played(world)
    assert (RunStatus.SUCCEEDED, "CLEAN") == (run.status, run.reason)
    assert ["settle", "work", "lag", "settle", "end"] == told
    assert {Phase.COMPARE} == {task.order.phase for task in world.ecs.tasks.values()}


def test_what_differs_is_looked_at_again_after_the_lag_and_only_there() -> None:
    world = world_of(drifted())
    before = world.clock.now()
    run, told = played(world)
    assert (RunStatus.SUCCEEDED, "DRIFT: 2 differences are confirmed") == (run.status, run.reason)
    assert ["settle", "work", "lag", "work", "end"] == told
    assert (world.clock.now() - before).total_seconds() >= 90
    assert {} == world.ledger.locks.get("numbers").holders
    assert 0 == world.ledger.locks.get("numbers").epoch


def test_a_second_look_is_not_begun_before_the_lag() -> None:
    """A machine that does not wait loses nothing: the tasks leave, and the fan-out waits."""
    world = world_of(drifted())
    run = world.ask(keys=None)
    execution = world.execution(run)
    while execution.status == "RUNNING":
        if execution.told and execution.told["do"] == "lag":
            execution.told = {**execution.told, "seconds": 0}
        world.step(execution)
        for child in list(execution.children):
            world.step_child(child)
            if child.task is not None:
                child.task.step()
    assert "DRIFT: 2 differences are confirmed" == world.run(run.run_id).reason
    assert {90} == set(world.pauses)


LATE = {"waitFor": {"location": "s3://exports/{day}/manifest.json", "minutes": 10}}
DAYS = {"parameters": {"type": "object", "properties": {"day": {"type": "string"}}}}


def test_nothing_is_handed_out_before_an_input_arrives() -> None:
    world = world_of(same(), **LATE, **DAYS)
    run = world.ask(keys=None, params={"day": "monday"})
    execution = world.execution(run)
    for _ in range(4):
        world.step(execution)
    assert ("lag", 60) == (execution.told["do"], execution.told["seconds"])  # type: ignore[index]
    assert {} == world.ecs.tasks
    world.there.add("s3://exports/monday/manifest.json")
    world.play(execution)
    assert "CLEAN" == world.run(run.run_id).reason


def test_an_input_that_does_not_arrive_in_time_makes_it_incomplete() -> None:
    world = world_of(same(), **LATE, **DAYS)
    run, told = played(world, params={"day": "monday"})
    assert (RunStatus.FAILED, ["settle", "lag", "fail"]) == (run.status, told)
    assert "s3://exports/monday/manifest.json did not arrive within 10 minutes" == run.reason
    report = Comparisons(world.ledger, world.artifacts).of(run)
    assert report is not None
    assert "INCOMPLETE" == report.verdict
    assert any(run.reason in reason for reason in report.reasons)
    assert {} == world.ecs.tasks


def test_the_sweep_and_the_closer_ask_the_machine_of_reconciliations() -> None:
    world = world_of(same())
    run = world.ask(keys=None)
    assert {"did": {run.run_id: "running"}, "failed": {}} == world.swept()
    execution = world.execution(run)
    world.abort(execution)
    assert "ended" == world.close.handle(world.event(execution))["did"]
    report = Comparisons(world.ledger, world.artifacts).of(world.run(run.run_id))
    assert report is not None
    assert "ERROR" == report.verdict


def test_a_dry_run_is_refused() -> None:
    with pytest.raises(Exception, match="dryRun: numbers is a reconciliation, which only reads"):
        world_of(same()).ask(keys=None, dryRun=True)


@pytest.fixture
def world() -> World:
    return world_of(drifted())


def test_the_comparison_is_there_once_all_is_compared(world: World) -> None:
    client = Client(api_of(world))
    _, started = client.call("POST", "/runs", body={"job": "numbers", "requestId": "r-1"})
    path = f"/runs/{started['runId']}"
    status, pending = client.call("GET", f"{path}/comparison")
    assert (202, "RUNNING", path) == (status, pending["status"], pending["location"])
    world.play(world.steps.executions[started["execution"]])
    report = client.get(f"{path}/comparison")
    assert ("DRIFT", 1, 1) == (report["verdict"], report["counts"]["missing"], report["counts"]["extra"])
    detail = client.get(path)
    assert ("DRIFT", "reconcile", "confirm") == (detail["verdict"], detail["run"]["kind"], detail["phase"])
    assert "SUCCEEDED" == client.get(f"{path}/report")["status"]


def test_the_page_shows_what_is_signed(world: World) -> None:
    run, _ = played(world)
    answer = api_of(world).handle(
        event_of("GET", f"/runs/{run.run_id}/comparison", headers={"Accept": "text/html"})
    )
    assert (200, "text/html; charset=utf-8") == (answer["statusCode"], answer["headers"]["content-type"])
    stored = world.artifacts.store.get(f"runs/{run.run_id}/comparison.json")
    assert f"SHA-256 {sha256(stored)}" in answer["body"]
    assert Comparisons(world.ledger, world.artifacts).sha256_of(run) == sha256(stored)
    assert "DRIFT" in answer["body"]
    assert "<b>" not in answer["body"]


def test_the_schema_of_the_report_is_published_and_holds(world: World) -> None:
    text = (FOLDER / REPORT_FILES["comparison"]).read_text(encoding="utf-8")
    assert published_report("comparison") == text, "run python -m trueup.schemas"
    played(world)
    (run_id,) = [name for name, _ in world.ledger.runs.newest()]
    document = json.loads(world.artifacts.store.get(f"runs/{run_id}/comparison.json"))
    assert [] == list(Draft202012Validator(json.loads(text)).iter_errors(document))


def test_a_backfill_has_no_comparison() -> None:
    from .worker_cases import job_file, job_of

    world = World(job_of(), job_file())
    run = world.ask()
    status, _, _, said = Client(api_of(world)).problem("GET", f"/runs/{run.run_id}/comparison")
    assert 404 == status
    assert f"Run {run.run_id} is a backfill, which compares nothing." in said


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world behind a socket; runs go to their end between two looks."""

    def go_on() -> None:
        for execution in list(world.steps.executions.values()):
            world.play(execution)

    be(monkeypatch, "AKIAANN")
    with serving(api_of(world), go_on) as url:
        monkeypatch.setenv("TRUEUP_API", url)
        yield world


@pytest.mark.parametrize(
    ("target", "verdict", "code"),
    [
        (same(), "CLEAN", 0),
        (drifted(), "DRIFT", 1),
        ([*same(), {"id": 3, "v": "twice"}], "INCOMPLETE", 4),
    ],
)
def test_start_and_report_exit_with_the_verdict(
    served: World,
    target: list[dict[str, Any]],
    verdict: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert served.rows is not None
    served.rows["target"][:] = target  # type: ignore[index]
    assert code == main(["start", "numbers", "--wait", "--every", "0"])
    run_id = capsys.readouterr().out.splitlines()[0]
    page = tmp_path / "page.html"
    assert code == main(["report", run_id, "--html", str(page)])
    assert f"{run_id}  {verdict}" in capsys.readouterr().out
    assert verdict in page.read_text()
    assert code == main(["report", run_id, "--json"])
    assert verdict == json.loads(capsys.readouterr().out)["verdict"]


def test_a_comparison_that_ended_in_an_error_exits_with_4(
    served: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = served.ask(keys=None)
    served.swept()
    execution = served.execution(run)
    served.abort(execution)
    served.close.handle(served.event(execution))
    assert 4 == main(["report", run.run_id])
    assert f"{run.run_id}  ERROR" in capsys.readouterr().out


def test_a_side_that_cannot_be_read_is_an_error_and_exits_with_4(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> Any:
        raise SourceError("The table target cannot be reached.")

    monkeypatch.setattr(MemoryRows, "scan", gone)
    assert 4 == main(["start", "numbers", "--wait", "--every", "0"])
    run_id = capsys.readouterr().out.splitlines()[0]
    assert 4 == main(["status", run_id])
    assert 4 == main(["report", run_id])
    assert f"{run_id}  ERROR" in capsys.readouterr().out
    assert 4 == main(["report", run_id, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert "ERROR" == found["verdict"]
    assert "cannot be reached" in found["reasons"][0]


def test_wrong_usage_exits_with_2(served: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["start", "numbers", "--from", "2013-01-01", "--to", "2013-01-02"])
    assert "this job works all keys of two sources" in capsys.readouterr().err
