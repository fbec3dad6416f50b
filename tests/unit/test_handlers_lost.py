"""What is left to others: an `accept` that was lost, and a partition longer than its task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueup.jobs import Batch
from trueup.ledger import Ledger
from trueup.model.plan import Partition
from trueup.model.states import PartitionStatus, Phase, RunStatus

from .handler_fakes import Child, Execution
from .handler_world import World
from .worker_cases import Numbers, job_file, job_of


def begun(here: World) -> tuple[Execution, Child]:
    """A run whose one slice has a task that has yet to begin."""
    execution = here.execution(here.ask())
    for _ in range(3):
        here.step(execution)
    (child,) = execution.children
    for _ in range(2):
        here.step_child(child)
    return execution, child


def lost(child: Child) -> None:
    """The child failed without an `accept` that did anything."""
    child.at, child.task = "over", None


def test_what_no_accept_ever_judged_settle_judges() -> None:
    here = World(job_of(), job_file())
    execution, child = begun(here)
    while child.task is not None and child.task.ended is None:
        child.task.step()
    lost(child)
    here.play(execution)
    run = here.run(execution.data["runId"])
    assert ("SUCCEEDED", RunStatus.SUCCEEDED) == (execution.status, run.status)
    counts = here.ledger.verdicts.counts(run.run_id).tally(PartitionStatus.ACCEPTED)
    assert (3, 36) == (counts.partitions, counts.records.read)
    assert 1 == here.launches


def test_a_task_that_no_accept_ever_stopped_is_proved_stopped_before_another_one_works() -> None:
    here = World(job_of(), job_file())
    execution, child = begun(here)
    task = child.task
    assert task is not None
    task.stuck = True
    for _ in range(5):
        task.step()
    lost(child)
    here.step(execution)
    assert execution.told is not None
    assert "wait" == execution.told["do"]
    assert 1 == here.launches
    here.play(execution)
    assert task.ended is not None
    assert RunStatus.SUCCEEDED is here.run(execution.data["runId"]).status
    assert 36 == here.ledger.verdicts.counts(execution.data["runId"]).tally().records.read
    assert 2 == here.launches


def test_a_partition_longer_than_its_task_is_worked_by_as_many_as_it_takes() -> None:
    here = World(job_of(read=slowly), job_file(task={"minutes": 1}))
    here.job.clock = here.clock  # type: ignore[attr-defined]
    run = here.ask(keys=["a"])
    here.play(here.execution(run))
    assert RunStatus.SUCCEEDED is here.run(run.run_id).status
    item = here.ledger.partitions.get(run.run_id, Phase.APPLY, "item=a")
    assert (12, 12, 0) == (item.counters.read, item.counters.written, item.counters.unchanged)
    # Two batches, two more, and the report.
    assert ["again", "again", "done"] == ends(here.ledger, run.run_id)


def slowly(job: Any, part: Partition, after: str | None) -> Iterator[Batch]:
    """As the job reads, but each batch takes 40 seconds."""
    for batch in Numbers.read(job, part, after):
        job.clock.sleep(40)
        yield batch


def ends(ledger: Ledger, run_id: str) -> list[str]:
    """What was decided after each launch, in order."""
    told = [entry for entry in ledger.audit.of(run_id) if entry.verb == "launch-ended"]
    return [str(entry.after) for entry in sorted(told, key=lambda entry: entry.subject)]


def test_a_run_does_not_end_while_a_task_that_never_registered_is_alive() -> None:
    here = World(job_of(), job_file())
    execution, child = begun(here)
    run_id, task = execution.data["runId"], child.task
    assert task is not None
    task.stuck = True
    here.abort(execution)
    assert {"did": "stopping"} == here.close.handle(here.event(execution))
    assert RunStatus.STOPPING is here.run(run_id).status
    did = [here.swept()["did"][run_id] for _ in range(2)]
    assert ["stopping", "ended"] == did
    assert task.ended is not None
    assert RunStatus.ABORTED is here.run(run_id).status
