"""`close` and `sweep`: only the execution of now, only while it is over, and nothing is stranded."""

from __future__ import annotations

import pytest

from trueup.errors import StoreUnavailable
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.ledger import Run
from trueup.model.states import RunStatus

from .handler_fakes import Child, Execution, FakeTask
from .handler_world import World, dying_at, left_by
from .worker_cases import Died, job_file, job_of


def working() -> tuple[World, Run, Execution, Child, FakeTask]:
    """A run whose one task is at work."""
    here = World(job_of(), job_file())
    run = here.ask()
    execution = here.execution(run)
    child = here.launched(execution)
    assert child.task is not None
    task = child.task
    for _ in range(6):
        task.step()
    return here, run, execution, child, task


def at_rest(here: World, run: Run) -> bool:
    """Whether nothing of the run is left."""
    ledger = here.ledger
    held = run.run_id in ledger.locks.get("numbers").holders
    return not (held or list(ledger.tasks.of(run.run_id)) or run.run_id in set(ledger.runs.unsettled()))


def test_an_aborted_execution_closes_its_run_and_stops_its_tasks() -> None:
    here, run, execution, _, task = working()
    here.abort(execution)
    assert "ended" == here.close.handle(here.event(execution))["did"]
    run = here.run(run.run_id)
    assert (RunStatus.ABORTED, f"its execution {execution.name} is ABORTED") == (run.status, run.reason)
    assert task.ended is not None
    assert at_rest(here, run)
    assert "nothing" == here.close.handle(here.event(execution))["did"]


def test_what_cannot_be_proved_at_once_is_left_to_the_sweep() -> None:
    here, run, execution, _, task = working()
    task.stuck = True
    here.abort(execution)
    assert "stopping" == here.close.handle(here.event(execution))["did"]
    assert RunStatus.STOPPING == here.run(run.run_id).status
    assert run.run_id in here.ledger.locks.get("numbers").holders
    did = [here.swept()["did"][run.run_id] for _ in range(2)]
    assert ["stopping", "ended"] == did
    assert (RunStatus.ABORTED, True) == (here.run(run.run_id).status, at_rest(here, run))


def test_an_event_that_arrives_after_a_redrive_is_left_alone() -> None:
    here, run, execution, _, task = working()
    here.abort(execution)
    event = here.event(execution)
    here.redrive(execution)
    assert "nothing" == here.close.handle(event)["did"]
    assert (RunStatus.RUNNING, None) == (here.run(run.run_id).status, task.ended)
    here.play(execution)
    assert RunStatus.SUCCEEDED == here.run(run.run_id).status


def test_an_event_of_an_earlier_generation_is_left_alone() -> None:
    here, run, _, _, _ = working()
    here.steps.start(f"{run.run_id}-0", {})
    earlier = here.steps.executions[f"{run.run_id}-0"]
    here.abort(earlier)
    assert "nothing" == here.close.handle(here.event(earlier))["did"]
    assert RunStatus.RUNNING == here.run(run.run_id).status


def test_an_execution_that_serves_no_run_is_left_alone() -> None:
    here = World(job_of(), job_file())
    assert "nothing" == here.close.handle({"detail": {"name": "by-hand", "status": "FAILED"}})["did"]


def test_a_run_on_its_way_to_a_pause_gets_there_when_its_execution_is_lost() -> None:
    here, run, execution, _, _ = working()
    here.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    here.abort(execution)
    here.close.handle(here.event(execution))
    run = here.run(run.run_id)
    assert RunStatus.PAUSED == run.status
    assert run.run_id in here.ledger.locks.get("numbers").holders
    assert run.run_id not in set(here.ledger.runs.unsettled())


def test_dying_at_every_write_of_the_closer_the_sweep_brings_it_to_its_end() -> None:
    number, deaths = 0, 0
    while True:
        number += 1
        here, run, execution, _, _ = working()
        here.abort(execution)
        dying_at(here, number)
        try:
            here.close.handle(here.event(execution))
        except Died:
            deaths += 1
        else:
            break
        here.table.dies_at = 0
        here.swept()
        assert (RunStatus.ABORTED, True) == (here.run(run.run_id).status, at_rest(here, run))
    assert deaths >= 3


def test_the_sweep_starts_what_was_never_started() -> None:
    here = World(job_of(), job_file())
    run = here.ask()
    here.steps.executions.clear()
    assert ({run.run_id: "started"}, {}) == tuple(here.swept().values())
    assert {run.run_id: "running"} == here.swept()["did"]
    here.play(here.execution(run))
    assert {"did": {}, "failed": {}} == here.swept()


def test_the_sweep_closes_what_the_closer_never_heard_of() -> None:
    here, run, execution, _, _ = working()
    execution.status = "TIMED_OUT"
    assert {run.run_id: "ended"} == here.swept()["did"]
    assert (RunStatus.ABORTED, True) == (here.run(run.run_id).status, at_rest(here, run))


def test_the_sweep_leaves_runs_at_work_alone() -> None:
    here, run, _, _, task = working()
    assert {run.run_id: "running"} == here.swept()["did"]
    assert task.ended is None


def test_a_run_that_cannot_be_looked_after_keeps_none_of_the_others_from_it() -> None:
    here, run, execution, _, _ = working()
    other = here.ask(requestId="r-2", keys=["x"])
    status = here.steps.status

    def failing(name: str) -> str | None:
        if name == execution.name:
            raise StoreUnavailable("Step Functions does not answer.")
        return status(name)

    here.steps.status = failing  # type: ignore[method-assign]
    swept = here.swept()
    assert ({other.run_id}, {run.run_id}) == (set(swept["did"]), set(swept["failed"]))


def test_a_run_whose_item_cannot_be_read_keeps_none_of_the_others_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, run, _, _, _ = working()
    other = here.ask(requestId="r-2", keys=["x"])
    here.table.write(Write(keys.run(run.run_id), sets={"status": "NONSENSE"}))
    swept = here.swept()
    assert ({other.run_id: "running"}, {run.run_id}) == (swept["did"], set(swept["failed"]))
    assert swept["failed"][run.run_id].startswith("ValidationError: ")
    assert "NONSENSE" in swept["failed"][run.run_id]
    (told,) = [record for record in caplog.records if record.name == "trueup.sweep"]
    assert (True, "not looked after") == (told.exc_info is not None, told.getMessage())


def test_a_task_that_registers_when_all_is_done_is_proved_before_the_run_ends() -> None:
    here, run, execution, child, task = working()
    second = here.ledger.runs.next_launch(run.run_id, 1)
    while task.ended is None:
        task.step()
    here.hear(child, left_by(task.ended))
    here.step_child(child)
    late = here.launch(Child({**child.data, "number": {"launch": second}}))
    late.step()  # registers while the run is open
    assert RunStatus.RUNNING == here.run(run.run_id).status
    here.step(execution)  # settles: the late one is stopped and proved first
    while execution.status == "RUNNING":
        here.step(execution)
    assert (RunStatus.SUCCEEDED, True) == (here.run(run.run_id).status, at_rest(here, run))


def test_a_fan_out_that_is_redriven_beside_the_next_one_finds_the_gate_shut() -> None:
    here, run, execution, child, _ = working()
    number = here.ledger.runs.next_launch(run.run_id, 1, child.data["order"]["dispatch"])
    late = here.launch(Child({**child.data, "number": {"launch": number}}))  # asked for, and not begun
    here.ecs.unlisted.add(late.arn)
    execution.children = []  # Somebody stopped the fan-out: settling finds what is left,
    while execution.told["do"] != "work" or not execution.children:
        here.step(execution)
    (again,) = execution.children  # hands it out again,
    child.at = "take"  # and the old one is redriven.
    here.step_child(child)
    assert ("over", [again]) == (child.at, execution.children)
    late.step()
    assert late.ended is not None
    assert 75 == late.ended.exit_code
    assert [] == list(here.ledger.tasks.of(run.run_id))
    here.step_child(again)
    assert "run" == again.at


def test_a_task_that_begins_on_a_closed_run_touches_nothing() -> None:
    here, run, execution, child, _ = working()
    number = here.ledger.runs.next_launch(run.run_id, 1)
    late = here.launch(Child({**child.data, "number": {"launch": number}}))
    here.ecs.unlisted.add(late.arn)
    here.abort(execution)
    here.close.handle(here.event(execution))
    rows = dict(here.job.sink.rows)
    late.step()
    assert late.ended is not None
    assert (75, rows) == (late.ended.exit_code, here.job.sink.rows)
    assert at_rest(here, run)
