"""A world, and everything that is done to it: one action at a time, each of which may die at a write."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from trueup import Context, Outcome, Output, Partition, Reject
from trueup.errors import TrueupError
from trueup.model.ledger import PartitionItem, Run, TaskItem
from trueup.model.plan import Slice
from trueup.model.states import RUN_ENDS, UNFINISHED, Phase
from trueup.platform import Ended

from .handler_fakes import Child, Execution, FakeTask
from .handler_faults import ENDED_BY_THE_WORLD, SILENCE, THROTTLED, Faults, WatchedTable
from .handler_world import World, left_by
from .worker_cases import Died, Numbers, job_file, job_of

KEYS = ["a", "b", "c"]
BY_ITSELF = "EssentialContainerExited"
SPOT = Ended(exit_code=137, stop_code=ENDED_BY_THE_WORLD, reason="Spot")

# What happens, to whom (a number that picks), and after how many writes it dies (0: it does not).
Action = tuple[str, int, int]
STEPS = ["machine"] * 4 + ["child"] * 10 + ["task"] * 12
ENDS = ["kill", "kill", "crash", "stumble", "stumble", "bug", "hang", "refuse", "late", "twice"]
RUNS = ["sweep", "event", "redrive", "start", "pass", "unheard", "echo"]
DIES_AT = [0] * 9 + [1, 2, 3]
# What a run does not come back from by itself, so that it happens to a few only.
GRAVE: list[list[str]] = [[], [], [], [], ["abort", "event"], ["abort"], ["abort", "redrive"], ["input"]]


def story(seed: int) -> list[Action]:
    """Actions in a row, seldom with grave ones among them.

    From a seed, and not drawn one by one: those resemble each other, and whole kinds of trouble are left out.
    """
    rng = random.Random(seed)
    whats = rng.choices(STEPS + ENDS + RUNS, k=rng.randint(30, 90))
    at = rng.randint(0, len(whats))
    whats[at:at] = rng.choice(GRAVE)
    return [(what, rng.randint(0, 5), rng.choice(DIES_AT)) for what in whats]


class Unguarded:
    """A target with the guard `none`: it takes whatever comes, and `witness` says who brought it."""

    def __init__(self) -> None:
        self.rows: set[tuple[str, int]] = set()
        self.witness: list[tuple[str, int]] = []

    def put(self, rows: list[Any], ctx: Context) -> Outcome:
        """Write rows, whoever asks."""
        new = {(ctx.partition.id, row) for row in rows} - self.rows
        self.rows |= new
        self.witness.append((ctx.partition.id, ctx.launch))
        return Outcome(written=len(new), unchanged=len(rows) - len(new))

    def overtaken(self) -> list[tuple[str, int, int]]:
        """Writes by a launch after those of a later one, by partition."""
        found = []
        for part in {part for part, _ in self.witness}:
            launches = [launch for name, launch in self.witness if name == part]
            found += [(part, before, after) for before, after in pairwise(launches) if after < before]
        return found


class Play:
    """A world, and what is done to it. `concurrency` is the number of slices; partitions of `fails` fail."""

    def __init__(self, concurrency: int, fails: str = "", rules: Iterable[dict[str, Any]] = ()) -> None:
        def transform(self: Numbers, number: int) -> Any:
            return Reject("odd") if number % 2 and fails else number

        def finish(self: Numbers, part: Partition, ctx: Any) -> list[Output]:
            return [] if part.label not in fails else 1 / 0  # type: ignore[return-value]

        job: type[Numbers] = job_of(sink=Unguarded(), size=6, finish=finish, transform=transform)
        sections = {
            "limits": {"max_concurrency": concurrency},
            "target": {"name": "numbers", "guard": "none"},
            "errors": {"rejects": 6},
            "abort": list(rules),
        }
        table = WatchedTable()
        self.here = World(job, job_file(**sections), table=table)
        self.faults = Faults(self.here, frozenset(f"item={key}" for key in fails))
        table.saw = self.faults.saw
        self.did: Counter[str] = Counter()
        self.told: list[dict[str, Any]] = []
        self.sink: Any = job.sink
        self.run_id = self.here.ask(keys=KEYS).run_id
        self.events: list[dict[str, Any]] = []

    @property
    def run(self) -> Run:
        return self.here.run(self.run_id)

    @property
    def execution(self) -> Execution:
        return self.here.execution(self.run)

    def children(self) -> list[Child]:
        """Those that can move: a machine that stands still moves none."""
        running = self.execution.status == "RUNNING"
        return [child for child in self.execution.children if child.at != "over"] if running else []

    def alive(self) -> list[FakeTask]:
        return [task for task in self.here.ecs.tasks.values() if task.ended is None]

    def act(self, what: str, who: int, dies_at: int) -> None:
        """One action, which may die at a write; then whoever called it calls again some other time."""
        table = self.here.table
        table.writes, table.dies_at = 0, dies_at
        try:
            getattr(self, f"do_{what}")(who)
        except Died:
            self.did[f"{what} died"] += 1
        except TrueupError:
            pass
        finally:
            table.dies_at = 0
        self.check()

    def warm_up(self) -> None:
        """To where every child has its launch number."""
        for _ in range(3):
            self.act("machine", 0, 0)
        for index in range(len(self.children())):
            self.act("child", index, 0)

    def do_machine(self, who: int) -> None:
        self.here.step(self.execution)

    def do_child(self, who: int) -> None:
        for child in pick(self.children(), who):
            at, told = child.at, copy.deepcopy(child.data)
            if at == "accept":
                self.told.append(told)
            try:
                self.here.step_child(child)
            except Died:
                self.did[f"{at} lost"] += 1
                raise
            self.did["stopping"] += at == "accept" and child.answer == "stopping"

    def do_task(self, who: int) -> None:
        for task in pick(self.alive(), who):
            try:
                task.step()
            except Died:
                task.end(SPOT if who % 2 else Ended(exit_code=137, stop_code=BY_ITSELF))

    def end(self, who: int, ended: Ended) -> None:
        for task in pick(self.alive(), who):
            task.end(ended)
            self.did[f"{ended.exit_code} {ended.stop_code}"] += 1

    def do_kill(self, who: int) -> None:
        self.end(who, SPOT)

    def do_crash(self, who: int) -> None:
        self.end(who, Ended(exit_code=137, stop_code=BY_ITSELF, reason="OutOfMemoryError"))

    def do_stumble(self, who: int) -> None:
        """The task takes its next partition, and dies of it."""
        for task in pick(self.alive(), who):
            for _ in range(6):
                task.step()
                if task.at is not None and task.at.name == "taken":
                    task.end(Ended(exit_code=137, stop_code=BY_ITSELF, reason="OutOfMemoryError"))
                    self.did["stumbled"] += 1
                    return

    def do_bug(self, who: int) -> None:
        self.end(who, Ended(exit_code=70, stop_code=BY_ITSELF))

    def do_input(self, who: int) -> None:
        self.end(who, Ended(exit_code=64, stop_code=BY_ITSELF))

    def do_hang(self, who: int) -> None:
        """The state times out, and the task goes on as if nothing had been."""
        for child in pick([one for one in self.children() if one.task], who):
            task, launch = child.task, child.data["number"]["launch"]
            self.here.hear(child, SILENCE)
            if task is not None and task.ended is not None:
                self.here.heard[launch] = left_by(task.ended)  # ECS knows, and `accept` asks it
            elif task is not None:
                task.stuck = True
                self.did["frozen"] += 1

    def do_refuse(self, who: int) -> None:
        for child in pick([one for one in self.children() if one.at == "run"], who):
            self.here.slices[child.data["number"]["launch"]] = slice_of(child)
            self.here.hear(child, THROTTLED)
            self.did["refused"] += 1

    def do_late(self, who: int) -> None:
        """The task is started, but begins only when its state is over."""
        for child in pick([one for one in self.children() if one.at in ("take", "run")], who):
            if child.at == "take":
                self.here.step_child(child)
            if child.at == "run":
                self.here.launch(child)
                self.here.hear(child, SILENCE)
                self.did["late"] += 1

    def do_twice(self, who: int) -> None:
        for child in pick([one for one in self.children() if one.task], who):
            self.here.launch(child)
            self.did["twice"] += 1

    def do_unheard(self, who: int) -> None:
        """`accept` does its work, and its answer is lost."""
        for child in pick([one for one in self.children() if one.at == "accept"], who):
            self.did["accept lost"] += 1
            self.here.accept.handle(child.data)

    def do_echo(self, who: int) -> None:
        """`accept` is called once more for a launch that was judged, whatever happened since."""
        for told in pick(self.told, who):
            self.did["echo"] += 1
            self.here.accept.handle(told)

    def do_sweep(self, who: int) -> None:
        self.here.swept()
        self.did["sweep"] += 1

    def do_abort(self, who: int) -> None:
        if self.execution.status == "RUNNING":
            self.here.abort(self.execution)
            self.events.append(self.here.event(self.execution))
            self.did["abort"] += 1

    def do_event(self, who: int) -> None:
        for event in pick(self.events, who):
            self.did["closer late" if self.execution.status == "RUNNING" else "closer"] += 1
            self.here.close.handle(event)

    def do_redrive(self, who: int) -> None:
        before = self.execution.status
        self.here.redrive(self.execution)
        self.did["redrive"] += before != self.execution.status

    def do_start(self, who: int) -> None:
        self.here.ask(keys=KEYS)

    def do_pass(self, who: int) -> None:
        self.here.clock.pass_(10.0 * (who + 1))

    def check(self) -> None:
        """What holds at every moment."""
        ledger, run = self.here.ledger, self.run
        tasks = list(ledger.tasks.of(self.run_id))
        held = self.run_id in ledger.locks.get("numbers").holders
        assert disjoint(self.covered(tasks)), "two unproved tasks have a partition in common"
        if run.status in RUN_ENDS:
            assert [] == tasks, "a run has ended while a task is not proved stopped"
        else:
            assert held == (run.epoch > 0), "a run that has not ended has lost its lock"
        assert [] == self.sink.overtaken()
        unbounded = {one for one in self.faults.unbounded() if self.item(one).status in UNFINISHED}
        assert set() == unbounded, "taken twice without progress by its task's own fault, and still open"

    def item(self, partition_id: str) -> PartitionItem:
        """A partition as the ledger has it."""
        return self.here.ledger.partitions.get(self.run_id, Phase.APPLY, partition_id)

    def covered(self, tasks: Iterable[TaskItem]) -> list[set[str]]:
        """The partitions that each of these tasks may work."""
        slices = [self.here.ecs.tasks[task.task].order.slice for task in tasks]
        return [{part.id for part in self.here.artifacts.slice(one)} for one in slices]

    def drain(self) -> None:
        """Nothing odd happens any more: everybody takes turns, and the sweep comes now and then."""
        for turn in range(400):
            self.act("machine", 0, 0)
            for index in range(len(self.children())):
                self.act("child", index, 0)
            for index in range(len(self.alive())):
                self.act("task", index, 0)
            if turn % 5 == 4:
                self.act("sweep", 0, 0)
            if self.is_over():
                return
        raise AssertionError(f"stranded: {self.run.status}, {self.execution.told}, {self.children()}")

    def is_over(self) -> bool:
        at_rest = self.run.status in RUN_ENDS and self.execution.status != "RUNNING"
        return at_rest and not self.alive() and self.run_id not in set(self.here.ledger.runs.unsettled())


def slice_of(child: Child) -> Slice:
    """The slice that a child works."""
    return Slice.model_validate(child.data["order"]["slice"])


def pick(those: list[Any], who: int) -> list[Any]:
    """One of them, where there is one."""
    return [those[who % len(those)]] if those else []


def disjoint(sets: list[set[str]]) -> bool:
    """Whether nothing is in two of them."""
    return sum(map(len, sets)) == len(set().union(*sets))
