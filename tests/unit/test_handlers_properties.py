"""Machine, workers, `accept`, `settle`, closer, sweep and redrive in any order, dying at any write.

Nothing is lost, counted twice or stranded, and no lock is kept or freed wrongly. The sink has no guard, so
that an older task's write after a newer one's is seen.
`EXAMPLES=2000` tries more than CI does, and other ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup import Context, Outcome, Output, Partition, Reject
from trueup.aborting import ABORTER
from trueup.accepting import Acceptance
from trueup.errors import TrueupError
from trueup.model.ledger import PartitionItem, Run, TaskItem
from trueup.model.states import END_STATES, RUN_ENDS, PartitionStatus, Phase, RunStatus
from trueup.platform import Ended
from trueup.settling import SETTLER

from .handler_world import Child, Died, Execution, FakeTask, World
from .worker_cases import Numbers, job_file, job_of

MORE = os.environ.get("EXAMPLES")
given_time = settings(
    max_examples=int(MORE or 120),
    derandomize=MORE is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

SILENCE = {"Error": "States.Timeout"}
THROTTLED = {"Error": "ECS.InvalidParameterException", "Cause": "Rate exceeded"}
KEYS = ["a", "b", "c"]

# What happens, to whom (a number that picks), and after how many writes it dies (0: it does not).
STEPS = ["machine"] * 4 + ["child"] * 10 + ["task"] * 10
LAUNCHES = ["kill", "hang", "hang", "refuse", "late", "late", "twice"]
RUNS = ["sweep", "abort", "event", "redrive", "start", "pass"]
ACTION = st.tuples(
    st.sampled_from(STEPS + LAUNCHES + RUNS), st.integers(0, 5), st.sampled_from([0] * 9 + [1, 2, 3])
)
ACTIONS = st.lists(ACTION, min_size=30, max_size=90)


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
        self.here = World(job, job_file(**sections))
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
        except (Died, TrueupError):
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
            self.here.step_child(child)

    def do_task(self, who: int) -> None:
        for task in pick(self.alive(), who):
            try:
                task.step()
            except Died:
                task.end(Ended(exit_code=137, stop_code="SpotInterruption"))

    def do_kill(self, who: int) -> None:
        for task in pick(self.alive(), who):
            task.end(Ended(exit_code=137, stop_code="SpotInterruption", reason="Spot"))

    def do_hang(self, who: int) -> None:
        """The state times out, and the task goes on as if nothing had been."""
        for child in pick([one for one in self.children() if one.task], who):
            if child.task is not None:
                child.task.stuck = True
            self.here.hear(child, SILENCE)

    def do_refuse(self, who: int) -> None:
        for child in pick([one for one in self.children() if one.at == "run"], who):
            self.here.hear(child, THROTTLED)

    def do_late(self, who: int) -> None:
        """The task is started, but begins only when its state is over."""
        for child in pick([one for one in self.children() if one.at in ("take", "run")], who):
            if child.at == "take":
                self.here.step_child(child)
            if child.at == "run":
                self.here.launch(child)
                self.here.hear(child, SILENCE)

    def do_twice(self, who: int) -> None:
        for child in pick([one for one in self.children() if one.task], who):
            self.here.launch(child)

    def do_sweep(self, who: int) -> None:
        self.here.swept()

    def do_abort(self, who: int) -> None:
        if self.execution.status == "RUNNING":
            self.here.abort(self.execution)
            self.events.append(self.here.event(self.execution))

    def do_event(self, who: int) -> None:
        for event in pick(self.events, who):
            self.here.close.handle(event)

    def do_redrive(self, who: int) -> None:
        self.here.redrive(self.execution)

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


def pick(those: list[Any], who: int) -> list[Any]:
    """One of them, where there is one."""
    return [those[who % len(those)]] if those else []


def disjoint(sets: list[set[str]]) -> bool:
    """Whether nothing is in two of them."""
    return sum(map(len, sets)) == len(set().union(*sets))


@given_time
@given(st.integers(1, 3), st.booleans(), ACTIONS)
def test_nothing_is_lost_counted_twice_or_stranded(
    concurrency: int, launching: bool, actions: list[tuple[str, int, int]]
) -> None:
    play = Play(concurrency)
    if launching:  # half of the examples begin where it gets interesting: each child is about to launch
        play.warm_up()
    for what, who, dies_at in actions:
        play.act(what, who, dies_at)
    play.drain()
    judge(play)


def judge(play: Play) -> None:
    """What must be true of a run that is over, however it went."""
    ledger, run = play.here.ledger, play.run
    assert {} == ledger.locks.get("numbers").holders
    items = {item.partition_id: item for item in ledger.partitions.all(run.run_id, Phase.APPLY)}
    counts = ledger.verdicts.counts(run.run_id)
    ended = [item for item in items.values() if item.status in END_STATES]
    assert len(ended) == counts.tally().partitions
    assert sum(item.counters.read for item in ended) == counts.tally().records.read
    for item in items.values():
        if item.status is PartitionStatus.ACCEPTED:
            assert (6, 6) == (item.counters.read, item.counters.written + item.counters.unchanged)
            assert {(item.partition_id, row) for row in range(6)} <= play.sink.rows
    if run.status is RunStatus.SUCCEEDED:
        assert {f"item={key}" for key in KEYS} == set(items)
        assert {PartitionStatus.ACCEPTED} == {item.status for item in items.values()}
    ends = [entry.subject for entry in ledger.audit.of(run.run_id) if entry.verb == "launch-ended"]
    assert len(ends) == len(set(ends))


FAILED, ROW = "failedPartitions", "consecutiveFailures"
RULES: list[dict[str, Any]] = [
    {"of": FAILED, "above": 0},
    {"of": FAILED, "above": 40, "unit": "percent", "minimum": 2},
    {"of": ROW, "above": 1},
    {"of": "rejects", "above": 3},
    {"of": "hours", "above": 0.01, "unit": "hours"},
    {"of": "dollars", "above": 0.005, "unit": "usd"},
]


@given_time
@given(st.integers(1, 3), st.sampled_from(["a", "ab", "abc", "b"]), st.sampled_from(RULES), ACTIONS)
def test_a_run_that_breaks_a_rule_is_aborted_once_whatever_happens(
    concurrency: int, fails: str, rule: dict[str, Any], actions: list[tuple[str, int, int]]
) -> None:
    play = Play(concurrency, fails, [rule])
    play.warm_up()
    for what, who, dies_at in actions:
        play.act(what, who, dies_at)
    play.drain()
    judge_aborted(play, fails, rule)


def judge_aborted(play: Play, fails: str, rule: dict[str, Any]) -> None:
    """The rule ended the run if, and only if, it was broken; what was not worked is not called failed."""
    ledger, run = play.here.ledger, play.run
    assert {} == ledger.locks.get("numbers").holders
    items = list(ledger.partitions.all(run.run_id, Phase.APPLY))
    for item in items:
        if item.status in (PartitionStatus.FAILED, PartitionStatus.ACCEPTED):
            good = item.partition_id.removeprefix("item=") not in fails
            never_began = item.error is not None and item.error.kind == "NeverStarted"
            assert (item.status is PartitionStatus.ACCEPTED) == good or never_began
            assert 6 == item.counters.read or never_began
    stops = [entry for entry in ledger.audit.of(run.run_id) if entry.verb.startswith("stop:")]
    assert 1 == len(stops), "a run is closed once"
    broken = is_broken(play, rule, items)
    if stops[0].who == ABORTER:
        assert RunStatus.ABORTED is run.status
        assert f"abort rule {rule['of']}: " in (run.reason or "")
        # What was at work when the run was closed may yet be accepted, and so lower a share or a row.
        assert broken or rule.get("unit") == "percent" or rule["of"] == ROW
    elif stops[0].who == SETTLER and "moved nothing" not in stops[0].why and rule["of"] not in SPENT:
        assert not broken, "everything was worked, and nobody asked the rule"


SPENT = ("hours", "dollars")


def is_broken(play: Play, rule: dict[str, Any], items: list[PartitionItem]) -> bool:
    """The rule, asked of the partitions themselves and not of the counters."""
    ended = [item for item in items if item.status in END_STATES]
    failed = [item for item in ended if item.status is not PartitionStatus.ACCEPTED]
    if len(ended) < rule.get("minimum", 1) and rule["of"] not in SPENT:
        return False
    share = 100 * len(failed) / len(ended) if ended else 0.0
    figures = {
        FAILED: share if rule.get("unit") == "percent" else len(failed),
        ROW: play.here.ledger.verdicts.failed_in_a_row(play.run_id),
        "rejects": sum(item.counters.rejected for item in ended),
        "hours": play.run.open_seconds / 3600 + 1,
        "dollars": float("inf"),
    }
    return bool(figures[rule["of"]] > rule["above"])


def a_task_that_hangs(play: Play) -> None:
    """The state of a launch times out, and its task goes on while the slice is launched again."""
    script: list[tuple[Callable[[int], None], int]] = [
        *[(play.do_machine, 0)] * 3,
        *[(play.do_child, 0)] * 2,
        *[(play.do_task, 0)] * 8,  # a first batch is written
        (play.do_hang, 0),
        *[(play.do_child, 0)] * 3,  # accept; then, unless it waits for the proof, the next launch
        *[(play.do_task, 1)] * 8,
        *[(play.do_task, 0)] * 4,  # the one that hangs goes on
    ]
    for action, who in script:
        action(who)


def test_a_task_that_hangs_is_proved_stopped_before_its_slice_is_launched_again() -> None:
    play = Play(1)
    a_task_that_hangs(play)
    assert 1 == play.here.launches
    assert [] == play.sink.overtaken()


def test_without_the_proof_of_stopping_the_double_write_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Acceptance, "stop_and_prove", lambda self, run_id, tasks, last=None: [])
    play = Play(1)
    a_task_that_hangs(play)
    assert 2 == play.here.launches
    assert {(2, 1)} == {(newer, older) for _, newer, older in play.sink.overtaken()}
