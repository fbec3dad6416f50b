"""How a task leaves: its exit code, and the contract that it leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from trueup import Throttled, Transient
from trueup.errors import UsageError
from trueup.model.plan import CodeIdentity
from trueup.model.result import ResultContract
from trueup.model.states import PartitionStatus, ResultStatus, RunStatus, TaskStatus
from trueup.testing import CODE, LocalRun
from trueup.worker import Exit, Identity, Worker

from .worker_cases import (
    FailingStore,
    FailingTable,
    Numbers,
    contracts,
    error,
    item,
    job_of,
    last,
    run_of,
    step_until,
)

YEAR = {"parameters": {"type": "object", "properties": {"year": {"type": "string"}}}}


def exits(run: LocalRun) -> list[Exit]:
    """The exit codes of all tasks, as they were launched."""
    run.run()
    return [task.worker.exit for task in run.tasks]


def raises(failure: BaseException) -> Any:
    """A hook that raises."""

    def hook(self: Numbers, *arguments: Any) -> Any:
        raise failure

    return hook


def test_a_finished_slice_leaves_with_0() -> None:
    assert [Exit.DONE] == exits(run_of(job_of(), keys="ab"))


def test_a_slice_whose_partitions_all_failed_is_finished_too() -> None:
    run = run_of(job_of(transform=raises(ValueError("no"))), keys="ab")
    assert [Exit.DONE] == exits(run)
    assert TaskStatus.FAILED == contracts(run)[0].status


def test_a_wrong_code_identity_leaves_with_64_and_names_both() -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    task = last(run)
    other = CodeIdentity(task_definition=CODE.task_definition[:-1] + "2", image_digest=CODE.image_digest)
    task.worker._tools.identity = Identity(task.arn, other)
    run.run()
    assert Exit.BAD_INPUT == run.tasks[0].worker.exit
    assert (PartitionStatus.FAILED, 1) == (item(run).status, len(run.tasks))


def test_params_that_do_not_validate_leave_with_64() -> None:
    class Params(BaseModel):
        year: int

    run = run_of(job_of(Params=Params), params={"year": "soon"}, sections=YEAR)
    assert [Exit.BAD_INPUT] == exits(run)
    assert PartitionStatus.FAILED == item(run).status


def test_params_that_validate_are_typed() -> None:
    class Params(BaseModel):
        year: int

    seen: list[int] = []
    job = job_of(Params=Params, open=lambda self: seen.append(self.params.year))
    run = run_of(job, params={"year": "2013"}, sections=YEAR)
    assert ([Exit.DONE], [2013]) == (exits(run), seen)


def test_a_usage_error_in_open_leaves_with_64() -> None:
    run = run_of(job_of(open=raises(UsageError("no such region"))), keys="ab")
    assert [Exit.BAD_INPUT] == exits(run)
    assert 2 == run.count(PartitionStatus.FAILED)


def test_a_plan_that_is_not_the_one_that_was_hashed_leaves_with_64() -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    run.artifacts.store.put(run.ledger.runs.get(run.run_id).plan_key, b"{}")
    task = last(run)
    assert [] == list(task.loop)
    assert Exit.BAD_INPUT == task.worker.exit


def test_a_bug_in_open_leaves_with_70_and_twice_fails_the_slice() -> None:
    run = run_of(job_of(open=raises(KeyError("host"))), keys="ab")
    assert [Exit.FAULT, Exit.FAULT] == exits(run)
    assert 2 == run.count(PartitionStatus.FAILED)


@pytest.mark.parametrize("code", [0, 64, 75])
def test_an_exit_in_open_is_a_bug_whatever_its_code(code: int) -> None:
    run = run_of(job_of(open=raises(SystemExit(code))), keys="ab")
    assert [Exit.FAULT, Exit.FAULT] == exits(run)
    assert 2 == run.count(PartitionStatus.FAILED)


@pytest.mark.parametrize("hook", ["read", "transform", "combine", "write", "count", "finish"])
@pytest.mark.parametrize("code", [0, 64, 75])
def test_an_exit_in_a_hook_fails_the_partition_whatever_its_code(hook: str, code: int) -> None:
    run = run_of(job_of(**{hook: raises(SystemExit(code))}), keys="ab")
    assert [Exit.DONE] == exits(run)
    assert 2 == run.count(PartitionStatus.FAILED)
    assert f"SystemExit | {code} | None" == error(run)


def test_open_may_ask_to_be_tried_again() -> None:
    failures: list[Exception] = [Throttled(), Transient()]

    def opens(self: Numbers) -> None:
        if failures:
            raise failures.pop()

    assert [Exit.DONE] == exits(run_of(job_of(open=opens)))


def test_a_task_that_may_not_open_is_interrupted_by_a_signal() -> None:
    run = run_of(job_of(open=raises(Throttled())))
    step_until(run, "registered")
    run.interrupt()
    task = last(run)
    assert [] == list(task.loop)
    assert Exit.INTERRUPTED == task.worker.exit


def test_an_interrupted_task_leaves_with_75() -> None:
    run = run_of(job_of())
    step_until(run, "written")
    run.interrupt()
    assert [Exit.INTERRUPTED, Exit.DONE] == exits(run)


def test_a_task_of_a_closed_run_leaves_with_75_and_registers_nothing() -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    order, tools = last(run).worker._order, last(run).worker._tools
    run.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    late = Worker(run.job_class, order.model_copy(update={"launch": 9}), tools)
    assert (Exit.INTERRUPTED, [1]) == (late.run(), [task.launch for task in run.ledger.tasks.of(run.run_id)])


def test_a_second_task_of_one_launch_leaves_with_75() -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    worker = last(run).worker
    twin = Worker(run.job_class, worker._order, worker._tools)
    twin._tools = type(worker._tools)(
        run.ledger, run.artifacts, Identity("arn:aws:ecs:x:1:task/t/twin", CODE)
    )
    assert Exit.INTERRUPTED == twin.run()
    assert [last(run).arn] == [task.task for task in run.ledger.tasks.of(run.run_id)]


def test_a_store_that_fails_after_progress_interrupts_and_costs_nothing() -> None:
    table = FailingTable()
    run = run_of(job_of(), keys="ab", table=table)
    step_until(run, "reported")
    step_until(run, "taken")
    table.down = lambda write: write.sets.get("cursor") is not None
    task = last(run)
    assert ["written"] == [step.name for step in task.loop]
    assert Exit.INTERRUPTED == task.worker.exit


def test_a_store_that_never_works_is_a_fault_so_that_it_ends() -> None:
    table = FailingTable()
    table.down = lambda write: write.sets.get("cursor") is not None
    run = run_of(job_of(), keys="ab", table=table)
    assert {Exit.FAULT} == set(exits(run))
    assert 2 == run.count(PartitionStatus.STUCK)


def test_a_result_that_cannot_be_stored_loses_nothing() -> None:
    store = FailingStore()
    store.down = lambda key: "/results/" in key
    run = run_of(job_of(), keys="ab", store=store)
    step_until(run, "reported", 2)
    assert None is last(run).step()
    store.down = lambda key: False
    run.run()
    assert (2, 1, []) == (run.accepted, len(run.tasks), contracts(run))


@pytest.mark.parametrize("ended", ["done", "interrupted", "failed"])
def test_the_contract_that_is_stored_is_the_one_that_the_worker_shows(ended: str) -> None:
    members = {"transform": raises(ValueError("no"))} if ended == "failed" else {}
    run = run_of(job_of(**members))
    step_until(run, "taken")
    if ended == "interrupted":
        run.interrupt()
    step_until(run, "stored")
    assert [run.tasks[0].worker.contract] == contracts(run)


def test_an_interrupted_contract_says_how_far_it_got() -> None:
    run = run_of(job_of())
    step_until(run, "written", 2)
    run.interrupt()
    step_until(run, "stored")
    found = contracts(run)[0]
    part = found.partitions[0]
    assert (TaskStatus.INTERRUPTED, ResultStatus.INTERRUPTED, "v1:6", 6) == (
        found.status,
        part.status,
        part.cursor,
        part.records_read,
    )


def test_the_contract_names_run_plan_code_and_task() -> None:
    run = run_of(job_of())
    ended = run.run()
    found = contracts(run)[0]
    expected = (
        ended.run_id,
        1,
        0,
        1,
        ended.plan_sha256,
        last(run).arn,
        CODE.task_definition,
        CODE.image_digest,
    )
    assert expected == (
        found.run_id,
        found.generation,
        found.slice_id,
        found.launch,
        found.plan_sha256,
        found.task_arn,
        found.task_definition,
        found.image_digest,
    )


def test_a_result_that_was_stored_before_is_no_reason_to_fail() -> None:
    run = run_of(job_of())
    step_until(run, "reported")
    worker = last(run).worker
    entry = item(run).entry
    assert entry is not None
    first: ResultContract = worker._contract(run.plan()).with_partitions([entry])
    run.artifacts.put_result(first.model_copy(update={"warnings": ["the same, told otherwise"]}))
    run.run()
    assert (Exit.DONE, 1) == (worker.exit, run.accepted)


def test_close_is_called_also_after_an_error() -> None:
    closed: list[bool] = []
    job = job_of(close=lambda self: closed.append(True), read=raises(OSError("gone")))
    run_of(job).run()
    assert [True] == closed


@pytest.mark.parametrize("failure", [OSError("no route"), SystemExit("no route")])
def test_a_close_that_fails_changes_nothing_and_is_warned_of(failure: BaseException) -> None:
    run = run_of(job_of(close=raises(failure)))
    assert [Exit.DONE] == exits(run)
    warned = f"close failed with {type(failure).__name__}: no route"
    assert (1, [warned]) == (run.accepted, contracts(run)[0].warnings)


def test_the_codes_are_those_that_the_design_publishes() -> None:
    assert [0, 64, 70, 75] == [int(code) for code in Exit]
