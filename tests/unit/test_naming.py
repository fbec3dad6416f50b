"""Partitions named by the job's own code: by a task that cannot write, whatever becomes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trueup import Partition, Throttled
from trueup.errors import UsageError
from trueup.model.ledger import Run
from trueup.model.naming import NamingOrder
from trueup.model.plan import CodeIdentity
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.platform import Ended
from trueup.worker import Control, Exit
from trueup.worker.naming import name_partitions

from .handler_fakes import READ, WRITE, Execution
from .handler_world import World, dying_at, left_by
from .worker_cases import Died, Numbers, job_file, job_of

Hook = Callable[..., Any]


def world(partitions: Hook | None, **members: Any) -> World:
    """A world whose job names its partitions by this hook."""
    hooks = {} if partitions is None else {"partitions": partitions}
    return World(job_of(**hooks, **members), job_file(partitions={"by": "job", "key": "item"}))


def abc(job: Numbers, window: object) -> list[str]:
    """A hook that names three."""
    return ["a", "b", "c"]


def begun(here: World, **changes: Any) -> tuple[Run, Execution]:
    """A run that waits for its first naming task."""
    asked = {"job": "numbers", "requestId": "r-1", "requester": "ann", **changes}
    run = here.run(here.start.handle(asked)["runId"])
    execution = here.execution(run)
    here.step(execution)
    return run, execution


def order(execution: Execution) -> NamingOrder:
    """What the task is told that the execution waits for."""
    assert execution.told is not None
    assert "name" == execution.told["do"]
    return NamingOrder.model_validate(execution.told["order"])


def planned(here: World, run: Run) -> list[str]:
    """The partitions of the run's plan."""
    plan = here.artifacts.plan_of(here.run(run.run_id))
    return [part.id for part in here.artifacts.partitions(plan.partitions)]


def after(here: World, execution: Execution, ended: Ended) -> None:
    """The state of the naming task is left like this, and planning is called again."""
    event = {**execution.data, "told": {"next": execution.told}, "ended": left_by(ended)}
    execution.told = here.plan.handle(event)


def working(here: World, execution: Execution, hook: Hook, code: CodeIdentity = READ) -> Exit:
    """The task that the execution waits for, running another hook or other code."""
    told = order(execution)
    brief = here.artifacts.brief(told.brief_key, told.brief_sha256)
    return name_partitions(job_of(partitions=hook), told, brief, here._tools(here._arn(), Control(), code))


def trail(here: World, run: Run) -> list[tuple[str, object]]:
    """How each naming task ended and what was decided, as the audit has it; in the order of the launches."""
    told = [entry for entry in here.ledger.audit.of(run.run_id) if entry.subject.startswith("plan: launch ")]
    assert {("trueup:plan", "launch-ended")} == {(entry.who, entry.verb) for entry in told}
    told.sort(key=lambda entry: int(entry.subject.rpartition(" ")[2]))
    return [(entry.why, entry.after) for entry in told]


def test_a_run_is_planned_from_what_a_task_named_and_worked_to_its_end() -> None:
    here = world(abc)
    run, execution = begun(here)
    here.play(execution)
    run = here.run(run.run_id)
    assert (RunStatus.SUCCEEDED, 3) == (run.status, run.partitions)
    assert ["item=a", "item=b", "item=c"] == sorted(planned(here, run))
    assert 3 == here.ledger.verdicts.counts(run.run_id).tally(PartitionStatus.ACCEPTED).partitions
    assert [] == list(here.ledger.tasks.of(run.run_id))


def test_the_task_runs_under_the_code_that_reads_and_is_registered_before_it_asks() -> None:
    here = world(abc)
    run, execution = begun(here)
    assert execution.told is not None
    assert READ.task_definition == execution.told["task"]["definition"]
    seen: list[Any] = []

    def hook(job: Numbers, window: object) -> list[str]:
        seen.extend(here.ledger.tasks.of(run.run_id))
        return ["a"]

    assert Exit.DONE == working(here, execution, hook)
    assert [(Phase.PLAN, 1)] == [(task.phase, task.launch) for task in seen]
    with pytest.raises(UsageError, match="the plan names"):
        working(here, execution, hook, WRITE)


def test_partition_values_and_the_window_reach_the_plan() -> None:
    def hook(job: Numbers, window: Any) -> Iterator[Partition | str]:
        yield Partition(partition_id="item=x", input=f"{window.low}..{window.high}", weight=7)
        yield "y"

    here = world(hook)
    run, execution = begun(here, start="2026-01-01", end="2026-02-01")
    here.play(execution)
    plan = here.artifacts.plan_of(here.run(run.run_id))
    first = next(part for part in here.artifacts.partitions(plan.partitions) if part.id == "item=x")
    assert ("2026-01-01..2026-02-01", 7) == (first.input, first.weight)


def fails(job: Numbers, window: object) -> list[str]:
    raise LookupError("no such table: tenants")


class Mute(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def fails_without_a_word(job: Numbers, window: object) -> list[str]:
    raise Mute


def fails_at_length(job: Numbers, window: object) -> list[str]:
    raise LookupError("x" * 500_000)


def exits(job: Numbers, window: object) -> list[str]:
    raise SystemExit(3)


def wrong_kind(job: Numbers, window: object) -> list[Any]:
    return ["a", 7]


def a_text(job: Numbers, window: object) -> str:
    return "abc"


def none_at_all(job: Numbers, window: object) -> list[str]:
    return []


def the_same_twice(job: Numbers, window: object) -> list[str]:
    return ["a", "a"]


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (fails, "LookupError: no such table: tenants"),
        (fails_without_a_word, r"Mute: its text cannot be had \(RuntimeError\)"),
        (fails_at_length, "x…"),
        (exits, "SystemExit: 3"),
        (wrong_kind, "gave int '7'"),
        (a_text, "gave str 'abc'"),
        (none_at_all, "no partitions|nothing"),
        (the_same_twice, "item=a"),
        (None, r"has no partitions\(window\)"),
    ],
)
def test_code_that_cannot_name_them_ends_the_run_with_its_error(hook: Hook | None, why: str) -> None:
    here = world(hook)
    run, execution = begun(here)
    here.play(execution)
    run = here.run(run.run_id)
    assert (RunStatus.FAILED, "FAILED") == (run.status, execution.status)
    assert run.reason is not None
    assert re.search(why, run.reason), run.reason
    assert [] == list(here.ledger.runs.unsettled())


def test_a_task_that_was_killed_is_followed_by_another_one() -> None:
    here = world(abc)
    run, execution = begun(here)
    for _ in range(3):
        after(here, execution, Ended(exit_code=137, stop_code="SpotInterruption"))
    assert 4 == order(execution).launch
    here.play(execution)
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    killed = "exit code 137, stop code SpotInterruption, reason Essential container in task exited"
    assert [(killed, "again")] * 3 + [("exit code 0", "done")] == trail(here, run)


@pytest.mark.parametrize(
    ("ended", "launches"),
    [
        (Ended(exit_code=Exit.BAD_INPUT), 1),
        (Ended(exit_code=Exit.FAULT), 2),
        (Ended(reason="CannotPullContainerError: no such image"), 2),
        (Ended(exit_code=Exit.INTERRUPTED), 10),
        (Ended(stop_code="TaskFailedToStart", reason="Capacity is unavailable at this time"), 10),
    ],
)
def test_tasks_that_leave_nothing_are_not_launched_for_ever(ended: Ended, launches: int) -> None:
    here = world(abc)
    run, execution = begun(here)
    for _ in range(launches):
        assert order(execution)
        after(here, execution, ended)
    here.play(execution)
    run = here.run(run.run_id)
    assert (RunStatus.FAILED, launches) == (run.status, run.launches)
    assert f"No task could name the partitions in {launches} launches" in (run.reason or "")
    assert ["again"] * (launches - 1) + ["failed"] == [answer for _, answer in trail(here, run)]


def test_a_launch_that_is_over_can_name_nothing_any_more() -> None:
    here = world(abc)
    run, execution = begun(here)
    late = order(execution)
    after(here, execution, Ended(exit_code=137, stop_code="SpotInterruption"))
    assert Exit.INTERRUPTED == here.naming_task(late).exit_code
    assert None is here.artifacts.named(run.run_id, late.launch)


def test_of_two_tasks_for_one_launch_one_leaves() -> None:
    here = world(abc)
    _, execution = begun(here)
    exits_ = [here.naming_task(order(execution)).exit_code for _ in range(2)]
    assert [Exit.DONE, Exit.INTERRUPTED] == exits_


def test_a_run_that_was_closed_meanwhile_names_nothing_and_ends() -> None:
    here = world(abc)
    run, execution = begun(here)
    here.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="wrong window")
    assert Exit.INTERRUPTED == here.naming_task(order(execution)).exit_code
    here.play(execution)
    assert RunStatus.CANCELLED is here.run(run.run_id).status
    assert not here.run(run.run_id).is_planned


def test_a_task_leaves_when_it_is_asked_to_and_stores_nothing() -> None:
    here = world(abc)
    run, execution = begun(here)
    told = order(execution)
    brief = here.artifacts.brief(told.brief_key, told.brief_sha256)
    control = Control()

    def asked(job: Numbers, window: object) -> Iterator[str]:
        yield "a"
        control.signal = "SIGTERM"
        yield "b"

    exited = name_partitions(job_of(partitions=asked), told, brief, here._tools(here._arn(), control, READ))
    assert (Exit.INTERRUPTED, None) == (exited, here.artifacts.named(run.run_id, told.launch))


def test_a_side_that_throttles_is_asked_again_from_the_beginning() -> None:
    calls: list[int] = []

    def hook(job: Numbers, window: object) -> Iterator[str]:
        calls.append(1)
        yield "a"
        if len(calls) < 3:
            raise Throttled(1.0)
        yield "b"

    here = world(hook)
    run, execution = begun(here)
    here.play(execution)
    assert (["item=a", "item=b"], 3) == (sorted(planned(here, run)), len(calls))


def test_what_is_deployed_meanwhile_changes_nothing() -> None:
    here = world(abc)
    run, execution = begun(here)
    newer = READ.model_copy(update={"task_definition": READ.task_definition[:-1] + "9"})
    here.ecs.families["trueup-numbers-read"] = newer
    after(here, execution, here.naming_task(order(execution)))
    assert READ == here.artifacts.plan_of(here.run(run.run_id)).read_code


@pytest.mark.parametrize("number", range(1, 12))
def test_planning_may_die_anywhere_and_be_called_again(number: int) -> None:
    here = world(abc)
    run, execution = begun(here)
    ended = here.naming_task(order(execution))
    dying_at(here, number)
    try:
        after(here, execution, ended)
    except Died:
        here.table.dies_at = 0
        after(here, execution, ended)
    here.table.dies_at = 0
    here.play(execution)
    assert (RunStatus.SUCCEEDED, 3) == (here.run(run.run_id).status, here.run(run.run_id).partitions)
    assert [("exit code 0", "done")] == trail(here, run)
