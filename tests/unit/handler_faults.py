"""Faults as the world dealt them, counted from outside: what `accept` may hold against a partition.

Takes and checkpoints are read off the table's raw writes, ends off what each launch's state was left with.
Nothing here asks the ledger, `accept`, or the code that sorts ends.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueup.ledger.table import Write

from .handler_fakes import FakeTask
from .handler_world import World
from .worker_cases import Died, FailingTable

SILENCE = {"Error": "States.Timeout"}
THROTTLED = {"Error": "ECS.InvalidParameterException", "Cause": "Rate exceeded"}
ENDED_BY_THE_WORLD = "SpotInterruption"


class WatchedTable(FailingTable):
    """A table that tells of each write that arrived, also where its answer did not."""

    def __init__(self) -> None:
        super().__init__()
        self.saw: Callable[[Write], None] = lambda write: None

    def write(self, write: Write) -> Any:
        """As the table writes."""
        try:
            done = super().write(write)
        except Died:
            self.saw(write)
            raise
        self.saw(write)
        return done

    def transact(self, writes: Any) -> None:
        """As the table transacts."""
        try:
            super().transact(writes)
        except Died:
            for write in writes:
                self.saw(write)
            raise
        for write in writes:
            self.saw(write)


@dataclass(frozen=True)
class Charge:
    """A partition that was given up, why, and whether the world had dealt what that takes."""

    partition: str
    kind: str
    deserved: bool


@dataclass
class Faults:
    """Follows one run of a world. `charges`: what was held against partitions, each with its ground.

    `fails`: the partitions whose own code fails.
    """

    world: World
    fails: frozenset[str] = frozenset()
    takes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # since its checkpoint
    took: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    moves: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by dispatch
    charges: list[Charge] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    def saw(self, write: Write) -> None:
        """One write that arrived in the table."""
        if not write.key[1].startswith("PART#"):
            return
        name, sets = write.key[1].removeprefix("PART#"), write.sets
        if "seq" in {**sets, **write.adds}:
            self.moves[self.world.dispatches] += 1
        if "takes" in write.adds:
            self.takes[name].append(sets["launch"])
            self.took[sets["launch"]].add(name)
        elif "cursor" in sets:
            self.takes[name].clear()
        elif sets.get("status") in ("STUCK", "FAILED"):
            kind = sets["error"]["kind"] if "error" in sets else "reported"
            self.charges.append(Charge(name, kind, self._deserves(name, kind)))
            self.stuck |= {name} if sets["status"] == "STUCK" else set()

    def _deserves(self, name: str, kind: str) -> bool:
        """Whether design section 4 gives a partition up for what the world did so far."""
        of_slice = [launch for launch in self.world.heard if name in self.parts(launch)]
        if kind == "NoProgress":
            return sum(map(self.may_be_own, set(self.takes[name]))) >= 2
        if kind == "NeverStarted":
            return sum(self.may_be_own(one) and not self.took[one] for one in of_slice) >= 2
        if kind == "BadInput":
            ends = [task.ended for one in of_slice for task in self._tasks(one)]
            return any(ended is not None and ended.exit_code == 64 for ended in ends)
        if kind == "SliceStuck":
            return any(len(self.stuck & self.parts(one)) >= 3 for one in of_slice)
        return kind == "reported" and name in self.fails

    def parts(self, launch: int) -> set[str]:
        """The partitions of a launch's slice."""
        return {part.id for part in self.world.artifacts.slice(self.world.slices[launch])}

    def may_be_own(self, launch: int) -> bool:
        """Whether a launch's end may be called its own fault: it was heard, and nobody outside ended it.

        Where nobody told, the deadline was its own, unless its task had gone before from outside.
        """
        left = self.world.heard.get(launch)
        return left is not None and is_own(left)

    def is_own_for_sure(self, launch: int) -> bool:
        """The same, where also nobody ended the silent task from outside before `accept` asked for it."""
        silent = self.world.heard.get(launch) == SILENCE
        return self.may_be_own(launch) and not (silent and any(map(_was_ended, self._tasks(launch))))

    def _tasks(self, launch: int) -> list[FakeTask]:
        return [task for task in self.world.ecs.tasks.values() if task.order.launch == launch]

    def unbounded(self) -> set[str]:
        """Partitions that two judged launches took and left by their own fault, without a checkpoint."""
        return {
            name
            for name, launches in self.takes.items()
            if len([one for one in set(launches) & self.world.judged if self.is_own_for_sure(one)]) >= 2
        }

    def moved_nothing(self) -> bool:
        """Whether the last two dispatches changed no partition."""
        return not any(self.moves[self.world.dispatches - back] for back in (0, 1))

    def launches_of_one_slice(self) -> int:
        """How often the slice that was launched most often was launched."""
        ids = [one.slice_id for one in self.world.slices.values()]
        return max(map(ids.count, ids), default=0)


def exit_code(left: Mapping[str, Any]) -> int | None:
    """The container's exit code in what `.sync` left."""
    if left.get("Error") != "States.TaskFailed":
        return None
    code: int | None = json.loads(left["Cause"])["Containers"][0].get("ExitCode")
    return code


def is_own(left: Mapping[str, Any]) -> bool:
    """Whether what a state was left with speaks against the work: not Spot, a stop, or leaving with 75."""
    if left.get("Error") != "States.TaskFailed":
        return left == SILENCE
    by_itself = json.loads(left["Cause"])["StopCode"] == "EssentialContainerExited"
    return by_itself and exit_code(left) != 75


def _was_ended(task: FakeTask) -> bool:
    return task.ended is not None and task.ended.stop_code == ENDED_BY_THE_WORLD
