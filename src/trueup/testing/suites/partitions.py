"""Checkpoints: taken by the higher launch, moved only by their owner, once."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from collections.abc import Callable

from trueup.errors import LostOwnership, NotTakable, Refused
from trueup.ledger import Owner
from trueup.ledger.partitions import FENCE_EPOCH
from trueup.ledger.table import Table
from trueup.model.counters import Counters
from trueup.model.ledger import PartitionItem
from trueup.model.result import PartitionError
from trueup.model.states import END_STATES, PartitionStatus, ResultStatus
from trueup.testing.suites.support import APPLY, Scene, checkpoint, counted, entry_of, in_threads, refusal

P = PartitionStatus

Move = Callable[[Scene, Owner, PartitionItem], PartitionItem]
MOVES: dict[str, Move] = {
    "advance": lambda scene, owner, item: scene.ledger.partitions.advance(owner, item, checkpoint(9)),
    "report": lambda scene, owner, item: scene.ledger.partitions.report(owner, item, entry_of(item)),
    "interrupt": lambda scene, owner, item: scene.ledger.partitions.interrupt(owner, item, "SIGTERM"),
}


class TakeSuite:
    """Becoming a partition's owner."""

    def test_a_partition_that_nobody_touched_is_pending(self, table: Table) -> None:
        scene = Scene(table)
        assert PartitionItem(partition_id="p") == scene.get()
        assert [] == list(scene.ledger.partitions.all(scene.run_id, APPLY))

    def test_partitions_are_read_in_the_order_asked_for(self, table: Table) -> None:
        scene = Scene(table)
        taken = {name: scene.take(name) for name in ("b", "date=2013-01-05", "é/#?")}
        found = scene.ledger.partitions.get_many(scene.run_id, APPLY, ["é/#?", "x", "b", "date=2013-01-05"])
        assert ["é/#?", "x", "b", "date=2013-01-05"] == list(found)
        assert {**taken, "x": PartitionItem(partition_id="x")} == found
        everything = scene.ledger.partitions.all(scene.run_id, APPLY)
        assert sorted(taken) == sorted(item.partition_id for item in everything)

    def test_a_pending_partition_is_taken(self, table: Table) -> None:
        scene = Scene(table)
        taken = scene.ledger.partitions.take(scene.owner(launch=3, epoch=2), "p")
        assert P.PENDING is taken.before
        item = taken.item
        assert (P.RUNNING, 3, "task-a", 2 * FENCE_EPOCH + 3) == (
            item.status,
            item.launch,
            item.task,
            item.fence,
        )
        assert (1, 1, None, Counters()) == (item.seq, item.takes, item.cursor, item.counters)
        assert scene.get() == item

    def test_a_partition_that_was_interrupted_goes_on_from_its_cursor(self, table: Table) -> None:
        scene = Scene(table)
        left = scene.interrupt(scene.advance(scene.take(launch=1), 5), "Spot")
        taken = scene.ledger.partitions.take(scene.owner(launch=2, task="task-b"), "p")
        assert P.INTERRUPTED is taken.before
        assert ("v1:5", counted(5), None) == (taken.item.cursor, taken.item.counters, taken.item.reason)
        assert left.seq + 1 == taken.item.seq

    def test_a_higher_launch_takes_over_a_running_partition(self, table: Table) -> None:
        scene = Scene(table)
        scene.advance(scene.take(launch=1), 5)
        taken = scene.ledger.partitions.take(scene.owner(launch=2, task="task-b"), "p")
        assert P.RUNNING is taken.before
        assert (2, "task-b", "v1:5", counted(5)) == (
            taken.item.launch,
            taken.item.task,
            taken.item.cursor,
            taken.item.counters,
        )

    def test_a_lower_launch_takes_nothing(self, table: Table) -> None:
        scene = Scene(table)
        for leave in (False, True):
            item = scene.take(launch=5 + leave)
            if leave:
                item = scene.interrupt(item)
            error = refusal(LostOwnership, scene.take, launch=4, task="task-b")
            assert ("no later launch has it", {"launch": 4, "task": "task-b"}) == (error.clause, error.wanted)
            assert item.launch == (error.found or {})["launch"]
            assert item == scene.get()

    def test_an_equal_launch_of_another_task_takes_nothing(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take(launch=2, task="task-a")
        error = refusal(NotTakable, scene.take, launch=2, task="task-b")
        assert ("no later launch has it", 2, "task-a") == (
            error.clause,
            error.wanted,
            (error.found or {})["task"],
        )
        assert item == scene.get()

    def test_what_a_launch_left_it_does_not_take_again(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.interrupt(scene.take(launch=2))
        refusal(NotTakable, scene.take, launch=2)
        assert item == scene.get()

    def test_a_take_repeated_after_a_lost_answer_is_taken_once(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take(launch=2)
        again = scene.ledger.partitions.take(scene.owner(launch=2), "p")
        assert (item, P.RUNNING) == (again.item, again.before)
        assert 1 == scene.get().takes

    def test_a_finished_partition_is_not_taken(self, table: Table) -> None:
        scene = Scene(table)
        scene.worked("p", 5, launch=1)
        self._refuses(scene, "p")
        for status in END_STATES - {P.SKIPPED}:
            scene.ended(status.value, 5, to=status)
            self._refuses(scene, status.value)
        scene.ledger.verdicts.skip(scene.run_id, APPLY, ["skipped"], who="ann", why="empty")
        self._refuses(scene, "skipped")

    def _refuses(self, scene: Scene, name: str) -> None:
        before = scene.get(name)
        error = refusal(NotTakable, scene.take, name, launch=9)
        assert "the partition is not finished" == error.clause
        assert before.status.value == (error.found or {})["status"]
        assert before == scene.get(name)

    def test_of_eight_launches_at_once_the_highest_ends_up_as_the_owner(self, table: Table) -> None:
        scene = Scene(table)
        answers = in_threads(8, lambda index: scene.take(launch=index + 1, task=f"task-{index}"))
        assert (8, "task-7") == (scene.get().launch, scene.get().task)
        won = [answer for answer in answers if isinstance(answer, PartitionItem)]
        assert len(won) == scene.get().takes == scene.get().seq
        assert all(isinstance(answer, PartitionItem | LostOwnership) for answer in answers)


class MoveSuite:
    """Advance, report and interrupt."""

    def test_cursor_and_counters_move_together(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take()
        to = checkpoint(5, skipped={"no date": 2}, replayed=3, reject_parts=("1.jsonl", "2.jsonl"))
        moved = scene.ledger.partitions.advance(scene.owner(), item, to)
        assert ("v1:5", counted(5), {"no date": 2}, 3, ("1.jsonl", "2.jsonl")) == (
            moved.cursor,
            moved.counters,
            moved.skipped,
            moved.replayed,
            moved.reject_parts,
        )
        assert (item.seq + 1, 0, P.RUNNING) == (moved.seq, moved.takes, moved.status)
        assert moved == scene.get()

    def test_counters_are_absolute(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take()
        for records in (3, 7, 7):
            item = scene.advance(item, records)
        assert (counted(7), item.seq) == (scene.get().counters, 4)

    def test_a_report_keeps_the_checkpoint_and_its_own_entry(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.advance(scene.take(), 5)
        error = PartitionError(kind="ValueError", message="no such month", record="row 6")
        entry = entry_of(item, ResultStatus.FAILED).model_copy(update={"error": error})
        reported = scene.ledger.partitions.report(scene.owner(), item, entry)
        assert (P.REPORTED, entry, error) == (reported.status, reported.entry, reported.error)
        assert ("v1:5", counted(5)) == (reported.cursor, reported.counters)
        assert reported == scene.get()

    def test_an_interruption_keeps_the_checkpoint_and_says_why(self, table: Table) -> None:
        scene = Scene(table)
        left = scene.interrupt(scene.advance(scene.take(), 5), "deadline: 51 min > 50 min")
        assert (P.INTERRUPTED, "deadline: 51 min > 50 min", "v1:5", counted(5)) == (
            left.status,
            left.reason,
            left.cursor,
            left.counters,
        )
        assert left == scene.get()

    def test_each_clause_is_refused_by_name_with_both_sides(self, table: Table) -> None:
        for name, move in MOVES.items():
            scene = Scene(table)
            item = scene.take(launch=2)
            gone = scene.interrupt(scene.take("q", launch=2))
            moved = scene.advance(scene.take("r", launch=2), 1)
            cases = {
                "the launch is still ours": (scene.owner(1), item),
                "the task is still us": (scene.owner(2, "task-b"), item),
                "the partition is running": (scene.owner(2), gone),
                "nobody moved it since": (scene.owner(2), moved.model_copy(update={"seq": 1})),
            }
            for clause, (owner, view) in cases.items():
                before = scene.get(view.partition_id)
                error = refusal(LostOwnership, move, scene, owner, view)
                wanted = {"launch": owner.launch, "task": owner.task}
                assert (name, clause, wanted) == (name, error.clause, error.wanted)
                assert (before.launch, before.task, before.status.value, before.seq) == tuple(
                    (error.found or {})[part] for part in ("launch", "task", "status", "seq")
                )
                assert all(part in str(error) for part in (owner.task, "task-a", before.status))
                assert (name, before) == (name, scene.get(view.partition_id))

    def test_the_same_call_again_after_a_lost_answer_adds_nothing(self, table: Table) -> None:
        for name, move in MOVES.items():
            scene = Scene(table)
            item = scene.take()
            first = move(scene, scene.owner(), item)
            assert (name, first) == (name, move(scene, scene.owner(), item))
            assert (name, first) == (name, scene.get())

    def test_another_call_from_the_same_view_is_refused(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take()
        moved = scene.advance(item, 5)
        assert "nobody moved it since" == refusal(LostOwnership, scene.advance, item, 6).clause
        assert moved == scene.get()

    def test_a_zombie_moves_nothing(self, table: Table) -> None:
        for name, move in MOVES.items():
            scene = Scene(table)
            view = scene.advance(scene.take(launch=1, task="zombie"), 5)
            now = scene.advance(scene.take(launch=2, task="task-b"), 8)
            error = refusal(LostOwnership, move, scene, scene.owner(1, "zombie"), view)
            assert (name, "the launch is still ours") == (name, error.clause)
            assert (name, now) == (name, scene.get())

    def test_a_partition_that_nobody_took_moves_nowhere(self, table: Table) -> None:
        for name, move in MOVES.items():
            scene = Scene(table)
            view = PartitionItem(partition_id="p", status=P.RUNNING, fence=1, launch=1, task="task-a")
            error = refusal(Refused, move, scene, scene.owner(), view)
            assert (name, None) == (name, error.found)
            assert P.PENDING is scene.get().status

    def test_partitions_of_other_phases_and_runs_stay_where_they_are(self, table: Table) -> None:
        one, two = Scene(table), Scene(table)
        one.advance(one.take(), 5)
        assert P.PENDING is two.get().status


class BoundSuite:
    """What bounds faults: takes without progress, and launches that end before any take."""

    def test_takes_without_progress_are_counted_and_progress_clears_them(self, table: Table) -> None:
        scene = Scene(table)
        assert [1, 2, 3] == [scene.take(launch=launch).takes for launch in (1, 2, 3)]
        item = scene.advance(scene.take(launch=4), 1)
        assert (0, 0) == (item.takes, scene.get().takes)

    def test_an_interruption_costs_no_take(self, table: Table) -> None:
        scene = Scene(table)
        assert 0 == scene.interrupt(scene.take(launch=1)).takes
        scene.take(launch=2)
        assert 1 == scene.interrupt(scene.take(launch=3)).takes
        assert 0 == scene.interrupt(scene.advance(scene.take(launch=4), 1)).takes

    def test_a_take_is_forgiven_once_for_each_launch(self, table: Table) -> None:
        scene = Scene(table)
        scene.take(launch=1)
        item = scene.take(launch=2)
        scene.ledger.partitions.forgive(scene.run_id, APPLY, item)
        assert (1, 2) == (scene.get().takes, scene.get().forgiven)
        scene.ledger.partitions.forgive(scene.run_id, APPLY, item)
        scene.ledger.partitions.forgive(scene.run_id, APPLY, scene.get())
        assert 1 == scene.get().takes
        scene.ledger.partitions.forgive(scene.run_id, APPLY, scene.take(launch=3))
        assert (1, 3) == (scene.get().takes, scene.get().forgiven)

    def test_what_moved_on_meanwhile_is_not_forgiven(self, table: Table) -> None:
        for later in ("takes", "interrupts", "advances"):
            scene = Scene(table)
            view = scene.take(launch=1)
            if later == "takes":
                scene.take(launch=2)
            elif later == "interrupts":
                scene.interrupt(view)
            else:
                scene.advance(view, 1)
            before = scene.get()
            scene.ledger.partitions.forgive(scene.run_id, APPLY, view)
            assert (later, before) == (later, scene.get())

    def test_forgiving_does_not_take_the_partition_from_its_owner(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.take()
        scene.ledger.partitions.forgive(scene.run_id, APPLY, item)
        assert counted(5) == scene.advance(item, 5).counters

    def test_a_launch_that_ended_before_any_take_is_counted_once(self, table: Table) -> None:
        scene = Scene(table)
        fault = scene.ledger.partitions.fault
        assert [1, 1, 2] == [fault(scene.run_id, APPLY, "p", launch) for launch in (3, 3, 4)]
        assert (P.PENDING, 2) == (scene.get().status, scene.get().faults)
        assert 2 == fault(scene.run_id, APPLY, "p", 2)
        assert P.PENDING is scene.ledger.partitions.take(scene.owner(5), "p").before

    def test_a_launch_that_took_the_partition_is_no_fault_of_it(self, table: Table) -> None:
        scene = Scene(table)
        scene.take(launch=3)
        assert 0 == scene.ledger.partitions.fault(scene.run_id, APPLY, "p", 3)
        assert 0 == scene.ledger.partitions.fault(scene.run_id, APPLY, "p", 2)
        assert 1 == scene.ledger.partitions.fault(scene.run_id, APPLY, "p", 4)

    def test_launches_without_a_checkpoint_are_counted_whoever_ended_them(self, table: Table) -> None:
        scene = Scene(table)
        partitions = scene.ledger.partitions
        for launch in (1, 1, 2):
            partitions.idled(scene.run_id, APPLY, "p", launch)
        partitions.fault(scene.run_id, APPLY, "p", 3)
        assert (3, 1) == (scene.get().idle, scene.get().faults)
        left = scene.interrupt(scene.take(launch=4))
        assert (4, 0) == (left.idle, left.takes)
        partitions.forgive(scene.run_id, APPLY, scene.take(launch=5))
        assert (5, 0) == (scene.get().idle, scene.get().takes)
        partitions.idled(scene.run_id, APPLY, "p", 5)
        assert 0 == scene.advance(scene.get(), 3).idle

    def test_a_retry_begins_with_fresh_patience(self, table: Table) -> None:
        scene = Scene(table)
        scene.decide(scene.take(), to=P.STUCK)
        scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="mended")
        assert (0, 0) == (scene.get().idle, scene.get().takes)


class PartitionSuite(TakeSuite, MoveSuite, BoundSuite):
    """Everything about checkpoints."""
