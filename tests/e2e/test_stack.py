"""template.yaml on the local stack: what it deploys works together, by events and by schedule."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from trueup.clock import SystemClock
from trueup.errors import LocalStackError
from trueup.jobfile import catalogue
from trueup.local.aws import ministack
from trueup.local.stack import Options, Stack, stack
from trueup.model.request import Request
from trueup.model.states import Phase, RunStatus
from trueup.starting import Starter, execution_name

from .watching import JOBS, ended, start, tasks_of, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)


def test_a_job_that_the_template_does_not_have_runs_like_one_that_it_has(up: Stack) -> None:
    run = ended(up, start(up, "steps", keys=["a", "b"]))
    assert RunStatus.SUCCEEDED == run.status
    counts = up.ledger.verdicts.counts(run.run_id).tally()
    assert (2, 10) == (counts.partitions, counts.records.read)


def test_asked_twice_there_is_one_run(up: Stack) -> None:
    asked = {"keys": ["a"], "requestId": "asked-twice"}
    first = start(up, "steps", **asked)
    assert first == start(up, "steps", **asked)
    ended(up, first)


def test_a_request_that_is_wrong_is_refused_with_its_field(up: Stack) -> None:
    answer = up.invoke("start", {"job": "stepz", "requestId": "wrong", "requester": "test"})
    assert "Did you mean `steps`?" in answer["errorMessage"]


def test_a_rehearsal_has_a_secret_that_cannot_write(up: Stack) -> None:
    from psycopg import connect, errors

    read, write = (
        up.client("secretsmanager").get_secret_value(SecretId=f"flights/postgres/{mode}")["SecretString"]
        for mode in ("read", "write")
    )
    with connect(write) as connection:
        connection.execute("delete from flights where false")
    with connect(read) as connection:
        connection.execute("select count(*) from flights")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("delete from flights where false")


def test_who_stops_the_execution_stops_the_run_and_its_tasks(up: Stack) -> None:
    run_id = start(up, "steps", keys=["a", "b"], params={"steps": 10_000, "seconds": 0.05})
    wait_until(lambda: 2 == len(list(up.ledger.tasks.of(run_id))))
    machine = up.deployed.outputs["Backfill"]
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{execution_name(run_id, 1)}"
    up.client("stepfunctions").stop_execution(executionArn=execution)

    wait_until(lambda: up.ledger.runs.get(run_id).status is not RunStatus.RUNNING)  # the closer's rule
    wait_until(lambda: up.invoke("sweep", {}) and not list(up.ledger.tasks.of(run_id)))
    run = up.ledger.runs.get(run_id)
    assert RunStatus.ABORTED == run.status
    assert run.reason is not None
    assert "is ABORTED" in run.reason
    assert {"STOPPED"} == {task["lastStatus"] for task in tasks_of(up, run_id)}


def test_a_task_that_hangs_before_it_registers_does_not_outlive_its_run(up: Stack) -> None:
    run = ended(up, start(up, "hangs", keys=["a"]), seconds=240)
    assert (RunStatus.FAILED, 2) == (run.status, run.launches)
    assert ["STOPPED"] * 2 == [task["lastStatus"] for task in tasks_of(up, run.run_id)]
    item = up.ledger.partitions.get(run.run_id, Phase.APPLY, "item=a")
    assert item.error is not None
    assert "2 launches ended before any partition was taken" in item.error.message


def test_the_sweep_comes_by_its_schedule(up: Stack) -> None:
    """It starts the execution of a run that has none, as a `start` leaves it that died half-way."""
    schedules = up.client("scheduler")
    (name,) = up.deployed.of_type("AWS::Scheduler::Schedule")
    schedule = schedules.get_schedule(Name=name)
    assert "rate(5 minutes)" == schedule["ScheduleExpression"]
    request = Request(job="steps", request_id="forgotten", requester="test", keys=("a",))
    starter = Starter(up.ledger, up.artifacts, SystemClock(), random.Random())
    run = starter.create(catalogue(JOBS)["steps"], request)

    # The schedule as it was deployed, but that a minute is enough for a test.
    sooner = {"ScheduleExpression": "rate(1 minutes)"}
    kept = {key: schedule[key] for key in ("Name", "FlexibleTimeWindow", "Target")}
    schedules.update_schedule(**kept, **sooner)
    assert RunStatus.SUCCEEDED == ended(up, run.run_id, seconds=150).status


def test_a_definition_that_the_engine_does_not_implement_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("statemachines", "lambdas", "containers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "template.yaml", tmp_path)
    machine = tmp_path / "statemachines" / "backfill.asl.yaml"
    machine.write_text(machine.read_text().replace("states:startExecution.sync:2", "glue:startJobRun.sync"))
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(LocalStackError, match=r"trueup-backfill was refused: (?s:.)*Work the partitions"),
        stack(),
    ):
        pass


def test_another_emulator_takes_the_place_of_ours_once() -> None:
    with ministack() as aws:
        with stack(Options(aws=aws, jobs=JOBS, scale=0.1)) as up:
            assert aws == up.aws
            assert RunStatus.SUCCEEDED == ended(up, start(up, "steps", keys=["a"])).status
        with pytest.raises(LocalStackError, match="remove it or take an empty one"), stack(Options(aws=aws)):
            pass
