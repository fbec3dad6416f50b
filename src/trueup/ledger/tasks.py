"""Tasks: registered before they touch anything, remembered until they are proved stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trueup.clock import Clock
from trueup.errors import LaunchTaken, LostOwnership
from trueup.ledger import keys
from trueup.ledger.counting import count_task
from trueup.ledger.partitions import instant
from trueup.ledger.runs import closed, open_clauses
from trueup.ledger.table import Clause, ConditionFailed, Item, Table, TransactionFailed, Write
from trueup.model.ledger import LaunchLife, TaskItem
from trueup.model.states import Phase


class Tasks:
    """The TASK items of a run."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def register(self, run_id: str, task: TaskItem) -> None:
        """Say that a task is alive, if the run is open and its launch neither over nor another task's.

        Asked again by the same task it succeeds, so an answer that was lost does no harm.
        Raises RunClosed, LaunchTaken.
        """
        key = keys.task(run_id, task.phase, task.slice_id, task.launch)
        new = Clause("nobody registered for this launch", "task", "absent")
        in_time = Clause("the launch is not over", "launch", "absent")
        checks = [
            Write(keys.run(run_id), clauses=open_clauses(task.generation, task.dispatch)),
            Write(keys.ended(run_id, task.launch), clauses=(in_time,)),
        ]
        try:
            self._table.transact([*checks, Write(key, item=_stored(task), clauses=(new,))])
        except TransactionFailed as failed:
            self._explain(run_id, task, failed)

    @staticmethod
    def _explain(run_id: str, task: TaskItem, failed: TransactionFailed) -> None:
        shut = failed.of(keys.run(run_id))
        if shut is not None:
            raise closed(run_id, shut) from failed
        late = failed.of(keys.ended(run_id, task.launch))
        if late is not None:
            raise LaunchTaken(
                f"Launch {task.launch} of slice {task.slice_id} is over.",
                clause=str(late),
                wanted=task.task,
                found=late.old,
                remedy="Leave: this task began too late, and the slice may be another one's by now.",
            ) from failed
        found = failed.refusals[0].old or {}
        if found.get("task") != task.task:
            raise LaunchTaken(
                f"Launch {task.launch} of slice {task.slice_id} belongs to task {found.get('task')}.",
                clause=str(failed.refusals[0]),
                wanted=task.task,
                found=found,
                remedy="Leave: two tasks were started for one launch, and the other one works.",
            ) from failed

    def end_launch(self, run_id: str, launch: int) -> bool:
        """Let no task register for a launch any more; those that did are to be proved stopped after this.

        Gives whether the trail told its end before: then what it costs was decided.
        """
        old = self._table.write(Write(keys.ended(run_id, launch), sets={"launch": launch}))
        return "answer" in (old or {})

    def beat(self, run_id: str, task: TaskItem) -> None:
        """Renew what the task says of itself. Raises LostOwnership where it was proved stopped."""
        key = keys.task(run_id, task.phase, task.slice_id, task.launch)
        clause = Clause("the task is still registered", "task", "=", task.task)
        try:
            self._table.write(Write(key, item=_stored(task), clauses=(clause,)))
        except ConditionFailed as refusal:
            raise LostOwnership(
                f"Task {task.task} is not registered any more: somebody proved it stopped.",
                clause=str(refusal),
                wanted=task.task,
                found=refusal.old,
                remedy="Stop at once.",
            ) from refusal

    def of(self, run_id: str) -> Iterator[TaskItem]:
        """All tasks of a run that are not proved stopped."""
        return map(_read, self._table.query(keys.run(run_id)[0], "TASK#"))

    def forgotten(self, run_id: str, tasks: Iterable[TaskItem]) -> set[int]:
        """The launches of those among these tasks that were proved stopped by now."""
        at = {keys.task(run_id, one.phase, one.slice_id, one.launch): one.launch for one in tasks}
        return set(at.values()) - {at[key] for key in self._table.get_many(list(at))}

    def of_slice(self, run_id: str, phase: Phase, slice_id: int) -> Iterator[TaskItem]:
        """The tasks of one slice that are not proved stopped."""
        prefix = keys.task(run_id, phase, slice_id, 0)[1].rpartition("#")[0] + "#"
        return map(_read, self._table.query(keys.run(run_id)[0], prefix))

    def lives(self, run_id: str) -> Iterator[LaunchLife]:
        """What is left of the launches that are over, in their order."""
        for item in self._table.query(keys.run(run_id)[0], "ENDED#"):
            launch = int(item.pop("SK").removeprefix("ENDED#"))
            yield LaunchLife.model_validate({**item, "launch": launch})

    def proved_stopped(self, run_id: str, task: TaskItem) -> None:
        """Forget a task that its platform showed to be stopped, and count the seconds since it registered.

        Asked again, nothing changes.
        """
        key = keys.task(run_id, task.phase, task.slice_id, task.launch)
        clause = Clause("it is the task that was proved stopped", "task", "=", task.task)
        try:
            self._table.transact(
                [
                    Write(key, delete=True, clauses=(clause,)),
                    count_task(run_id, task, self._clock.now()),
                    Write(keys.ended(run_id, task.launch), sets=_life(task, self._clock)),
                ]
            )
        except TransactionFailed as failed:
            (refusal,) = failed.refusals
            if refusal.old is None:
                return  # It was proved before.
            raise LostOwnership(
                f"The item of launch {task.launch} belongs to another task now.",
                clause=str(refusal),
                wanted=task.task,
                found=refusal.old,
                remedy="Prove that one stopped instead.",
            ) from failed


def _life(task: TaskItem, clock: Clock) -> Item:
    """What a task leaves on the mark of its launch: without `launch`, which says that the launch is over."""
    kept = ("phase", "sliceId", "task", "launchedAt", "registeredAt", "beatAt", "throttled")
    stored = _stored(task)
    return {**{name: stored[name] for name in kept if name in stored}, "stoppedAt": instant(clock)}


def _stored(task: TaskItem) -> Item:
    return {name: value for name, value in task.document().items() if value is not None}


def _read(item: Item) -> TaskItem:
    return TaskItem.model_validate({name: value for name, value in item.items() if name != "SK"})
