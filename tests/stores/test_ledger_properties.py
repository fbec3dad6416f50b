"""Whatever happens in whatever order, the ledger keeps its promises, and every table gives the same answers.

`EXAMPLES=1000` tries that many sequences instead of the few that are the same every time.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from trueup.errors import NotFound, Refused, UsageError
from trueup.ledger import Decision, Ledger, Owner
from trueup.ledger.dynamo import DynamoTable
from trueup.ledger.memory import MemoryTable
from trueup.ledger.table import Table
from trueup.ledger.verdicts import DECIDED
from trueup.local.stores import TABLE
from trueup.model.counters import Counters
from trueup.model.gate import Gate
from trueup.model.ledger import Checkpoint, PartitionItem, Run
from trueup.model.result import PartitionResult, record_counts
from trueup.model.states import (
    END_STATES,
    GATE_ARROWS,
    PARTITION_ARROWS,
    RESTARTED,
    GateStatus,
    PartitionStatus,
    Phase,
    ResultStatus,
)
from trueup.testing.suites.gates import BOB, CAT, EVE, ROLES, asked
from trueup.testing.suites.support import TickingClock, a_run, a_task

P = PartitionStatus
APPLY = Phase.APPLY
PARTITIONS = ("a", "b", "c")
RECORDS = 20
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))

G = GateStatus
partitions = st.sampled_from(PARTITIONS)
hashes = st.sampled_from(["1" * 64, "2" * 64])
people = st.sampled_from(["ann", BOB, CAT, EVE])
which = st.integers(0, 100)


@dataclass
class Task:
    """A task, and what it believes of the partitions that it took: frozen, it goes on believing that."""

    owner: Owner
    views: dict[str, PartitionItem] = field(default_factory=dict)


class LedgerMachine(RuleBasedStateMachine):
    """Several tasks, an accepter and an operator over a few partitions.

    All act on what they once read, which may be stale by then.
    Every call goes to every ledger, and all must give the same answer.
    """

    tables: ClassVar[Callable[[], list[Table]]] = staticmethod(lambda: [MemoryTable()])

    @initialize()
    def start(self) -> None:
        self.run = a_run()
        self.gate: Gate | None = None
        tables = self.tables()
        self.clocks = [TickingClock() for _ in tables]
        pairs = zip(tables, self.clocks, strict=True)
        self.ledgers = [Ledger(table, clock, _unique()) for table, clock in pairs]
        self.tasks: list[Task] = []
        self.frozen: list[Task] = []
        self.seen: list[PartitionItem] = []
        self.owners: dict[str, Owner] = {}
        self.before = {name: PartitionItem(partition_id=name) for name in PARTITIONS}
        self.done = "nothing"
        self.do("create", lambda ledger: ledger.runs.create(self.run))

    def do(self, kind: str, call: Callable[[Ledger], Any]) -> Any:
        """Call every ledger; the answer or refusal that all gave."""
        self.done = kind
        answers = [_outcome(call, ledger) for ledger in self.ledgers]
        assert all(answers[0][0] == answer for answer, _ in answers), answers
        return answers[0][1]

    @rule()
    def a_task_starts(self) -> None:
        launch = self.do("launch", lambda ledger: ledger.runs.next_launch(self.run.run_id, 1))
        task = Task(Owner(self.run.run_id, APPLY, launch, f"task-{launch}", epoch=1))
        self.do(
            "register", lambda ledger: ledger.tasks.register(self.run.run_id, a_task(launch, task.owner.task))
        )
        self.tasks.append(task)

    @precondition(lambda self: self.tasks)
    @rule(number=which, name=partitions)
    def a_task_takes(self, number: int, name: str) -> None:
        task = self.tasks[number % len(self.tasks)]
        taken = self.do("take", lambda ledger: ledger.partitions.take(task.owner, name))
        if isinstance(taken, Exception):
            return
        assert self.owners.get(name) in (None, task.owner) or self.owners[name].launch < task.owner.launch
        self.owners[name] = task.owner
        task.views[name] = taken.item

    @precondition(lambda self: self.tasks)
    @rule(number=which, name=partitions, records=st.integers(1, 5), lost=st.booleans())
    def a_task_advances(self, number: int, name: str, records: int, lost: bool) -> None:
        self._move(self.tasks[number % len(self.tasks)], name, "advance", records, lost)

    @precondition(lambda self: self.tasks)
    @rule(number=which, name=partitions, how=st.sampled_from(["report", "interrupt"]), lost=st.booleans())
    def a_task_leaves_a_partition(self, number: int, name: str, how: str, lost: bool) -> None:
        self._move(self.tasks[number % len(self.tasks)], name, how, 0, lost)

    @precondition(lambda self: self.frozen)
    @rule(
        number=which,
        name=partitions,
        how=st.sampled_from(["advance", "report", "interrupt"]),
        records=st.integers(1, 5),
    )
    def a_zombie_wakes_and_acts(self, number: int, name: str, how: str, records: int) -> None:
        self._move(self.frozen[number % len(self.frozen)], name, how, records, lost=False)

    def _move(self, task: Task, name: str, how: str, records: int, lost: bool) -> None:
        view = task.views.get(name)
        if view is None:
            return
        call = _move_of(task.owner, view, how, records)
        moved = self.do(how, call)
        if isinstance(moved, Exception):
            return
        assert task.owner == self.owners[name], f"{task.owner} moved what {self.owners[name]} owns"
        if lost:
            assert moved == self.do(how, call), "repeated after a lost answer it did something else"
        task.views[name] = moved

    @precondition(lambda self: self.tasks)
    @rule(number=which)
    def a_task_is_killed(self, number: int) -> None:
        self.tasks.pop(number % len(self.tasks))

    @precondition(lambda self: self.tasks)
    @rule(number=which)
    def a_task_freezes(self, number: int) -> None:
        self.frozen.append(self.tasks.pop(number % len(self.tasks)))

    @rule(name=partitions)
    def somebody_reads(self, name: str) -> None:
        self.seen.append(self.do("get", lambda ledger: ledger.partitions.get(self.run.run_id, APPLY, name)))

    @rule(name=partitions, to=st.sampled_from(P))
    def the_accepter_reads_and_decides(self, name: str, to: PartitionStatus) -> None:
        self.somebody_reads(name)
        self._decide([Decision(self.seen[-1], to)])

    @precondition(lambda self: self.seen)
    @rule(numbers=st.lists(which, min_size=1, max_size=3), to=st.sampled_from(sorted(DECIDED)))
    def the_accepter_decides_what_it_read_before(self, numbers: list[int], to: PartitionStatus) -> None:
        chosen = {item.partition_id: item for item in (self.seen[n % len(self.seen)] for n in numbers)}
        self._decide([Decision(item, to) for item in chosen.values()])

    def _decide(self, decisions: list[Decision]) -> None:
        def decide(ledger: Ledger) -> None:
            ledger.verdicts.decide(self.run.run_id, APPLY, decisions)

        if self.do("decide", decide) is None:
            assert self.do("decide", decide) is None, "decided again it was refused"

    @precondition(lambda self: self.seen)
    @rule(number=which)
    def a_take_is_forgiven(self, number: int) -> None:
        item = self.seen[number % len(self.seen)]
        if item.launch:
            self.do("forgive", lambda ledger: ledger.partitions.forgive(self.run.run_id, APPLY, item))

    @rule(name=partitions, launch=st.integers(1, 12))
    def a_launch_ended_before_any_take(self, name: str, launch: int) -> None:
        self.do("fault", lambda ledger: ledger.partitions.fault(self.run.run_id, APPLY, name, launch))

    @rule(name=partitions, launch=st.integers(1, 12))
    def a_launch_was_ended_before_any_take(self, name: str, launch: int) -> None:
        self.do("idled", lambda ledger: ledger.partitions.idled(self.run.run_id, APPLY, name, launch))

    @rule(names=st.lists(partitions, min_size=1, max_size=3), verb=st.sampled_from(["retry", "skip"]))
    def an_operator_acts(self, names: list[str], verb: str) -> None:
        def act(ledger: Ledger) -> None:
            getattr(ledger.verdicts, verb)(self.run.run_id, APPLY, names, who="ann", why="because")

        self.do(verb, act)

    @rule(sha256=hashes)
    def the_run_comes_to_a_gate(self, sha256: str) -> None:
        self.do("ask", lambda ledger: ledger.gates.open(_run_of(ledger, self.run), asked(sha256)))

    @rule(sha256=hashes, token=st.sampled_from("xyz"))
    def its_execution_waits(self, sha256: str, token: str) -> None:
        self.do("wait", lambda ledger: ledger.gates.wait(_run_of(ledger, self.run), "apply", sha256, token))

    @rule(sha256=hashes, who=people, to=st.sampled_from([G.APPROVED, G.REJECTED]))
    def somebody_decides(self, sha256: str, who: str, to: GateStatus) -> None:
        def decide(ledger: Ledger) -> Any:
            return ledger.gates.decide(self.run.run_id, "apply", to, who=who, sha256=sha256)

        if isinstance(decided := self.do("decide a gate", decide), Gate):
            assert (who in (BOB, CAT)) or (who == "ann" and to is G.REJECTED)
            assert sha256 == decided.sha256
            assert decided == self.do("decide a gate", decide), "repeated it did something else"

    @rule(sha256=hashes)
    def the_run_goes_on(self, sha256: str) -> None:
        def spend(ledger: Ledger) -> Any:
            return ledger.gates.spend(_run_of(ledger, self.run), "apply", sha256, ROLES)

        before = self.gate
        if isinstance(spent := self.do("spend", spend), Gate):
            assert before is not None
            assert (before.status, before.sha256) in {(G.APPROVED, sha256), (G.SPENT, sha256)}
            assert spent.decided_by in (BOB, CAT)

    @rule(minutes=st.sampled_from([1, 30]))
    def time_passes_at_the_gate(self, minutes: int) -> None:
        for clock in self.clocks:
            clock.skip(timedelta(minutes=minutes))

    @rule(to=st.sampled_from([G.EXPIRED, G.SUPERSEDED, G.WITHDRAWN]))
    def the_gate_ends(self, to: GateStatus) -> None:
        if self.gate is not None:
            gate = self.gate
            self.do("end", lambda ledger: ledger.gates.end(gate, to, who="trueup:gate", why="because"))

    @invariant()
    def the_gate_moves_along_its_arrows(self) -> None:
        now = self.ledgers[0].gates.find(self.run.run_id, "apply")
        if self.gate is not None and now is not None and self.gate.status is not now.status:
            assert (self.gate.status, now.status) in GATE_ARROWS
        waits = [gate.sha256 for gate in self.ledgers[0].gates.waiting() if gate.run_id == self.run.run_id]
        assert ([now.sha256] if now and now.is_waiting else []) == waits
        passed = _run_of(self.ledgers[0], self.run).passed
        assert ({"apply": now.sha256} if now and now.status is G.SPENT else {}) == passed
        self.gate = now

    @invariant()
    def the_promises_hold(self) -> None:
        ledger = self.ledgers[0]
        now = ledger.partitions.get_many(self.run.run_id, APPLY, PARTITIONS)
        for name in PARTITIONS:
            _check_step(self.done, self.before[name], now[name])
        assert _recomputed(now.values()) == _counted(ledger, self.run.run_id)
        self.before = now

    def teardown(self) -> None:
        told = [_everything(ledger, self.run.run_id) for ledger in self.ledgers]
        assert all(told[0] == other for other in told)


def _run_of(ledger: Ledger, run: Run) -> Run:
    return ledger.runs.get(run.run_id)


def _unique() -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"{next(numbers):06d}"


def _outcome(call: Callable[[Ledger], Any], ledger: Ledger) -> tuple[Any, Any]:
    """What can be compared of an answer, and the answer; errors that a ledger may raise are answers."""
    try:
        answer = call(ledger)
    except (Refused, NotFound, UsageError, ValueError) as error:
        side = (error.clause, error.wanted, error.found) if isinstance(error, Refused) else ()
        return (type(error), str(error), *side), error
    return answer, answer


def _move_of(owner: Owner, view: PartitionItem, how: str, records: int) -> Callable[[Ledger], PartitionItem]:
    if how == "report":
        entry = PartitionResult(
            partition_id=view.partition_id,
            fence=view.fence,
            status=ResultStatus.SUCCEEDED,
            cursor=view.cursor,
            **record_counts(view.counters),
        )
        return lambda ledger: ledger.partitions.report(owner, view, entry)
    if how == "interrupt":
        return lambda ledger: ledger.partitions.interrupt(owner, view, "SIGTERM")
    # What its owner reads next are the records after the cursor that it took or wrote last.
    to = min(_position(view) + records, RECORDS)
    counters = Counters(read=to, used=to, produced=to, written=to)
    return lambda ledger: ledger.partitions.advance(
        owner, view, Checkpoint(cursor=f"v1:{to}", counters=counters)
    )


def _position(item: PartitionItem) -> int:
    return int(item.cursor.removeprefix("v1:")) if item.cursor else 0


# Which calls may lead to which states.
CAUSES = {
    P.RUNNING: {"take"},
    P.REPORTED: {"report"},
    P.INTERRUPTED: {"interrupt"},
    P.PENDING: {"retry"},
    P.SKIPPED: {"skip"},
    **{status: {"decide"} for status in DECIDED},
}


def _check_step(done: str, before: PartitionItem, now: PartitionItem) -> None:
    """What must hold between any two looks at a partition with one call in between."""
    if before.status is not now.status:
        assert (before.status, now.status) in PARTITION_ARROWS
        assert done in CAUSES[now.status]
    assert before.seq <= now.seq
    assert before.launch <= now.launch
    assert before.fence <= now.fence
    assert (now.launch == before.launch) or done == "take"
    assert _position(now) == now.counters.read, "counted once, and nothing else"
    if (before.cursor, before.counters) != (now.cursor, now.counters):
        _check_movement(done, before, now)
    if before.status in END_STATES and done not in ("retry", "skip"):
        assert before.model_copy(update=_bounds(now)) == now, "an end state moved"


def _check_movement(done: str, before: PartitionItem, now: PartitionItem) -> None:
    if done == "retry":
        assert before.status in RESTARTED
        assert now.cursor is None
    else:
        assert done == "advance"
        assert now.seq == before.seq + 1
        assert _position(before) <= _position(now)


def _bounds(item: PartitionItem) -> dict[str, Any]:
    return {"faults": item.faults, "faulted": item.faulted, "idle": item.idle}


def _recomputed(items: Any) -> dict[PartitionStatus, tuple[int, int]]:
    ended = [item for item in items if item.status in END_STATES]
    partitions_in = Counter(item.status for item in ended)
    return {
        status: (number, sum(item.counters.read for item in ended if item.status is status))
        for status, number in partitions_in.items()
    }


def _counted(ledger: Ledger, run_id: str) -> dict[PartitionStatus, tuple[int, int]]:
    by_state = ledger.verdicts.counts(run_id).by_state
    return {status: (of.partitions, of.records.read) for status, of in by_state.items()}


def _everything(ledger: Ledger, run_id: str) -> tuple[Any, ...]:
    return (
        ledger.runs.get(run_id),
        list(ledger.tasks.of(run_id)),
        list(ledger.partitions.all(run_id, APPLY)),
        list(ledger.gates.of(run_id)),
        ledger.verdicts.counts(run_id),
        list(ledger.audit.of(run_id)),
    )


def _settings(examples: int) -> settings:
    return settings(
        max_examples=EXAMPLES or examples,
        stateful_step_count=40,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_random_sequences_keep_the_ledgers_promises() -> None:
    run_state_machine_as_test(LedgerMachine, settings=_settings(50))


@pytest.mark.parametrize(("kind", "examples"), [("moto", 3), ("ministack", 5)])
def test_every_table_gives_the_same_answers_to_the_same_sequence(
    kind: str, examples: int, request: pytest.FixtureRequest
) -> None:
    dynamodb = request.getfixturevalue(f"{kind}_clients")["dynamodb"]

    class OnBoth(LedgerMachine):
        """Memory and DynamoDB."""

        tables = staticmethod(lambda: [MemoryTable(), DynamoTable(dynamodb, TABLE)])

    run_state_machine_as_test(OnBoth, settings=_settings(examples))
