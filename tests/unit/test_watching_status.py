"""How a run stands: true at any moment, for a handful of reads, and honest about what it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import pytest

from trueup import Batch
from trueup.errors import NotFound, Throttled
from trueup.ledger import keys
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Item, Key, Write
from trueup.model.counters import Counters
from trueup.model.ledger import Counts, LaunchTimes, PartitionItem, Tally, TaskItem
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.model.view import RunDetail
from trueup.watching import Watch
from trueup.watching.progress import Standing

from .handler_world import World
from .worker_cases import FailingTable, job_file, job_of, position

KEYS = [f"k{number:02d}" for number in range(40)]


def world(**sections: Any) -> World:
    """A world whose partitions are of several lengths, which the plan does not know."""

    def read(self: Any, part: Any, after: str | None) -> Iterator[Any]:
        size = 3 * (4 + crc32(part.id.encode()) % 3)
        for low in range(position(after), size, 3):
            yield Batch(list(range(low, low + 3)), f"v1:{low + 3}")

    sections = {"limits": {"max_concurrency": 4}, **sections}
    return World(job_of(read=read, count=lambda self, part: None), job_file(**sections))


def rounds(here: World, most: int = 2_000) -> Iterator[None]:
    """A run, played a second at a time: each task goes one point further, and beats."""
    (execution,) = here.steps.executions.values()
    for _ in range(most):
        if execution.status != "RUNNING":
            return
        here.step(execution)
        for child in list(execution.children):
            here.step_child(child)
            if child.task is not None:
                child.task.step()
                if child.task.worker.heart is not None and child.task.ended is None:
                    child.task.worker.heart.beat()
        here.clock.pass_(1.0)
        yield
    raise AssertionError("the run did not end")


def watch(here: World) -> Watch:
    """What looks at the runs of a world."""
    return Watch(here.ledger, here.artifacts, here.clock)


def told(here: World) -> list[RunDetail]:
    """What is said of a run after each second of it."""
    run = here.ask(keys=KEYS)
    return [watch(here).status(run.run_id) for _ in rounds(here)]


def test_a_run_that_nobody_planned_yet_waits_for_its_plan() -> None:
    here = world()
    detail = watch(here).status(here.ask(keys=KEYS).run_id)
    assert ("its plan", None, 0.0) == (detail.waits_for, detail.run.partitions, detail.spending.dollars)
    assert detail.eta.seconds is None


def test_progress_grows_with_what_tasks_report_and_not_only_with_what_was_accepted() -> None:
    details = told(world())
    done = [one.partitions.done for one in details]
    assert done == sorted(done)
    assert (0, 40) == (done[0], done[-1])
    assert any(one.partitions.done > 0 and not one.by_state for one in details)
    work = [one.work.share for one in details]
    assert 1.0 == work[-1]
    assert len(set(work)) > len(set(done))  # also within partitions


def test_the_end_is_measured_before_it_is_told_and_then_right_from_half_way_on() -> None:
    details = told(world())
    first = next(number for number, one in enumerate(details) if one.eta.seconds is not None)
    assert all(one.eta.basis.startswith("measuring") for one in details[:first])
    half = next(number for number, one in enumerate(details) if one.work.share >= 0.5)
    assert sum(one.eta.seconds is not None for one in details[half:]) > 20
    gone = next(number for number, one in enumerate(details) if number > half and not one.tasks)
    for number, one in enumerate(details[half:gone], start=half):
        if one.eta.seconds:
            # The 8 s are what leaving, accepting and settling take here, which no estimate knows of.
            assert one.eta.seconds == pytest.approx(gone - number, rel=0.25, abs=8), (number, one.eta)


def test_a_task_says_what_it_waits_for() -> None:
    asked = iter([Throttled("the table is busy"), *[None] * 10_000])
    seen: list[str | None] = []

    def write(self: Any, rows: Any, ctx: Any) -> Any:
        if (error := next(asked)) is not None:
            raise error
        return self.sink.put(rows, ctx)

    here = World(job_of(write=write), job_file())
    run = here.ask()
    slept = here.clock.sleep

    def sleep(seconds: float) -> None:
        (task,) = [one for one in here.ecs.tasks.values() if one.ended is None]
        assert task.worker.heart is not None
        task.worker.heart.beat()
        seen.extend(one.waiting for one in watch(here).status(run.run_id).tasks)
        slept(seconds)

    here.clock.sleep = sleep  # type: ignore[method-assign]
    here.play(here.execution(run))
    assert "throttled: the table is busy" in seen
    (life,) = here.ledger.tasks.lives(run.run_id)
    assert 1 == life.throttled


def standing(**changes: Any) -> Standing:
    """A phase of 10 partitions of 10 s: 6 ended in 90 s of tasks, and one is at work for 5 s."""
    now = datetime(2026, 1, 1, 1, tzinfo=UTC)
    task = TaskItem(
        phase=Phase.APPLY,
        slice_id=1,
        launch=2,
        generation=1,
        task="arn",
        registered_at=now - timedelta(seconds=5),
        beat_at=now,
        partition="item=a",
        records=20,
        work_left=40,
        **changes,
    )
    held = PartitionItem(
        partition_id="item=a",
        status=PartitionStatus.RUNNING,
        launch=2,
        work=10_000,
        counters=Counters(read=20, used=20),
        taken_at=now - timedelta(seconds=5),
    )
    ended = Tally(partitions=6, work=60_000, records=Counters(read=240, used=240))
    counts = Counts(by_state={PartitionStatus.ACCEPTED: ended}, task_seconds=90)
    held_now = {"item=a": held}
    launches = LaunchTimes(stopped=2, ended=2, ending=8_000, started=2, starting=20_000)
    return Standing(counts, Counts(), 95, [task], held_now, 10, 100.0, now, launches, at_once=1, slices=3)


def test_what_a_task_has_done_of_its_partition_is_told_from_records() -> None:
    (task,) = standing().tasks
    # 240 records for 60 s of work: 20 are half of the 40 that 10 s of work should have.
    assert (4.0, 0.5, 65.0) == (standing().records_for_work, standing().share(task), standing().work_done)


def test_the_time_left_is_the_work_left_at_the_pace_so_far_and_what_comes_after_it() -> None:
    eta = standing().eta()
    # 95 s less 8 s of endings for 65 s of work; the task lived 5 s for 5 s of work, and 10 s of work count at
    # the run's pace. 4 s until its end is accepted, and 3 s until the run's is written.
    assert round(35 * (5 + 10 * (95 - 8) / 65) / 15 + 4 + 3) == eta.seconds == 50
    assert eta.basis.startswith("1.34 task seconds for a second of estimated work, measured over 6 of 10")
    assert eta.basis.endswith("35 s of it left, 1 tasks at work; 10 s to start a task and 4 s to accept one")


def test_slices_that_nobody_has_yet_wait_for_a_slot_and_cost_a_start_and_an_end() -> None:
    here = standing()
    (task,) = here.tasks
    less = replace(here, tasks=[task.model_copy(update={"work_left": 10})])
    pace = (95 - 8) / 65
    mine = 5 * (5 + 10 * pace) / 15 + 4
    # 30 s of work are nobody's: one slice of the three. One after the other, or side by side,
    # where its task is taken to be half started.
    for at_once, seconds in ((1, mine + 10 + 30 * pace + 4), (2, 10 / 2 + 30 * pace + 4)):
        eta = replace(less, at_once=at_once).eta()
        assert round(seconds + 3) == eta.seconds
        assert "1 slices to come" in eta.basis


def test_who_waits_to_be_accepted_longer_than_others_did_waits_a_little_longer_still() -> None:
    here = standing()
    (task,) = here.tasks
    through = task.model_copy(
        update={"partition": None, "reported": 4, "work_left": 0.0, "work_reported": 40.0}
    )
    told = []
    for waited in (1, 3, 20):
        now = here.now + timedelta(seconds=waited)
        told.append(replace(here, tasks=[through], held={}, now=now).eta().seconds)
    assert [4 - 1 + 3, 4 - 3 + 3, 25 - 20 + 3] == told


def test_between_two_heartbeats_the_time_left_runs_down_and_nothing_else_changes() -> None:
    here = standing()
    later = replace(here, now=here.now + timedelta(seconds=8), task_seconds=here.task_seconds + 8)
    assert (50, 42) == (here.eta().seconds, later.eta().seconds)
    assert here.pace == later.pace


def test_what_a_task_reported_is_done_also_when_it_is_gone_and_nobody_judged_it_yet() -> None:
    here = standing()
    (task,) = here.tasks
    reporting = replace(here, tasks=[task.model_copy(update={"reported": 3, "work_reported": 30.0})], held={})
    gone = here.counts.model_copy(update={"reported": 3, "reported_work": 30_000})
    judging = replace(here, counts=gone, tasks=[], held={})
    assert (9, 90.0) == (reporting.done, reporting.work_done) == (judging.done, judging.work_done)
    # It died between two heartbeats: more was judged than it had said.
    less = replace(here, counts=here.counts.model_copy(update={"reported": -1}), tasks=[], held={})
    assert 6 == less.done


def test_all_that_is_worked_and_not_judged_yet_is_no_end_but_near_it() -> None:
    here = standing()
    all_of_it = here.counts.model_copy(update={"reported": 4, "reported_work": 40_000})
    eta = replace(here, counts=all_of_it, tasks=[], held={}).eta()
    assert (3, "all is worked, and what was reported is being accepted") == (eta.seconds, eta.basis)


@pytest.mark.parametrize(("seconds", "said"), [(0, None), (50, None), (90, "slow: 95 s at item=a")])
def test_a_partition_that_takes_much_longer_than_expected_is_told(seconds: int, said: str | None) -> None:
    here = standing()
    late = here.now + timedelta(seconds=seconds)
    (task,) = here.tasks
    told = replace(here, now=late).straggler(task.model_copy(update={"beat_at": late}))
    assert told is None if said is None else (told or "").startswith(said)


def test_who_does_not_beat_is_pointed_out() -> None:
    here = standing()
    (task,) = here.tasks
    late = replace(here, now=here.now + timedelta(seconds=61))
    assert "silent: no heartbeat for 61 s" == late.straggler(task)


def test_the_cost_so_far_stands_beside_the_estimate() -> None:
    details = told(world())
    dollars = [one.spending.dollars for one in details]
    assert dollars == sorted(dollars)
    assert dollars[-1] > 0
    assert details[-1].spending.estimated == pytest.approx(
        sum(figure.usd or 0 for figure in _estimate(details[-1]).figures), abs=1e-3
    )


def _estimate(detail: RunDetail) -> Any:
    here = world()
    run = here.ask(keys=KEYS)
    here.step(here.execution(run))
    found = here.artifacts.estimate(run.run_id)
    assert found is not None
    assert found.partitions == detail.run.partitions
    return found


@pytest.mark.parametrize(
    ("goal", "waits"),
    [(RunStatus.PAUSED, "4 tasks to be proved"), (RunStatus.CANCELLED, "4 tasks to be")],
)
def test_a_run_on_its_way_to_an_end_waits_for_its_tasks(goal: RunStatus, waits: str) -> None:
    here = world()
    run = here.ask(keys=KEYS)
    playing = rounds(here)
    while len(list(here.ledger.tasks.of(run.run_id))) < 4:
        next(playing)
    here.ledger.runs.stop(run.run_id, goal, who="ann", why="lunch")
    detail = watch(here).status(run.run_id)
    assert (detail.waits_for or "").startswith(waits)
    assert ("the run is STOPPING", None) == (detail.eta.basis, detail.eta.seconds)
    for _ in playing:
        pass
    detail = watch(here).status(run.run_id)
    assert (goal, []) == (detail.run.status, detail.tasks)
    if goal is RunStatus.PAUSED:
        assert "a person to resume it; it keeps its window of numbers" == detail.waits_for


def test_a_sample_is_followed_phase_by_phase() -> None:
    here = world()
    run = here.ask(keys=KEYS, sample=2)
    seen = {}
    for _ in rounds(here):
        detail = watch(here).status(run.run_id)
        seen.setdefault(detail.phase, detail.partitions.total)
    assert {Phase.REHEARSE: 2, Phase.APPLY: 40} == {phase: int(total) for phase, total in seen.items()}


def test_an_unknown_run_is_named() -> None:
    with pytest.raises(NotFound, match="no run nothing"):
        watch(world()).status("nothing")


class CountingTable(FailingTable):
    """A table that counts the items it gives."""

    items = 0

    def get(self, key: Key) -> Item | None:
        self.items += 1
        return super().get(key)

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        self.items += len(keys)
        return super().get_many(keys)

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        for item in super().query(pk, prefix, after):
            self.items += 1
            yield item


def test_status_reads_a_handful_of_items_and_two_for_each_task_however_many_partitions_there_are() -> None:
    table = CountingTable()
    here = World(job_of(), job_file(limits={"max_concurrency": 16}), table=table)
    many = [f"p{number:06d}" for number in range(320)]
    run = here.ask(keys=many)
    playing = rounds(here)
    while sum(one.partition is not None for one in here.ledger.tasks.of(run.run_id)) < 16:
        next(playing)
    _fill(table, run.run_id, 100_000 - len(many))
    table.items = 0
    detail = watch(here).status(run.run_id)
    assert 16 == len(detail.tasks)
    assert table.items <= 20 + 2 * 16


class ForgettingTable(CountingTable):
    """A table whose tasks of one run are proved stopped while somebody reads them."""

    when = ""
    forget: Callable[[], None] = staticmethod(lambda: None)

    def query(self, pk: str, prefix: str = "", after: str = "") -> Iterator[Item]:
        now, self.when = self.when if prefix == "TASK#" else "", "" if prefix == "TASK#" else self.when
        if now == "before":
            self.forget()
        yield from list(super().query(pk, prefix, after))
        if now == "after":
            self.forget()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 4])
def test_progress_neither_jumps_nor_falls_back_where_tasks_are_proved_stopped_while_they_are_read(
    when: str, number: int
) -> None:
    table = ForgettingTable()
    here = World(job_of(), job_file(limits={"max_concurrency": 16}), table=table)
    run = here.ask(keys=[f"p{index:06d}" for index in range(320)])
    playing = rounds(here)
    while len(through := [one for one in here.ledger.tasks.of(run.run_id) if one.is_through]) < number:
        next(playing)
    before = watch(here).status(run.run_id)

    def forget() -> None:
        for task in through[:number]:
            here.ledger.tasks.proved_stopped(run.run_id, task)

    table.when, table.forget, table.items = when, forget, 0  # type: ignore[method-assign]
    at_it = watch(here).status(run.run_id)
    assert table.items <= 20 + 2 * len(before.tasks)
    after = watch(here).status(run.run_id)
    assert before.partitions == at_it.partitions == after.partitions
    assert before.work == at_it.work == after.work
    assert len(before.tasks) - number == len(at_it.tasks) == len(after.tasks)


def _fill(table: MemoryTable, run_id: str, number: int) -> None:
    """Partitions of the run that ended before."""
    for index in range(number):
        partition_id = f"item=q{index:06d}"
        sets = {"partitionId": partition_id, "status": PartitionStatus.ACCEPTED.value}
        table.write(Write(keys.partition(run_id, Phase.APPLY, partition_id), sets=sets))
