"""Why a task stops early, what that costs, and what people read of it."""

from __future__ import annotations

from typing import Any

import pytest

from trueup import Throttled, Transient
from trueup.model.ledger import Run
from trueup.model.states import PartitionStatus, RunStatus
from trueup.testing import LocalRun, ManualClock
from trueup.worker import Control, Exit
from trueup.worker.stopping import Stop, Stopped, Stopping

from .worker_cases import Numbers, contracts, error, item, job_of, last, run_of, step_until

FIVE_MINUTES = {"task": {"minutes": 5}}


def stopping(control: Control, clock: ManualClock) -> Stopping:
    return Stopping(control, clock, minutes=1)


@pytest.mark.parametrize(
    ("control", "seconds", "expected"),
    [
        (Control(), 59, "None"),
        (Control(), 60, "deadline: 60 s >= 60 s"),
        (Control(signal="SIGTERM"), 0, "signal: SIGTERM = received"),
        (Control(run_status=RunStatus.STOPPING), 0, "run: STOPPING != RUNNING"),
        (Control(lost="generation 2"), 0, "ownership: generation 2 != ours"),
        (Control(lost="generation 2", signal="SIGTERM"), 99, "ownership: generation 2 != ours"),
        (Control(signal="SIGTERM", run_status=RunStatus.STOPPING), 99, "signal: SIGTERM = received"),
        (Control(run_status=RunStatus.STOPPING), 99, "run: STOPPING != RUNNING"),
    ],
)
def test_every_reason_is_told_in_the_one_grammar(control: Control, seconds: float, expected: str) -> None:
    clock = ManualClock()
    ask = stopping(control, clock).ask
    clock.pass_(seconds)
    assert expected == str(ask())


def test_the_same_reason_stands_in_checkpoint_and_contract() -> None:
    run = run_of(job_of())
    step_until(run, "written")
    run.interrupt()
    step_until(run, "stored")
    assert "signal: SIGTERM = received" == item(run).reason
    assert ["stopped early by signal: SIGTERM = received"] == contracts(run)[0].warnings


def test_a_paused_run_lets_its_tasks_save_and_leave() -> None:
    run = run_of(job_of(), keys="ab")
    step_until(run, "written")
    run.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    ended = run.run()
    assert (RunStatus.PAUSED, Exit.INTERRUPTED) == (ended.status, last(run).worker.exit)
    assert ("run: STOPPING != RUNNING", "v1:3") == (item(run).reason, item(run).cursor)
    assert (PartitionStatus.PENDING, 1) == (item(run, "b").status, len(run.tasks))


def test_a_task_of_another_generation_stops_without_writing_anything_more() -> None:
    run = run_of(job_of())
    step_until(run, "taken")
    task, before = last(run), run.ledger.runs.get(run.run_id)
    listen(task, before.model_copy(update={"generation": 2}))
    assert ["written", "advanced"] == [step.name for step in task.loop]
    assert (Exit.INTERRUPTED, PartitionStatus.RUNNING, []) == (
        task.worker.exit,
        item(run).status,
        contracts(run),
    )


def listen(task: Any, run: Run) -> None:
    """What a heartbeat does with the run that it reads."""
    task.worker.heart._listen(run)


def test_lost_ownership_without_progress_is_no_fault_and_leaves_no_contract() -> None:
    run = run_of(job_of(write=lambda self, rows, ctx: waits_for_ever()))
    step_until(run, "taken")
    task = last(run)
    task.control.lost = "another task"
    assert [] == list(task.loop)
    assert (Exit.INTERRUPTED, []) == (task.worker.exit, contracts(run))


def waits_for_ever() -> None:
    raise Throttled(retry_after=1e9)


def slow(clock: ManualClock, seconds: float) -> Any:
    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        clock.pass_(seconds)
        return self.sink.put(rows, ctx)

    return write


def test_at_its_deadline_a_task_saves_and_leaves_and_the_next_one_goes_on() -> None:
    clock = ManualClock()
    run = run_of(job_of(write=slow(clock, 300)), sections=FIVE_MINUTES, clock=clock, checkpoint_seconds=3)
    run.run()
    # One batch of the four for each of the first four tasks; the fifth finds nothing left to read.
    assert (1, 5) == (run.accepted, len(run.tasks))
    assert [Exit.INTERRUPTED] * 4 + [Exit.DONE] == [task.worker.exit for task in run.tasks]


def test_what_makes_no_progress_by_its_own_doing_keeps_the_partition_and_leaves_with_70() -> None:
    run = run_of(job_of(write=fails_passing))
    step_until(run, "taken")
    task = last(run)
    assert ["stored"] == [step.name for step in task.loop]
    assert (Exit.FAULT, PartitionStatus.RUNNING, 1) == (task.worker.exit, item(run).status, item(run).takes)


def fails_passing(self: Numbers, rows: Any, ctx: Any) -> Any:
    raise Transient("the network")


def test_transient_errors_are_tried_again_five_times_before_they_count() -> None:
    tries: list[int] = []

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        tries.append(1)
        raise Transient("the network")

    run = run_of(job_of(write=write))
    run.run()
    # Two takes without progress, with five attempts each.
    assert (10, PartitionStatus.STUCK) == (len(tries), item(run).status)
    assert error(run).startswith("NoProgress | taken 2 times in a row without a checkpoint")
    assert "; stopped early by transient: 5 attempts of write >= 5 (the network)" in error(run)


def test_a_transient_error_that_passes_is_no_more_than_a_delay() -> None:
    failures = iter([Transient("one"), Transient("two")])

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if failure := next(failures, None):
            raise failure
        return self.sink.put(rows, ctx)

    run = run_of(job_of(write=write))
    run.run()
    assert (1, 1, 0) == (run.accepted, len(run.tasks), run.replayed)


def throttled_for(launches: int) -> type[Numbers]:
    """A job whose sink throttles every write of its first launches."""

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if ctx.launch <= launches:
            raise Throttled("slow down", retry_after=5)
        return self.sink.put(rows, ctx)

    return job_of(write=write)


def test_throttling_without_end_interrupts_and_costs_nothing() -> None:
    run = run_of(throttled_for(5))
    step_until(run, "interrupted")
    assert "throttled: 8 attempts of write >= 8 (slow down)" == item(run).reason
    run.run()
    assert [Exit.INTERRUPTED] * 5 + [Exit.DONE] == [task.worker.exit for task in run.tasks]
    assert (1, 0) == (run.accepted, run.replayed)


def test_retry_after_is_waited_at_least() -> None:
    clock = ManualClock()
    failures = iter([Throttled(retry_after=100)])

    def write(self: Numbers, rows: Any, ctx: Any) -> Any:
        if failure := next(failures, None):
            raise failure
        return self.sink.put(rows, ctx)

    run_of(job_of(write=write), clock=clock).run()
    assert 100 <= clock.monotonic()


class Watching(ManualClock):
    """A clock that calls `watch` whenever somebody sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.watch: Any = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.watch()


def parked_run() -> tuple[LocalRun, Watching]:
    clock = Watching()
    run = run_of(throttled_for(1), clock=clock)
    step_until(run, "taken")
    return run, clock


def test_a_throttled_task_says_so_in_its_item() -> None:
    run, clock = parked_run()
    told: list[str | None] = []

    def beat() -> None:
        last(run).worker.heart.beat()  # type: ignore[union-attr]
        told.extend(task.waiting for task in run.ledger.tasks.of(run.run_id))

    clock.watch = beat
    step_until(run, "interrupted")
    assert {"throttled: slow down"} == set(told)


def test_after_the_wait_a_task_does_not_say_that_it_waits() -> None:
    run, _ = parked_run()
    run.run()
    assert [None, None] == [task.control.waiting for task in run.tasks]


def test_a_stop_request_ends_a_wait_at_once() -> None:
    run, clock = parked_run()
    clock.watch = run.interrupt
    before = clock.monotonic()
    step_until(run, "interrupted")
    assert 0.5 >= clock.monotonic() - before
    assert "signal: SIGTERM = received" == item(run).reason


@pytest.mark.parametrize("hook", ["read", "count", "finish", "raise_fence", "write", "transform", "combine"])
def test_a_cancel_while_parked_in_any_hook_never_reads_as_success(hook: str) -> None:
    clock = Watching()
    parked = [True]

    def park(self: Numbers, *arguments: Any) -> Any:
        if parked:
            raise Throttled(retry_after=60)
        return getattr(Numbers, hook)(self, *arguments)

    run = run_of(job_of(**{hook: park}), clock=clock)
    clock.watch = run.interrupt
    step_until(run, "interrupted")
    assert (PartitionStatus.INTERRUPTED, 0, 0) == (item(run).status, run.accepted, item(run).takes)
    clock.watch = lambda: None
    parked.clear()
    run.run()
    assert (1, 12) == (run.accepted, run.records.read)


def test_a_deadline_while_parked_costs_nothing() -> None:
    clock = Watching()
    sections = {"limits": {"max_concurrency": 1, "records_per_second": 3}, **FIVE_MINUTES}
    run = run_of(job_of(), sections=sections, clock=clock)
    # Another task takes the whole rate for the time of three tasks; not one of the three is to blame.
    clock.watch = lambda: clock.monotonic() < 1000 and take_the_rate(run, clock)
    run.plan()
    take_the_rate(run, clock)
    run.run()
    assert [Exit.INTERRUPTED] * 3 + [Exit.DONE] == [task.worker.exit for task in run.tasks]
    assert 1 == run.accepted


def take_the_rate(run: LocalRun, clock: ManualClock) -> None:
    run.ledger.rates.reserve(run.run_id, 15, 3, clock.now().timestamp())


def test_a_deadline_without_progress_costs_a_take_and_twice_is_stuck() -> None:
    clock = ManualClock()

    def read(self: Numbers, part: Any, after: str | None) -> Any:
        clock.pass_(300)
        raise Transient("nothing came")
        yield

    run = run_of(job_of(read=read), sections=FIVE_MINUTES, clock=clock)
    run.run()
    assert (PartitionStatus.STUCK, 2) == (item(run).status, len(run.tasks))
    assert [Exit.FAULT, Exit.FAULT] == [task.worker.exit for task in run.tasks]


@pytest.mark.parametrize(
    "stop_code", ["SpotInterruption", "TerminationNotice", "InfrastructureHealth", "UserInitiated"]
)
def test_interruptions_from_outside_never_count(stop_code: str) -> None:
    run = run_of(job_of())
    for _ in range(5):
        step_until(run, "taken")
        run.kill(stop_code=stop_code)
    assert (PartitionStatus.RUNNING, 0) == (item(run).status, item(run).takes)
    run.run()
    assert 1 == run.accepted


def test_a_wait_without_a_reason_to_stop_ends_after_its_time() -> None:
    clock = ManualClock()
    stopping(Control(), clock).wait(7.25, "nothing")
    assert 7.25 == clock.monotonic()


def test_a_wait_sums_up_what_was_waited() -> None:
    clock = ManualClock()
    waiting = stopping(Control(), clock)
    waiting.wait(2, "one")
    clock.pass_(5)
    waiting.wait(3, "two")
    assert 5.0 == waiting.waited


@pytest.mark.parametrize(
    ("stop", "parked", "expected"),
    [
        (Stop("deadline", "60 s", ">=", "60 s"), False, True),
        (Stop("deadline", "60 s", ">=", "60 s"), True, False),
        (Stop("signal", "SIGTERM", "=", "received"), False, False),
        (Stop("transient", "5 attempts", ">=", "5", Exit.FAULT), False, True),
    ],
)
def test_whose_doing_a_stop_is(stop: Stop, parked: bool, expected: bool) -> None:
    assert expected == Stopped(stop, parked=parked).own_doing
