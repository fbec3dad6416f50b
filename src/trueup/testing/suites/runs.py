"""Runs and their tasks: started once, launched while open, ended when no task is left."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from datetime import timedelta
from typing import Any

from trueup.errors import LaunchTaken, LostOwnership, RequestError, RunClosed, Stale, TrueupError
from trueup.ledger import Ledger, keys
from trueup.ledger.table import Table, Write
from trueup.model.ledger import Run, TaskItem
from trueup.model.states import RUN_ARROWS, PartitionStatus, RunStatus
from trueup.testing.suites.support import (
    APPLY,
    FEBRUARY,
    START,
    Scene,
    TickingClock,
    a_run,
    a_task,
    in_threads,
    refusal,
    unique,
)

R = RunStatus
GOALS = [after for before, after in RUN_ARROWS if before is R.STOPPING]


class RunSuite:
    """Starting, launching and ending runs."""

    def test_a_run_is_read_back_as_it_was_created(self, table: Table) -> None:
        run = a_run()
        ledger = Ledger(table, TickingClock())
        assert run == ledger.runs.create(run)
        assert run == ledger.runs.get(run.run_id)

    def test_a_run_that_nobody_started_is_an_error_that_names_it(self, table: Table) -> None:
        assert "no-such-run" in str(refusal(TrueupError, Ledger(table).runs.get, "no-such-run"))

    def test_a_request_asked_twice_starts_one_run(self, table: Table) -> None:
        scene = Scene(table)
        again = a_run(request_id=scene.run.request_id, target=scene.run.target)
        assert scene.run == scene.ledger.runs.create(again)
        refusal(TrueupError, scene.ledger.runs.get, again.run_id)
        assert ["start"] == scene.verbs()

    def test_a_request_asked_again_later_gives_the_run_as_it_stands_now(self, table: Table) -> None:
        scene = Scene(table)
        stopped = scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        assert stopped == scene.ledger.runs.create(scene.run)

    def test_a_request_id_used_for_something_else_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        changes: list[dict[str, Any]] = [
            {"window": FEBRUARY},
            {"params": {}},
            {"job": "x"},
            {"dry_run": True},
            {"undoes": "another-run"},
        ]
        for change in changes:
            other = a_run(request_id=scene.run.request_id, **change)
            error = refusal(RequestError, scene.ledger.runs.create, other)
            assert "requestId" == error.field
            assert scene.run_id in str(error)
            refusal(TrueupError, scene.ledger.runs.get, other.run_id)

    def test_a_run_id_that_another_request_has_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        error = refusal(RequestError, scene.ledger.runs.create, a_run(run_id=scene.run_id))
        assert "runId" == error.field
        assert scene.run == scene.ledger.runs.get(scene.run_id)

    def test_of_eight_requests_at_once_one_starts_a_run_and_all_get_it(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        request_id, target = unique("request"), unique("target")
        answers = in_threads(8, lambda _: ledger.runs.create(a_run(request_id=request_id, target=target)))
        runs = {answer.run_id for answer in answers if isinstance(answer, Run)}
        assert (1, 8) == (len(runs), sum(isinstance(answer, Run) for answer in answers))
        assert ["start"] == [entry.verb for entry in ledger.audit.of(runs.pop())]

    def test_of_eight_requests_that_differ_under_one_id_one_wins(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        request_id = unique("request")
        answers = in_threads(8, lambda i: ledger.runs.create(a_run(request_id=request_id, params={"i": i})))
        refused = [answer for answer in answers if isinstance(answer, RequestError)]
        assert (1, 7) == (sum(isinstance(answer, Run) for answer in answers), len(refused))
        assert {"requestId"} == {error.field for error in refused}

    def test_a_plan_is_pinned_once(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        run = ledger.runs.create(a_run(plan_key="", plan_sha256="", partitions=0))
        assert not run.is_planned
        for _ in range(2):
            planned = ledger.runs.pin(run, "plan.json", "1" * 64, 3)
            assert ("plan.json", "1" * 64, 3) == (planned.plan_key, planned.plan_sha256, planned.partitions)
        error = refusal(Stale, ledger.runs.pin, run, "other.json", "2" * 64, 4)
        assert "no other plan is pinned" == error.clause
        assert planned == ledger.runs.get(run.run_id)

    def test_no_plan_is_pinned_to_a_run_that_is_closed(self, table: Table) -> None:
        ledger = Ledger(table, TickingClock())
        run = ledger.runs.create(a_run(plan_key="", plan_sha256="", partitions=0))
        ledger.runs.stop(run.run_id, R.CANCELLED, who="ann", why="no")
        assert "the run is open" == refusal(RunClosed, ledger.runs.pin, run, "plan.json", "1" * 64, 3).clause

    def test_a_run_is_on_the_list_until_it_is_at_rest_and_settled(self, table: Table) -> None:
        scene = Scene(table)
        runs = scene.ledger.runs

        def listed() -> bool:
            return scene.run_id in set(runs.unsettled())

        runs.settled(scene.run_id)
        assert listed()  # It is open.
        runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        runs.settled(scene.run_id)
        assert listed()  # It is on its way.
        runs.finish(scene.run_id, R.PAUSED, who="settler")
        assert listed()
        for _ in range(2):
            runs.settled(scene.run_id)
            assert not listed()

    def test_no_task_registers_for_a_launch_that_is_over(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.tasks.register(scene.run_id, a_task(1))
        for _ in range(2):
            for launch in (1, 2):
                scene.ledger.tasks.end_launch(scene.run_id, launch)
        error = refusal(LaunchTaken, scene.ledger.tasks.register, scene.run_id, a_task(2, "late"))
        assert "the launch is not over" == error.clause
        assert [1] == [task.launch for task in scene.ledger.tasks.of(scene.run_id)]
        scene.ledger.tasks.register(scene.run_id, a_task(3, "next"))

    def test_how_a_launch_ended_is_told_once(self, table: Table) -> None:
        scene = Scene(table)
        for how in ("exit code 0", "nothing is known of its end"):
            scene.ledger.audit.launch_ended(
                scene.run_id, 7, subject="apply: slice 1, launch 7", how=how, answer="done"
            )
        (entry,) = [one for one in scene.ledger.audit.of(scene.run_id) if one.verb == "launch-ended"]
        assert ("exit code 0", "done") == (entry.why, entry.after)

    def test_launch_numbers_grow(self, table: Table) -> None:
        scene = Scene(table)
        assert [1, 2, 3] == [scene.ledger.runs.next_launch(scene.run_id, 1) for _ in range(3)]
        assert 3 == scene.ledger.runs.get(scene.run_id).launches

    def test_launch_numbers_drawn_at_once_differ(self, table: Table) -> None:
        scene = Scene(table)
        drawn = in_threads(8, lambda _: scene.ledger.runs.next_launch(scene.run_id, 1))
        assert set(range(1, 9)) == set(drawn)

    def test_no_launch_number_is_issued_for_another_generation(self, table: Table) -> None:
        scene = Scene(table)
        error = refusal(RunClosed, scene.ledger.runs.next_launch, scene.run_id, 2)
        assert ("the run is of this generation", 2) == (error.clause, error.wanted)
        assert 1 == (error.found or {})["generation"]
        assert 1 == scene.ledger.runs.next_launch(scene.run_id, 1)

    def test_dispatch_numbers_grow(self, table: Table) -> None:
        scene = Scene(table)
        assert [1, 2, 3] == [scene.ledger.runs.next_dispatch(scene.run_id, 1) for _ in range(3)]
        assert 3 == scene.ledger.runs.get(scene.run_id).dispatches
        refusal(RunClosed, scene.ledger.runs.next_dispatch, scene.run_id, 2)

    def test_no_launch_number_is_issued_once_a_later_dispatch_was_begun(self, table: Table) -> None:
        scene = Scene(table)
        runs = scene.ledger.runs
        first = runs.next_dispatch(scene.run_id, 1)
        assert 1 == runs.next_launch(scene.run_id, 1, first)
        second = runs.next_dispatch(scene.run_id, 1)
        error = refusal(RunClosed, runs.next_launch, scene.run_id, 1, first)
        assert ("it is the run's last dispatch", first) == (error.clause, error.wanted)
        assert "dispatch 2" in str(error)
        assert 2 == runs.next_launch(scene.run_id, 1, second)

    def test_no_task_registers_once_a_later_dispatch_was_begun(self, table: Table) -> None:
        scene = Scene(table)
        first = scene.ledger.runs.next_dispatch(scene.run_id, 1)
        mine = a_task(1).model_copy(update={"dispatch": first})
        second = scene.ledger.runs.next_dispatch(scene.run_id, 1)
        error = refusal(RunClosed, scene.ledger.tasks.register, scene.run_id, mine)
        assert "it is the run's last dispatch" == error.clause
        assert [] == list(scene.ledger.tasks.of(scene.run_id))
        scene.ledger.tasks.register(scene.run_id, mine.model_copy(update={"dispatch": second}))

    def test_no_launch_number_is_issued_when_the_run_is_closed(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        error = refusal(RunClosed, scene.ledger.runs.next_launch, scene.run_id, 1)
        assert ("the run is open", "RUNNING") == (error.clause, error.wanted)
        assert "STOPPING" == (error.found or {})["status"]
        refusal(RunClosed, scene.ledger.runs.next_launch, "no-such-run", 1)

    def test_stopping_again_for_the_same_goal_changes_nothing(self, table: Table) -> None:
        scene = Scene(table)
        stopped = scene.ledger.runs.stop(scene.run_id, R.CANCELLED, who="ann", why="wrong month")
        assert (R.STOPPING, R.CANCELLED, "wrong month") == (stopped.status, stopped.goal, stopped.reason)
        assert stopped == scene.ledger.runs.get(scene.run_id)
        assert stopped == scene.ledger.runs.stop(scene.run_id, R.CANCELLED, who="bob", why="me too")
        assert ["start", "stop:cancelled"] == scene.verbs()

    def test_stopping_for_another_goal_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        error = refusal(RunClosed, scene.ledger.runs.stop, scene.run_id, R.FAILED, who="bob", why="no")
        assert "PAUSED" in str(error)

    def test_what_no_stopping_run_becomes_is_no_goal(self, table: Table) -> None:
        scene = Scene(table)
        for goal in set(R) - set(GOALS):
            refusal(ValueError, scene.ledger.runs.stop, scene.run_id, goal, who="ann", why="?")
        assert scene.run == scene.ledger.runs.get(scene.run_id)

    def test_a_run_reaches_every_goal_and_only_that(self, table: Table) -> None:
        for goal in GOALS:
            scene = Scene(table)
            scene.ledger.runs.stop(scene.run_id, goal, who="ann", why="because")
            for other in set(R) - {goal, R.STOPPING}:
                refusal(ValueError, scene.ledger.runs.finish, scene.run_id, other, who="settler")
            ended = scene.ledger.runs.finish(scene.run_id, goal, who="settler")
            assert (goal, None) == (ended.status, ended.goal)
            assert ended == scene.ledger.runs.get(scene.run_id)
            assert ended == scene.ledger.runs.finish(scene.run_id, goal, who="settler")
            assert ["start", f"stop:{goal.value.lower()}", goal.value.lower()] == scene.verbs()

    def test_a_reason_without_end_still_stops_the_run(self, table: Table) -> None:
        scene = Scene(table)
        stopped = scene.ledger.runs.stop(scene.run_id, R.CANCELLED, who="ann", why="because " * 100_000)
        assert str(stopped.reason).startswith("because because")
        assert stopped.reason == list(scene.ledger.audit.of(scene.run_id))[-1].why

    def test_an_open_run_is_closed_before_it_ends(self, table: Table) -> None:
        scene = Scene(table)
        for status in GOALS:
            refusal(ValueError, scene.ledger.runs.finish, scene.run_id, status, who="settler")
        assert scene.run == scene.ledger.runs.get(scene.run_id)

    def test_no_task_registers_once_a_run_is_on_its_way_to_success(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.SUCCEEDED, who="settler", why="all is well")
        error = refusal(RunClosed, scene.ledger.tasks.register, scene.run_id, a_task())
        assert "the run is open" == error.clause

    def test_a_run_with_a_task_left_does_not_end(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task(slice_id=3)
        scene.ledger.tasks.register(scene.run_id, task)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        error = refusal(Stale, scene.ledger.runs.finish, scene.run_id, R.PAUSED, who="settler")
        assert ("no task is left", 0) == (error.clause, error.wanted)
        assert {"tasks": ["TASK#apply#000003#00000001"]} == error.found
        assert R.STOPPING is scene.ledger.runs.get(scene.run_id).status
        scene.ledger.tasks.proved_stopped(scene.run_id, task)
        assert R.PAUSED is scene.ledger.runs.finish(scene.run_id, R.PAUSED, who="settler").status

    def test_closing_a_run_keeps_how_long_it_was_open(self, table: Table) -> None:
        scene = Scene(table, a_run(created_at=START - timedelta(hours=2), open_seconds=60))
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        scene.ledger.runs.finish(scene.run_id, R.PAUSED, who="settler")
        paused = scene.ledger.runs.get(scene.run_id)
        assert 7260 == paused.open_seconds
        assert 7260 == paused.open_for(START + timedelta(days=365))
        resumed = paused.model_copy(update={"status": R.RUNNING, "opened_at": START})
        assert 7260 + 30 == resumed.open_for(START + timedelta(seconds=30))

    def test_of_two_that_end_a_run_at_once_one_writes_it(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.FAILED, who="ann", why="because")
        answers = in_threads(8, lambda _: scene.ledger.runs.finish(scene.run_id, R.FAILED, who="settler"))
        assert all(isinstance(answer, Run | Stale) for answer in answers), answers
        assert 1 == scene.verbs().count("failed")

    def test_every_verb_leaves_who_what_why_before_and_after(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="bob", why="lunch")
        scene.ledger.runs.finish(scene.run_id, R.PAUSED, who="settler", why="no task is left")
        start, stop, pause = scene.ledger.audit.of(scene.run_id)
        assert ("ann", "start", scene.run_id, None) == (start.who, start.verb, start.subject, start.before)
        assert scene.run.document() == start.after
        assert ("bob", "stop:paused", "lunch") == (stop.who, stop.verb, stop.why)
        assert {"status": "RUNNING"} == stop.before
        assert {"status": "STOPPING", "goal": "PAUSED"} == stop.after
        assert ("settler", "paused", "no task is left") == (pause.who, pause.verb, pause.why)
        assert ({"status": "STOPPING"}, {"status": "PAUSED", "goal": None}) == (pause.before, pause.after)
        assert START < start.at < stop.at < pause.at

    def test_a_refused_verb_leaves_no_trace(self, table: Table) -> None:
        scene = Scene(table)
        stale = scene.ledger.runs.get(scene.run_id)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        scene.ledger.runs.get = lambda run_id: stale  # type: ignore[method-assign]  # one who read before
        error = refusal(Stale, scene.ledger.runs.stop, scene.run_id, R.FAILED, who="bob", why="late")
        assert ("the run is as it was read", "STOPPING") == (error.clause, (error.found or {})["status"])
        assert ["start", "stop:paused"] == scene.verbs()

    def test_what_was_read_of_an_earlier_generation_is_not_written(self, table: Table) -> None:
        scene = Scene(table)
        read = scene.ledger.runs.get(scene.run_id)
        table.write(Write(keys.run(scene.run_id), sets={"generation": read.generation + 1}))
        scene.ledger.runs.get = lambda run_id: read  # type: ignore[method-assign]  # one who read before
        error = refusal(Stale, scene.ledger.runs.stop, scene.run_id, R.FAILED, who="bob", why="late")
        assert "the run is of the generation that was read" == error.clause
        assert ("RUNNING", 2) == ((error.found or {})["status"], (error.found or {})["generation"])
        assert ["start"] == scene.verbs()


class TaskSuite:
    """Registering, beating, and being proved stopped."""

    def test_a_task_registers_once_and_may_ask_twice(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task()
        scene.ledger.tasks.register(scene.run_id, task)
        scene.ledger.tasks.register(scene.run_id, task)
        assert [task] == list(scene.ledger.tasks.of(scene.run_id))

    def test_a_second_task_for_one_launch_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.tasks.register(scene.run_id, a_task(task="task-a"))
        error = refusal(LaunchTaken, scene.ledger.tasks.register, scene.run_id, a_task(task="task-b"))
        assert ("nobody registered for this launch", "task-b") == (error.clause, error.wanted)
        assert "task-a" == (error.found or {})["task"]

    def test_of_eight_tasks_for_one_launch_one_registers(self, table: Table) -> None:
        scene = Scene(table)
        answers = in_threads(
            8, lambda index: scene.ledger.tasks.register(scene.run_id, a_task(task=f"task-{index}"))
        )
        assert (1, 7) == (answers.count(None), sum(isinstance(answer, LaunchTaken) for answer in answers))
        assert [f"task-{answers.index(None)}"] == [task.task for task in scene.ledger.tasks.of(scene.run_id)]

    def test_no_task_registers_on_a_closed_run(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.runs.stop(scene.run_id, R.PAUSED, who="ann", why="lunch")
        error = refusal(RunClosed, scene.ledger.tasks.register, scene.run_id, a_task())
        assert "the run is open" == error.clause
        assert [] == list(scene.ledger.tasks.of(scene.run_id))

    def test_no_task_of_another_generation_registers(self, table: Table) -> None:
        scene = Scene(table)
        error = refusal(RunClosed, scene.ledger.tasks.register, scene.run_id, a_task(generation=2))
        assert ("the run is of this generation", 2) == (error.clause, error.wanted)

    def test_a_beat_says_what_the_task_does_now(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task()
        scene.ledger.tasks.register(scene.run_id, task)
        now = task.model_copy(update={"partition": "p", "records_per_second": 12.5, "waiting": "its rate"})
        scene.ledger.tasks.beat(scene.run_id, now)
        assert [now] == list(scene.ledger.tasks.of(scene.run_id))

    def test_a_beat_of_a_task_that_was_proved_stopped_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task()
        scene.ledger.tasks.register(scene.run_id, task)
        scene.ledger.tasks.proved_stopped(scene.run_id, task)
        scene.ledger.tasks.proved_stopped(scene.run_id, task)
        error = refusal(LostOwnership, scene.ledger.tasks.beat, scene.run_id, task)
        assert ("the task is still registered", None) == (error.clause, error.found)
        assert [] == list(scene.ledger.tasks.of(scene.run_id))

    def lived(self, scene: Scene, task: TaskItem) -> None:
        """A task registers, and is proved stopped by four at once."""
        scene.ledger.tasks.register(scene.run_id, task)
        answers = in_threads(4, lambda _: scene.ledger.tasks.proved_stopped(scene.run_id, task))
        assert [None] * 4 == answers

    def test_the_seconds_of_a_task_are_counted_once_however_often_it_is_proved(self, table: Table) -> None:
        scene = Scene(table)
        for launch, lived in enumerate((90, 5), start=1):
            then = scene.clock.now() - timedelta(seconds=lived)
            self.lived(scene, a_task(launch, f"task-{launch}").model_copy(update={"registered_at": then}))
        # Begun seconds count whole: 90 s and a bit, and 5 s and a bit.
        assert 91 + 6 == scene.ledger.verdicts.counts(scene.run_id).task_seconds
        assert 91 + 6 == scene.ledger.verdicts.counts(scene.run_id, APPLY).task_seconds

    def test_what_a_task_that_is_gone_reported_counts_until_it_is_judged(self, table: Table) -> None:
        scene = Scene(table)
        one, other = scene.worked("a", 5), scene.worked("b", 5)
        said = {"reported": 2, "work_reported": (one.work + other.work) / 1000}
        self.lived(scene, a_task().model_copy(update=said))
        for left, judged in ((2, []), (1, [one]), (1, [one]), (0, [one, other])):
            if judged:
                scene.decide(*judged, to=PartitionStatus.ACCEPTED)
            assert left == scene.ledger.verdicts.counts(scene.run_id, APPLY).reported
        assert 0 == scene.ledger.verdicts.counts(scene.run_id).reported_work

    def test_a_task_registered_by_a_clock_that_is_ahead_counts_nothing(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task().model_copy(update={"registered_at": START + timedelta(hours=1)})
        scene.ledger.tasks.register(scene.run_id, task)
        scene.ledger.tasks.proved_stopped(scene.run_id, task)
        assert 0 == scene.ledger.verdicts.counts(scene.run_id).task_seconds

    def test_a_proof_for_one_task_does_not_remove_another(self, table: Table) -> None:
        scene = Scene(table)
        task = a_task(task="task-a")
        scene.ledger.tasks.register(scene.run_id, task)
        error = refusal(LostOwnership, scene.ledger.tasks.proved_stopped, scene.run_id, a_task(task="task-b"))
        assert "task-a" == (error.found or {})["task"]
        assert [task] == list(scene.ledger.tasks.of(scene.run_id))

    def test_the_tasks_of_a_slice_are_told_from_those_of_another(self, table: Table) -> None:
        scene = Scene(table)
        tasks = [a_task(launch, f"task-{launch}", slice_id=of) for launch, of in enumerate([1, 1, 10, 11])]
        for task in tasks:
            scene.ledger.tasks.register(scene.run_id, task)
        assert tasks == list(scene.ledger.tasks.of(scene.run_id))
        assert tasks[:2] == list(scene.ledger.tasks.of_slice(scene.run_id, APPLY, 1))
