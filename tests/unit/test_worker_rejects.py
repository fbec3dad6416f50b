"""Rejects: each one exactly once in the object that the report names, whatever happened on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from trueup import Reject
from trueup.model.states import PartitionStatus
from trueup.testing import LocalRun
from trueup.worker import rejects as rejects_module
from trueup.worker.rejects import _line

from .worker_cases import FailingStore, Numbers, item, job_of, run_of, step_until

LENIENT = {"errors": {"rejects": 100}}
EVEN = [0, 2, 4, 6, 8, 10]


def rejecting() -> type[Numbers]:
    """Rejects even numbers."""
    return job_of(transform=lambda self, n: Reject(f"{n} is even") if n % 2 == 0 else n)


def rejected(run: LocalRun) -> list[Any]:
    """The records in the object that the partition's entry names."""
    entry = item(run).entry
    assert entry is not None
    assert entry.rejects is not None
    data = run.artifacts.store.get(entry.rejects.removeprefix("s3://memory/"))
    return [json.loads(line)["rejected"] for line in data.splitlines()]


def test_rejects_go_to_their_own_object_with_their_reason() -> None:
    run = run_of(rejecting(), sections=LENIENT)
    run.run()
    assert EVEN == rejected(run)
    entry = item(run).entry
    assert entry is not None
    first = run.artifacts.store.get(str(entry.rejects).removeprefix("s3://memory/")).splitlines()[0]
    assert {"rejected": 0, "reason": "0 is even"} == json.loads(first)


def test_without_rejects_no_object_is_named() -> None:
    run = run_of(job_of())
    run.run()
    entry = item(run).entry
    assert entry is not None
    assert entry.rejects is None


POINTS = 11


@pytest.mark.parametrize("checkpoint_seconds", [0, 60])
@pytest.mark.parametrize("point", range(1, POINTS))
@pytest.mark.parametrize("stop", [LocalRun.kill, LocalRun.interrupt, LocalRun.freeze])
def test_each_reject_is_there_once(
    point: int, stop: Callable[[LocalRun], Any], checkpoint_seconds: float
) -> None:
    run = run_of(rejecting(), sections=LENIENT, checkpoint_seconds=checkpoint_seconds)
    for _ in range(point):
        run.step()
    zombies = stop(run) or []
    for zombie in zombies:
        run.step()  # The next task takes over before the zombie wakes.
        run.step()
        while zombie.step() is not None:
            pass
    run.run()
    assert (EVEN, 6) == (rejected(run), run.records.rejected)


def test_a_zombie_cannot_change_the_object_of_the_task_that_took_over() -> None:
    run = run_of(rejecting(), sections=LENIENT)
    step_until(run, "written", 2)
    zombie = run.freeze()[0]
    run.run()
    while zombie.step() is not None:
        pass
    assert EVEN == rejected(run)


def test_rejects_that_cannot_be_stored_stop_the_task_before_its_checkpoint() -> None:
    store = FailingStore()
    run = run_of(rejecting(), sections=LENIENT, store=store)
    step_until(run, "advanced")
    store.down = lambda key: "/rejects/" in key
    step_until(run, "written")
    run.step()
    assert "v1:3" == item(run).cursor
    store.down = lambda key: False
    run.run()
    assert EVEN == rejected(run)


def test_a_store_that_never_takes_the_rejects_does_not_start_tasks_without_end() -> None:
    store = FailingStore()
    store.down = lambda key: "/rejects/" in key
    run = run_of(rejecting(), sections=LENIENT, store=store)
    run.run()
    assert (PartitionStatus.STUCK, 2) == (item(run).status, len(run.tasks))


def test_many_parts_become_one_before_the_item_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects_module, "MOST_PARTS", 2)
    run = run_of(rejecting(), sections=LENIENT)
    most = 0
    while run.step() is not None:
        most = max(most, len(item(run).reject_parts))
    assert (EVEN, 2) == (rejected(run), most)


class Odd:
    """Something that JSON has no word for."""

    def __repr__(self) -> str:
        return "<odd>"


class Mute:
    """Something that will not even say what it is."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        (Odd(), "<odd>"),
        ({"at": Odd()}, {"at": "<odd>"}),
        ({(1, 2): "tuple as a key"}, "{(1, 2): 'tuple as a key'}"),
        (float("nan"), "nan"),
        (Mute(), "a Mute whose repr cannot be had (RuntimeError)"),
        ("caf\udce9", "caf\udce9"),
    ],
)
def test_a_reject_that_json_cannot_say_is_kept_all_the_same(record: Any, expected: Any) -> None:
    assert {"rejected": expected, "reason": "bad"} == json.loads(_line({"rejected": record, "reason": "bad"}))


def test_refused_rows_lie_there_too() -> None:
    from trueup import Outcome

    def write(self: Numbers, rows: list[int], ctx: Any) -> Outcome:
        return Outcome(written=len(rows) - 1, refused=[(rows[0], "constraint")])

    run = run_of(job_of(write=write), sections=LENIENT)
    run.run()
    entry = item(run).entry
    assert entry is not None
    data = run.artifacts.store.get(str(entry.rejects).removeprefix("s3://memory/"))
    assert [0, 3, 6, 9] == [json.loads(line)["refused"] for line in data.splitlines()]
