"""Workers frozen with SIGSTOP, superseded while they sleep, and woken: they change nothing any more.

The source is corrected while the task is frozen, so a zombie that wrote what it had read would be seen.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest

from trueup.accepting import Answer
from trueup.artifacts import result_key_of
from trueup.errors import ArtifactMissing
from trueup.ledger import keys
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.table import Write
from trueup.local.stores import BUCKET, TABLE
from trueup.model.states import PartitionStatus, RunStatus
from trueup.platform import Ended
from trueup.settling import Settled
from trueup.worker import Exit

from .driving import Driven, Shape, Stack, Stop, Task
from .targets import differences, everything

Target = Callable[[str], str]
# Both say that work is left: with progress saved, or without any.
REFUSED = {Exit.INTERRUPTED, Exit.FAULT}
START, END = "2013-11-28", "2013-11-30"

# For each job and its guard: before the fence is raised, before a write is sent, between write and
# checkpoint, between the last checkpoint of a partition and its report (a day of 634 flights has 4 batches).
FROZEN = [
    ("flights-summary", "taken", 1),
    ("flights-summary", "write", 1),
    ("flights-summary", "sending", 1),
    ("flights-summary", "written", 1),
    ("flights-summary", "advanced", 1),
    ("flights-rows", "taken", 1),
    ("flights-rows", "write", 2),
    ("flights-rows", "written", 2),
    ("flights-rows", "advanced", 4),
]
frozen = pytest.mark.parametrize(
    ("job", "point", "nth"), FROZEN, ids=[f"{job}-{point}" for job, point, _ in FROZEN]
)


@frozen
def test_a_zombie_whose_partition_was_taken_over_changes_nothing(
    stack: Stack, target: Target, job: str, point: str, nth: int
) -> None:
    driven, zombie = freeze(
        stack, target(job), Shape(job, START, END, batch=200), Stop(point, nth, "SIGSTOP")
    )
    correct_the_source(driven)
    later = take_over(driven, zombie)
    items, table = driven.items(), everything(driven)

    assert wake(stack, zombie) in REFUSED

    assert items == driven.items()
    assert table == everything(driven)
    assert later.launch.launch == driven.items()["date=2013-11-28"].launch
    with pytest.raises(ArtifactMissing):
        stack.artifacts.store.get(result_key(zombie))


@frozen
def test_what_a_zombie_reports_is_stale(stack: Stack, target: Target, job: str, point: str, nth: int) -> None:
    driven, zombie = freeze(
        stack, target(job), Shape(job, START, END, batch=200), Stop(point, nth, "SIGSTOP")
    )
    later = take_over(driven, zombie)
    reported = driven.items()
    wake(stack, zombie)
    forge_result(stack, later, zombie)

    # Judged by the zombie's launch, with its result at hand: it counts for nothing.
    ended = Ended(exit_code=Exit.INTERRUPTED, stop_code="EssentialContainerExited")
    assert Answer.DONE is driven.accept(zombie, ended)
    assert Settled.ENDED is driven.settle()
    assert {PartitionStatus.ACCEPTED} == {item.status for item in driven.ended.values()}
    for part, item in driven.ended.items():
        assert (reported[part].entry, reported[part].counters) == (item.entry, item.counters)


@frozen
def test_a_zombie_of_an_older_run_changes_nothing_that_a_newer_run_wrote(
    stack: Stack, target: Target, job: str, point: str, nth: int
) -> None:
    shape = Shape(job, START, END, batch=200)
    older, zombie = freeze(stack, target(job), shape, Stop(point, nth, "SIGSTOP"))
    correct_the_source(older)
    free_the_lock_without_proof(stack, older)
    newer = Driven(stack, older.shape, older.table)
    newer.start()
    newer.finish()
    assert older.run.epoch < newer.run.epoch
    table = everything(newer)

    assert wake(stack, zombie) in REFUSED

    assert table == everything(newer)
    assert newer.ended == newer.items()
    assert RunStatus.SUCCEEDED is stack.ledger.runs.get(newer.run.run_id).status
    assert [] == differences(newer, {day: corrected(stack.days[day]) for day in shape.dates})


@pytest.mark.parametrize("job", ["flights-summary", "flights-rows"])
def test_without_a_guard_a_zombie_overwrites_what_is_newer(stack: Stack, target: Target, job: str) -> None:
    shape = Shape(job, START, END, batch=200, traits=("witnessed", "unguarded"))
    driven, zombie = freeze(stack, target(job), shape, Stop("write", 1, "SIGSTOP"))
    correct_the_source(driven)
    take_over(driven, zombie)
    right = {day: corrected(stack.days[day]) for day in shape.dates}
    assert [] == differences(driven, right)
    wake(stack, zombie)
    assert [] != differences(driven, right)


def freeze(stack: Stack, table: str, shape: Shape, at: Stop) -> tuple[Driven, Task]:
    """A run over a source of its own whose only task has stopped itself at a point."""
    own = Shape(shape.job, shape.start, shape.end, shape.batch, shape.traits, prefix=table)
    for day in own.dates:
        stack.s3.put_object(Bucket=BUCKET, Key=f"{table}/{day}.csv", Body=stack.days[day])
    driven = Driven(stack, own, table)
    driven.start()
    zombie = driven.launch(at)
    status = stack.warm.wait(zombie.arn)
    assert os.WIFSTOPPED(status), f"status {status}\n{stack.warm.log.read_text()}"
    assert signal.SIGSTOP == os.WSTOPSIG(status)
    return driven, zombie


def wake(stack: Stack, zombie: Task) -> int:
    """Let it go on, and give the exit code with which it left."""
    status = stack.warm.wake(zombie.arn)
    assert os.WIFEXITED(status), f"status {status}"
    return os.WEXITSTATUS(status)


def take_over(driven: Driven, zombie: Task) -> Task:
    """A later launch finishes the slice, because the platform says that the frozen task has stopped."""
    warm = driven.stack.warm
    lost = Ended(stop_code="InfrastructureHealth")
    assert Answer.STOPPING is driven.accept(zombie, lost), "a frozen task is alive, and nothing is launched"
    warm.write_off(zombie.arn)
    assert Answer.AGAIN is driven.accept(zombie, lost)
    later = driven.launch()
    assert 0 == warm.wait(later.arn)
    assert {PartitionStatus.REPORTED} == {item.status for item in driven.items().values()}
    return later


def corrected(data: bytes) -> bytes:
    """The same flights, each of a greater distance."""
    header, *lines = data.decode().splitlines()
    column = header.split(",").index("distance")
    changed = [line.split(",") for line in lines]
    for fields in changed:
        fields[column] = str(int(fields[column]) + 1000)
    return "\n".join([header, *map(",".join, changed), ""]).encode()


def correct_the_source(driven: Driven) -> None:
    """As if somebody had found the distances to be wrong."""
    for day in driven.shape.dates:
        data = corrected(driven.stack.days[day])
        driven.stack.s3.put_object(Bucket=BUCKET, Key=f"{driven.shape.prefix}/{day}.csv", Body=data)


def free_the_lock_without_proof(stack: Stack, driven: Driven) -> None:
    """What no verb of trueup does: empty the lock while a task of its holder may be alive."""
    lock = stack.ledger.locks.get(driven.table)
    assert [driven.run.run_id] == list(lock.holders)
    table = DynamoTable(stack.dynamodb, TABLE)
    table.write(Write(keys.lock(driven.table), sets={"holders": {}, "version": lock.version + 1}))


def result_key(task: Task) -> str:
    """Where the task stores its result, if it lives to do so."""
    launch = task.launch
    return result_key_of(launch.run_id, launch.phase, launch.slice.slice_id, launch.launch, task.arn)


def forge_result(stack: Stack, later: Task, zombie: Task) -> None:
    """The result of a zombie that does not know: the other one's partitions, with figures of its own."""
    result = json.loads(stack.artifacts.store.get(result_key(later)))
    result |= {"launch": zombie.launch.launch, "taskArn": zombie.arn, "recordsRead": 1}
    stack.artifacts.store.put_once(result_key(zombie), json.dumps(result).encode())
