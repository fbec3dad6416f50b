"""Abort rules in the machine's order: dying, racing, too late for `accept`, and found by the sweep."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.aborting import ABORTER
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.job import MOST_HOURS
from trueup.model.ledger import Run
from trueup.model.states import PartitionStatus, Phase, RunStatus

from .handler_fakes import Child, Execution
from .handler_world import World, dying_at, left_by
from .test_aborting import failing, rejecting, sections
from .worker_cases import Died, job_file

FIRST_FAILURE = {"of": "failedPartitions", "above": 0}
ALL = ["a", "b", "c"]


def world(*rules: dict[str, Any], fails: str = "a", slices: int = 3, **more: Any) -> World:
    """A world with these rules; partitions of these keys fail at once."""
    return World(failing(fails), job_file(**sections(*rules, slices=slices, **more)))


def statuses(here: World, run: Run) -> list[str]:
    """How the partitions stand."""
    items = here.ledger.partitions.get_many(run.run_id, Phase.APPLY, [f"item={key}" for key in ALL])
    return [item.status.value for item in items.values()]


def at_rest(here: World, run: Run) -> bool:
    """Nothing of the run is left: no task, no lock, no place on the list."""
    tasks, lock = list(here.ledger.tasks.of(run.run_id)), here.ledger.locks.get("numbers")
    return not tasks and not lock.holders and run.run_id not in set(here.ledger.runs.unsettled())


def stops(here: World, run: Run) -> list[str]:
    """Who closed the run, from its trail."""
    return [entry.who for entry in here.ledger.audit.of(run.run_id) if entry.verb == "stop:aborted"]


def ready(here: World) -> tuple[Run, Execution, Child]:
    """A run whose first slice's task has left after its partition failed; nobody judged it."""
    run = here.ask(keys=ALL)
    execution = here.execution(run)
    child = here.launched(execution)
    assert child.task is not None
    while child.task.ended is None:
        child.task.step()
    here.hear(child, left_by(child.task.ended))
    return run, execution, child


def test_a_run_that_breaks_a_rule_drains_and_its_execution_fails_with_the_reason() -> None:
    here = world(FIRST_FAILURE)
    run, execution, child = ready(here)
    here.step_child(child)
    assert ("failed", RunStatus.STOPPING) == (child.answer, here.run(run.run_id).status)
    here.play(execution)
    run = here.run(run.run_id)
    assert (RunStatus.ABORTED, "FAILED") == (run.status, execution.status)
    assert (run.reason or "").startswith("abort rule failedPartitions: 1 (of 1 partitions that ended) > 0.")
    assert ["FAILED", "PENDING", "PENDING"] == statuses(here, run)
    assert (1, [ABORTER]) == (run.launches, stops(here, run))
    assert at_rest(here, run)


def test_a_slice_of_a_run_that_was_aborted_is_not_launched_again() -> None:
    here = world(FIRST_FAILURE, slices=1)
    run = here.ask(keys=ALL)
    execution = here.execution(run)
    child = here.launched(execution)
    task = child.task
    assert task is not None
    for _ in range(4):  # registered; a taken and reported as failed; b taken
        task.step()
    task.control.signal = "SIGTERM"
    while task.ended is None:
        task.step()
    here.hear(child, left_by(task.ended))
    here.step_child(child)
    assert ("closed", ["FAILED", "INTERRUPTED", "PENDING"]) == (child.answer, statuses(here, run))


def test_dying_at_every_write_of_accept_and_called_again_the_run_is_closed_once() -> None:
    seen, number = set(), 0
    while True:
        here = world(FIRST_FAILURE)
        run, execution, child = ready(here)
        number += 1
        dying_at(here, number)
        try:
            here.step_child(child)
        except Died:
            here.table.dies_at = 0
            here.step_child(child)
        else:
            break
        here.play(execution)
        seen.add((here.run(run.run_id).status, tuple(stops(here, run)), *statuses(here, run)))
        assert at_rest(here, run)
    assert {(RunStatus.ABORTED, (ABORTER,), "FAILED", "PENDING", "PENDING")} == seen
    assert number > 4


def test_of_two_accepts_at_once_one_closes_the_run_and_both_answer() -> None:
    here = world(FIRST_FAILURE, fails="ab")
    run, execution, first = ready(here)
    second = execution.children[1]
    for _ in range(2):
        here.step_child(second)
    assert second.task is not None
    while second.task.ended is None:
        second.task.step()
    here.hear(second, left_by(second.task.ended))

    def overtaken(write: Write) -> bool:
        """The second accept goes all its way just before the first one's write that closes the run."""
        if write.key == keys.run(run.run_id) and write.sets.get("goal") == "ABORTED":
            here.table.down = lambda write: False
            here.step_child(second)
        return False

    here.table.down = overtaken
    here.step_child(first)
    assert ("failed", "failed") == (first.answer, second.answer)
    assert [ABORTER] == stops(here, run)
    assert "2 (of 2 partitions that ended) > 0" in (here.run(run.run_id).reason or "")


def test_an_accept_that_finds_the_run_on_its_way_to_a_pause_leaves_it_there() -> None:
    here = world(FIRST_FAILURE)
    run, _, child = ready(here)

    def paused(write: Write) -> bool:
        if write.key == keys.run(run.run_id) and write.sets.get("goal") == "ABORTED":
            here.table.down = lambda write: False
            here.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
        return False

    here.table.down = paused
    here.step_child(child)
    assert (RunStatus.PAUSED, []) == (here.run(run.run_id).goal, stops(here, run))


def test_what_accept_did_not_live_to_ask_settle_asks() -> None:
    here = world({"of": "rejects", "above": 2}, slices=1, errors={"rejects": 5})
    here.job = rejecting(3)
    run, execution, child = ready(here)
    child.at = "over"  # Its accept never ran, say because its execution was lost; all was reported.
    here.step(execution)
    run = here.run(run.run_id)
    assert (RunStatus.ABORTED, [ABORTER]) == (run.status, stops(here, run))
    assert "abort rule rejects: 9 (of 36 records that were read) > 2." in (run.reason or "")
    assert at_rest(here, run)


def test_the_sweep_asks_for_the_hours_of_a_run_that_nothing_is_heard_of() -> None:
    here = world()
    run, execution, child = ready(here)
    second = execution.children[1]
    for _ in range(2):
        here.step_child(second)
    assert second.task is not None
    for _ in range(5):
        second.task.step()
    here.clock.pass_(MOST_HOURS * 3600)
    assert {run.run_id: "running"} == here.swept()["did"]
    here.clock.pass_(1)
    assert {run.run_id: "ended"} == here.swept()["did"]
    assert (RunStatus.ABORTED, [ABORTER]) == (here.run(run.run_id).status, stops(here, run))
    assert at_rest(here, run)
    here.step_child(child)
    assert "failed" == child.answer  # Judged all the same; the run has ended.


def test_the_sweep_asks_nothing_of_a_run_that_is_not_planned() -> None:
    here = world()
    run = here.ask(keys=ALL)
    here.clock.pass_(MOST_HOURS * 3600 + 1)
    assert {run.run_id: "running"} == here.swept()["did"]


@pytest.mark.parametrize("generation", [0, 2])
def test_a_launch_of_another_generation_aborts_nothing(generation: int) -> None:
    here = world(FIRST_FAILURE)
    run, _, child = ready(here)
    child.data["order"]["generation"] = generation
    here.step_child(child)
    assert RunStatus.RUNNING == here.run(run.run_id).status


def test_the_row_is_the_one_item_that_only_runs_with_that_rule_have() -> None:
    row = {"of": "consecutiveFailures", "above": 1}
    for rules in ([], [FIRST_FAILURE], [row]):
        here = world(*rules, fails="ab")
        run, execution, _ = ready(here)
        here.play(execution)
        assert (here.table.get(keys.row(run.run_id)) is not None) == (rules == [row])
        counts = here.ledger.verdicts.counts(run.run_id)
        assert counts.tally(PartitionStatus.FAILED).partitions == (1 if rules == [FIRST_FAILURE] else 2)
