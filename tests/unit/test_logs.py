"""Structured logs: every line of tasks and Lambdas is JSON, and says of whom it speaks."""

from __future__ import annotations

import ast
import importlib.util
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.errors import StoreUnavailable
from trueup.handling.logged import logged, subjects
from trueup.logs import SUBJECTS, about, log_as_json
from trueup.worker.stopping import Control

from .api_cases import api_of, event_of
from .handler_world import World
from .worker_cases import job_file, job_of

ROOT = Path(__file__).parents[2]
LAMBDAS = sorted((ROOT / "lambdas").glob("*/app.py"))
# What people run at a terminal; their words are for people.
AT_A_TERMINAL = {"cli", "local", "testing"}


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    botocore = logging.getLogger("botocore")
    told = botocore.level
    yield
    root.handlers[:], root.level = before, level
    botocore.setLevel(told)


@pytest.fixture
def world() -> World:
    return World(job_of(), job_file())


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What was logged; every line is JSON and has every subject."""
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [] == [line for line in found if not set(SUBJECTS) <= line.keys()]
    return found


# In the code: there is no other way out


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call in what runs in tasks and Lambdas, with the place of it."""
    files = [file for file in (ROOT / "src" / "trueup").rglob("*.py") if not AT_A_TERMINAL & set(file.parts)]
    for file in [*files, *LAMBDAS]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def test_whoever_logs_does_so_through_a_logger_of_trueup() -> None:
    names = {
        ast.literal_eval(call.args[0])
        for _, call in calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "getLogger"
    }
    own = {"worker", "handling", "api", "sweep", "settle", "gate"}
    # botocore's is told to say less.
    assert {"botocore", *(f"trueup.{name}" for name in own)} == names
    logging_calls = {"debug", "info", "warning", "error", "exception", "critical"}
    owners = {
        place: ast.unparse(call.func.value)
        for place, call in calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr in logging_calls
    }
    assert len(owners) > 20
    assert {} == {place: owner for place, owner in owners.items() if owner != "log"}


def test_nobody_prints_but_metrics_and_the_makers_of_pages() -> None:
    printing = {
        place.partition(":")[0]
        for place, call in calls()
        if isinstance(call.func, ast.Name) and call.func.id == "print"
    }
    assert {"src/trueup/metrics.py"} == printing


@pytest.mark.parametrize("file", LAMBDAS, ids=lambda file: file.parent.name)
def test_every_lambda_is_logged(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(f"lambda_{file.parent.name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.handler.__wrapped__.__name__ == "handler"
    function = next(node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef))
    assert ["logged"] == [ast.unparse(one) for one in function.decorator_list]


# Of whom a call speaks


ORDER = {"runId": "r", "phase": "apply", "slice": {"sliceId": 4}}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"order": ORDER, "number": {"launch": 7}}, {"run": "r", "slice": 4, "launch": 7}),
        ({"runId": "r", "generation": 1}, {"run": "r"}),
        ({"detail": {"name": "r-2013-01"}}, {"run": "r-2013"}),
        (event_of("GET", "/runs/r/partitions"), {"run": "r", "partition": None}),
        (event_of("GET", "/runs/r/logs", query={"partition": "p"}), {"run": "r", "partition": "p"}),
        (event_of("GET", "/jobs"), {"run": None, "partition": None}),
        ({"job": "numbers"}, {"run": None}),
        ({}, {"run": None}),
    ],
)
def test_a_call_speaks_of_whom_its_event_names(event: dict[str, Any], expected: dict[str, Any]) -> None:
    assert expected == subjects(event)


# The lines themselves


def test_each_call_is_a_line_with_its_answer(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    api = api_of(world)
    run = world.ask(keys=["a"])
    handler = logged(lambda event, _: api.handle(event))
    handler(event_of("GET", f"/runs/{run.run_id}"), None)
    handler(event_of("GET", "/runs/x"), None)
    first, second = lines(capsys)
    assert (run.run_id, f"GET /runs/{run.run_id}: 200") == (first["run"], first["message"])
    assert ("x", "GET /runs/x: 404") == (second["run"], second["message"])


def test_every_call_of_a_whole_run_says_which_run_slice_and_launch(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("plan", "settle", "accept"):
        setattr(world, name, Logged(getattr(world, name)))
    run = world.ask(keys=["a", "b"])
    world.play(world.execution(run))
    found = lines(capsys)
    assert {run.run_id} == {line["run"] for line in found}
    accepted = [line for line in found if '"answer"' in line["message"]]
    assert accepted
    assert all(line["launch"] and line["slice"] is not None for line in accepted)


class Logged:
    """A handler's service as its Lambda calls it."""

    def __init__(self, served: Any) -> None:
        self.handle = lambda event: logged(lambda given, _: served.handle(given))(event, None)


def test_a_call_that_fails_says_of_whom_and_still_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def down(event: dict[str, Any], context: object) -> dict[str, Any]:
        raise StoreUnavailable("DynamoDB did not do what was asked.")

    with pytest.raises(StoreUnavailable):
        logged(down)({"order": ORDER, "number": {"launch": 7}}, None)
    (line,) = lines(capsys)
    assert ("error", "r", 4, 7) == (line["level"], line["run"], line["slice"], line["launch"])
    assert "DynamoDB did not do" in line["traceback"]


def test_a_bug_of_the_api_says_of_which_run(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.ledger.runs.get = lambda run_id: {}["secret"]  # type: ignore[method-assign]
    logged(lambda event, _: api_of(world).handle(event))(event_of("GET", "/runs/r"), None)
    bug, answer = lines(capsys)
    assert ("r", "r", True) == (bug["run"], answer["run"], "KeyError" in bug["traceback"])
    assert answer["message"].endswith("500")


def test_the_sweep_says_which_run_it_could_not_look_after(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = world.ask(keys=["a"])

    def down(run_id: str) -> Any:
        raise StoreUnavailable("DynamoDB did not do what was asked.")

    world.ledger.runs.get = down  # type: ignore[method-assign]
    logged(lambda event, _: world.sweep.handle(event))({}, None)
    failed, answer = lines(capsys)
    assert (run.run_id, None) == (failed["run"], answer["run"])


def test_a_tasks_line_says_at_which_partition_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    control = Control()
    log_as_json(lambda: {"run": "r", "slice": 1, "launch": 2, "partition": control.partition})
    log = logging.getLogger("trueup.worker")
    log.info("before")
    control.partition = "p"
    log.info("at it")
    with about(partition="q"):
        log.info("of another")
    log.info("at it again")
    told = lines(capsys)
    assert [None, "p", "q", "p"] == [line["partition"] for line in told]
    assert {("r", 1, 2)} == {(line["run"], line["slice"], line["launch"]) for line in told}


def test_what_botocore_says_of_its_credentials_is_not_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_json()
    log = logging.getLogger("botocore.credentials")
    log.info("Found credentials in environment variables.")
    log.warning("Refreshing failed.")
    assert ["Refreshing failed."] == [line["message"] for line in lines(capsys)]
