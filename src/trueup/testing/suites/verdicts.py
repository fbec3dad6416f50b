"""End states, the counters that follow them, and the verbs that undo them."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from dataclasses import replace
from functools import partial

from trueup.errors import Stale, UsageError
from trueup.ledger import Decision, keys
from trueup.ledger.table import Table, Write
from trueup.ledger.verdicts import DECIDED
from trueup.model.counters import Counters
from trueup.model.ledger import PartitionItem
from trueup.model.result import PartitionError
from trueup.model.states import PARTITION_ARROWS, RESTARTED, RETRYABLE, SKIPPABLE, PartitionStatus, Phase
from trueup.testing.suites.support import (
    APPLY,
    Scene,
    checkpoint,
    counted,
    entry_of,
    in_threads,
    refusal,
    unique,
)

P = PartitionStatus
DECISIONS = sorted((before, after) for before, after in PARTITION_ARROWS if after in DECIDED)


def seeded(scene: Scene, status: PartitionStatus, name: str, records: int = 5) -> PartitionItem:
    """A partition in any state, come there by the ledger's own calls."""
    if status is P.PENDING:
        return scene.get(name)
    if status is P.SKIPPED:
        scene.ledger.verdicts.skip(scene.run_id, APPLY, [name], who="ann", why="empty")
        return scene.get(name)
    item = scene.advance(scene.take(name), records)
    if status is P.RUNNING:
        return item
    if status is P.INTERRUPTED:
        return scene.interrupt(item)
    if status is not P.STUCK:
        item = scene.report(item)
    if status is not P.REPORTED:
        scene.decide(item, to=status)
    return scene.get(name)


class DecideSuite:
    """Accept's decisions."""

    def test_every_arrow_to_an_end_state_is_written(self, table: Table) -> None:
        scene = Scene(table)
        for before, after in DECISIONS:
            item = seeded(scene, before, f"{before}-{after}")
            scene.decide(item, to=after)
            decided = scene.get(item.partition_id)
            assert (before, after, item.seq + 1) == (before, decided.status, decided.seq)
            unmoved = ("cursor", "counters", "launch", "task", "fence", "takes", "entry")
            assert all(getattr(item, name) == getattr(decided, name) for name in unmoved)

    def test_every_other_decision_is_an_error_and_writes_nothing(self, table: Table) -> None:
        scene = Scene(table)
        for before in P:
            item = seeded(scene, before, f"of-{before}")
            for after in set(P) - {before} - {to for of, to in DECISIONS if of is before}:
                error = refusal(ValueError, scene.decide, item, to=after)
                assert f"{before} and cannot be decided to be {after}" in str(error)
            assert item == scene.get(item.partition_id)

    def test_one_wrong_decision_in_a_list_writes_none_of_it(self, table: Table) -> None:
        scene = Scene(table)
        good, wrong = scene.worked("good", 5), scene.take("wrong")
        refusal(ValueError, scene.decide, good, wrong, to=P.ACCEPTED)
        refusal(ValueError, scene.decide, good, good, to=P.ACCEPTED)
        assert (good, {}) == (scene.get("good"), scene.counts())

    def test_a_decision_keeps_the_error_that_people_read(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.worked("p", 5)
        error = PartitionError(kind="used", message="read 5 is not used 4 + skipped 0 + rejected 0")
        scene.ledger.verdicts.decide(scene.run_id, APPLY, [Decision(item, P.REFUSED, error)])
        assert error == scene.get("p").error

    def test_decided_again_nothing_changes(self, table: Table) -> None:
        scene = Scene(table)
        items = [scene.worked(name, 5) for name in "abc"]
        scene.decide(*items, to=P.ACCEPTED)
        after = [scene.get(name) for name in "abc"]
        scene.decide(*items, to=P.ACCEPTED)
        scene.decide(*after, to=P.ACCEPTED)
        assert (after, {"ACCEPTED": (3, 15)}) == ([scene.get(name) for name in "abc"], scene.counts())

    def test_what_was_decided_in_part_is_completed(self, table: Table) -> None:
        scene = Scene(table)
        items = [scene.worked(name, 5) for name in "abc"]
        scene.decide(items[1], to=P.ACCEPTED)
        scene.decide(*items, to=P.ACCEPTED)
        assert {"ACCEPTED": (3, 15)} == scene.counts()

    def test_of_eight_that_decide_the_same_at_once_it_is_counted_once(self, table: Table) -> None:
        scene = Scene(table)
        items = [scene.worked(name, 5) for name in "abc"]
        assert [None] * 8 == in_threads(8, lambda _: scene.decide(*items, to=P.ACCEPTED))
        assert {"ACCEPTED": (3, 15)} == scene.counts()

    def test_of_two_that_decide_otherwise_at_once_one_wins(self, table: Table) -> None:
        scene = Scene(table)
        item = scene.worked("p", 5)
        ends = [P.ACCEPTED, P.REFUSED]
        answers = in_threads(2, lambda index: scene.decide(item, to=ends[index]))
        assert (1, 1) == (answers.count(None), sum(isinstance(answer, Stale) for answer in answers))
        assert {ends[answers.index(None)].value: (1, 5)} == scene.counts()

    def test_a_stale_decision_is_refused_and_nothing_of_its_transaction_is_written(
        self, table: Table
    ) -> None:
        scene = Scene(table)
        fresh, stale = scene.worked("fresh", 5), scene.take("stale")
        taken = scene.take("stale", launch=2)
        decisions = [Decision(fresh, P.ACCEPTED), Decision(stale, P.STUCK)]
        error = refusal(Stale, scene.ledger.verdicts.decide, scene.run_id, APPLY, decisions)
        assert ("nobody moved it since it was read", stale.seq) == (error.clause, error.wanted)
        assert taken.seq == (error.found or {})["seq"]
        assert "PART#stale" in str(error)
        assert (fresh, taken, {}) == (scene.get("fresh"), scene.get("stale"), scene.counts())

    def test_the_stale_one_is_named_though_others_had_arrived(self, table: Table) -> None:
        scene = Scene(table)
        arrived, stale = scene.worked("arrived", 5), scene.worked("stale", 5)
        scene.decide(arrived, to=P.ACCEPTED)
        scene.decide(stale, to=P.REFUSED)
        error = refusal(Stale, scene.decide, arrived, stale, to=P.ACCEPTED)
        assert "PART#stale" in str(error)
        assert {"ACCEPTED": (1, 5), "REFUSED": (1, 5)} == scene.counts()

    def test_a_pending_partition_that_was_taken_meanwhile_is_stale(self, table: Table) -> None:
        scene = Scene(table)
        view = scene.get()
        scene.take()
        error = refusal(Stale, scene.decide, view, to=P.FAILED)
        assert "its state is the one that was read" == error.clause

    def test_counters_tell_states_and_records_apart(self, table: Table) -> None:
        scene = Scene(table)
        for records, status in enumerate(sorted(DECIDED), start=1):
            scene.ended(f"1-{status}", records, to=status)
            scene.ended(f"2-{status}", 10 * records, to=status)
        expected = {
            status.value: (2, 11 * records) for records, status in enumerate(sorted(DECIDED), start=1)
        }
        assert expected == scene.counts()
        total = scene.ledger.verdicts.counts(scene.run_id).tally()
        assert (10, counted(165)) == (total.partitions, total.records)

    def test_counters_tell_phases_apart(self, table: Table) -> None:
        scene = Scene(table)
        scene.ended("p", 5, to=P.ACCEPTED)
        pending = PartitionItem(partition_id="q")
        scene.ledger.verdicts.decide(scene.run_id, Phase.REHEARSE, [Decision(pending, P.FAILED)])
        of = {
            phase: scene.ledger.verdicts.counts(scene.run_id, phase).by_state
            for phase in (APPLY, Phase.REHEARSE)
        }
        assert {APPLY: [P.ACCEPTED], Phase.REHEARSE: [P.FAILED]} == {
            phase: list(found) for phase, found in of.items()
        }
        assert {"ACCEPTED": (1, 5), "FAILED": (1, 0)} == scene.counts()

    def test_counters_are_spread_over_their_items(self, table: Table) -> None:
        scene = Scene(table)
        for number in range(24):
            scene.decide(PartitionItem(partition_id=f"p{number}"), to=P.FAILED)
        used = table.get_many([keys.count(scene.run_id, number) for number in range(keys.SHARDS)])
        assert 4 <= len(used)
        assert {"FAILED": (24, 0)} == scene.counts()


class RowSuite:
    """How many partitions failed in a row, in the order in which their ends were written."""

    def follow(self, scene: Scene, *ends: P) -> int:
        """Decide as many new partitions at once; the row after that."""
        named = [(PartitionItem(partition_id=unique("p")), to) for to in ends]
        todo = [Decision(scene.worked(item.partition_id, 1), to) for item, to in named]
        scene.ledger.verdicts.decide(scene.run_id, APPLY, todo, follow_failures=True)
        return scene.ledger.verdicts.failed_in_a_row(scene.run_id)

    def test_a_failure_makes_it_longer_and_an_acceptance_ends_it(self, table: Table) -> None:
        scene = Scene(table)
        assert 0 == scene.ledger.verdicts.failed_in_a_row(scene.run_id)
        assert [1, 3, 0, 1] == [
            self.follow(scene, P.FAILED),
            self.follow(scene, P.REFUSED, P.REJECTED),
            self.follow(scene, P.ACCEPTED),
            self.follow(scene, P.FAILED),
        ]

    def test_within_one_transaction_what_comes_after_the_last_acceptance_counts(self, table: Table) -> None:
        scene = Scene(table)
        self.follow(scene, P.FAILED, P.FAILED)
        assert 1 == self.follow(scene, P.FAILED, P.ACCEPTED, P.REFUSED)
        assert 0 == self.follow(scene, P.FAILED, P.ACCEPTED)

    def test_decided_again_nothing_is_added(self, table: Table) -> None:
        scene = Scene(table)
        todo = [Decision(scene.worked(name, 1), P.FAILED) for name in "ab"]
        for _ in range(3):
            scene.ledger.verdicts.decide(scene.run_id, APPLY, todo, follow_failures=True)
        assert 2 == scene.ledger.verdicts.failed_in_a_row(scene.run_id)

    def test_eight_that_decide_at_once_lose_none(self, table: Table) -> None:
        scene = Scene(table)
        items = [scene.worked(f"p{number}", 1) for number in range(16)]

        def decide(index: int) -> None:
            todo = [Decision(item, P.FAILED) for item in items[2 * index : 2 * index + 2]]
            scene.ledger.verdicts.decide(scene.run_id, APPLY, todo, follow_failures=True)

        assert [None] * 8 == in_threads(8, decide)
        assert 16 == scene.ledger.verdicts.failed_in_a_row(scene.run_id)

    def test_where_nobody_follows_it_nothing_is_written(self, table: Table) -> None:
        scene = Scene(table)
        scene.ended("p", 5, to=P.FAILED)
        assert table.get(keys.row(scene.run_id)) is None


class RetrySuite:
    """Retry and skip."""

    def test_a_retry_makes_pending_and_subtracts_exactly(self, table: Table) -> None:
        scene = Scene(table)
        for status in RETRYABLE:
            scene.ended(f"1-{status}", 5, to=status)
            scene.ended(f"2-{status}", 7, to=status)
        scene.ended("accepted", 3, to=P.ACCEPTED)
        names = [f"1-{status}" for status in RETRYABLE]
        scene.ledger.verdicts.retry(scene.run_id, APPLY, names, who="ann", why="fixed")
        assert {P.PENDING} == {scene.get(name).status for name in names}
        assert {"ACCEPTED": (1, 3), **{status.value: (1, 7) for status in RETRYABLE}} == scene.counts()

    def test_refused_and_rejected_start_again_others_go_on_and_the_fence_stays(self, table: Table) -> None:
        scene = Scene(table)
        for status in RETRYABLE:
            ended = scene.ended(status.value, 5, to=status)
            scene.ledger.verdicts.retry(scene.run_id, APPLY, [status.value], who="ann", why="fixed")
            item = scene.get(status.value)
            kept = (None, Counters()) if status in RESTARTED else ("v1:5", counted(5))
            assert (status, *kept) == (status, item.cursor, item.counters)
            assert (ended.fence, ended.launch, ended.seq + 1) == (item.fence, item.launch, item.seq)
            assert (0, 0, None, None, None) == (item.takes, item.faults, item.entry, item.error, item.reason)
            again = scene.ledger.partitions.take(scene.owner(2, "task-b"), status.value)
            assert (P.PENDING, kept) == (again.before, (again.item.cursor, again.item.counters))

    def test_a_repair_goes_on_from_where_it_was_whatever_it_ended_as(self, table: Table) -> None:
        scene = Scene(table)
        owner = replace(scene.owner(), phase=Phase.REPAIR)
        parts = scene.ledger.partitions
        for status in RETRYABLE:
            item = parts.take(owner, status.value).item
            item = parts.advance(owner, item, checkpoint(5, reject_parts=("1.jsonl",)))
            if status is not P.STUCK:
                item = parts.report(owner, item, entry_of(item))
            scene.ledger.verdicts.decide(scene.run_id, Phase.REPAIR, [Decision(item, status)])
            scene.ledger.verdicts.retry(scene.run_id, Phase.REPAIR, [status.value], who="ann", why="fixed")
            kept = parts.get(scene.run_id, Phase.REPAIR, status.value)
            assert ("v1:5", counted(5), ("1.jsonl",)) == (kept.cursor, kept.counters, kept.reject_parts)

    def test_a_repair_is_not_retried_once_what_it_touched_is_looked_at(self, table: Table) -> None:
        scene = Scene(table)
        parts, verdicts = scene.ledger.partitions, scene.ledger.verdicts
        for name in ("p", "q", "r"):
            failed = parts.take(replace(scene.owner(), phase=Phase.REPAIR), name).item
            verdicts.decide(scene.run_id, Phase.REPAIR, [Decision(failed, P.FAILED)])
        parts.take(replace(scene.owner(2, "task-b"), phase=Phase.VERIFY), "p")
        verdicts.skip(scene.run_id, Phase.VERIFY, ["q"], who="ann", why="nothing was repaired")
        retry = partial(verdicts.retry, scene.run_id, Phase.REPAIR, who="ann", why="mended")
        for name in ("p", "q"):
            told = refusal(UsageError, retry, ["r", name])
            assert f"What was repaired of partition {name} is looked at again already" in str(told)
        retry(["r"])
        stand = {name: parts.get(scene.run_id, Phase.REPAIR, name).status for name in ("p", "q", "r")}
        assert {"p": P.FAILED, "q": P.FAILED, "r": P.PENDING} == stand

    def test_a_retry_clears_what_bounds_faults(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.partitions.fault(scene.run_id, APPLY, "p", 1)
        scene.take(launch=2)
        scene.decide(scene.take(launch=3), to=P.STUCK)
        assert (2, 1) == (scene.get().takes, scene.get().faults)
        scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="fixed")
        assert (0, 0) == (scene.get().takes, scene.get().faults)

    def test_what_was_never_taken_is_retried_and_decided_again(self, table: Table) -> None:
        scene = Scene(table)
        for _ in range(2):
            scene.decide(scene.get(), to=P.FAILED)
            assert {"FAILED": (1, 0)} == scene.counts()
            scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="fixed")
            assert (P.PENDING, {}) == (scene.get().status, scene.counts())

    def test_a_launch_from_before_the_retry_does_not_take_it(self, table: Table) -> None:
        scene = Scene(table)
        scene.ended("p", 5, to=P.FAILED, launch=3)
        scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="fixed")
        refusal(Exception, scene.take, launch=3)
        assert P.PENDING is scene.get().status
        assert 4 == scene.take(launch=4).launch

    def test_skipping_moves_the_counters_and_keeps_the_reason(self, table: Table) -> None:
        scene = Scene(table)
        names = [seeded(scene, status, f"of-{status}").partition_id for status in SKIPPABLE]
        scene.ledger.verdicts.skip(scene.run_id, APPLY, names, who="ann", why="no such day")
        assert {(P.SKIPPED, "no such day")} == {
            (scene.get(name).status, scene.get(name).reason) for name in names
        }
        assert {"SKIPPED": (6, 25)} == scene.counts()

    def test_a_skip_needs_a_reason(self, table: Table) -> None:
        scene = Scene(table)
        refusal(UsageError, scene.ledger.verdicts.skip, scene.run_id, APPLY, ["p"], who="ann", why="")
        assert P.PENDING is scene.get().status

    def test_asked_again_retry_and_skip_change_nothing(self, table: Table) -> None:
        scene = Scene(table)
        scene.ended("p", 5, to=P.FAILED)
        for _ in range(2):
            scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="fixed")
            scene.ledger.verdicts.skip(scene.run_id, APPLY, ["q", "q"], who="ann", why="empty")
        assert {"SKIPPED": (1, 0)} == scene.counts()
        assert ["start", "retry", "skip"] == scene.verbs()

    def test_a_state_that_a_verb_does_not_take_is_refused_for_the_whole_list(self, table: Table) -> None:
        scene = Scene(table)
        failed = scene.ended("failed", 5, to=P.FAILED)
        verbs = {
            scene.ledger.verdicts.retry: RETRYABLE | {P.PENDING},
            scene.ledger.verdicts.skip: SKIPPABLE | {P.SKIPPED},
        }
        for verb, allowed in verbs.items():
            for status in set(P) - allowed:
                name = seeded(scene, status, f"{verb.__name__}-{status}").partition_id
                before = scene.get(name), scene.counts(), scene.verbs()
                error = refusal(UsageError, verb, scene.run_id, APPLY, ["failed", name], who="ann", why="?")
                assert f"{name} is {status}" in str(error)
                assert before == (scene.get(name), scene.counts(), scene.verbs())
        assert failed == scene.get("failed")

    def test_what_moved_meanwhile_is_refused_and_leaves_no_trace(self, table: Table) -> None:
        scene, other = Scene(table), Scene(table)
        failed = scene.ended("p", 5, to=P.FAILED)
        verdicts = other.ledger.verdicts
        verdicts._read_all = lambda *_: [failed]  # type: ignore[method-assign]  # one who read before
        scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p"], who="ann", why="fixed")
        now = scene.get()
        error = refusal(Stale, verdicts.skip, scene.run_id, APPLY, ["p"], who="bob", why="late")
        assert "its state is the one that was read" == error.clause
        assert (now, {}, ["start", "retry"]) == (scene.get(), scene.counts(), scene.verbs())

    def test_each_transaction_of_a_verb_leaves_its_own_trace(self, table: Table) -> None:
        scene = Scene(table)
        scene.ledger.verdicts.transaction_size = 12
        names = [f"p{number:02d}" for number in range(25)]
        scene.decide(*(PartitionItem(partition_id=name) for name in names), to=P.FAILED)
        scene.ledger.verdicts.retry(scene.run_id, APPLY, names, who="ann", why="fixed")
        assert {} == scene.counts()
        _, *trail = scene.ledger.audit.of(scene.run_id)
        assert [10, 10, 5] == [len(entry.before) for entry in trail]
        assert set(names) == {name for entry in trail for name in entry.before}

    def test_the_trace_says_who_what_why_before_and_after(self, table: Table) -> None:
        scene = Scene(table)
        scene.ended("p", 5, to=P.FAILED)
        scene.ended("q", 5, to=P.REFUSED)
        scene.ledger.verdicts.retry(scene.run_id, APPLY, ["p", "q"], who="bob", why="source repaired")
        _, entry = scene.ledger.audit.of(scene.run_id)
        assert ("bob", "retry", "source repaired") == (entry.who, entry.verb, entry.why)
        assert ("apply: p, q", {"p": "FAILED", "q": "REFUSED"}, "PENDING") == (
            entry.subject,
            entry.before,
            entry.after,
        )


class VerdictSuite(DecideSuite, RowSuite, RetrySuite):
    """Everything about end states."""


class LargeSuite:
    """Decisions so many or so large that one transaction cannot take them; a slow emulator needs seconds."""

    def test_two_hundred_and_fifty_are_decided_ninety_nine_at_a_time(self, table: Table) -> None:
        scene = Scene(table)
        items = [PartitionItem(partition_id=f"p{number:03d}") for number in range(250)]
        scene.take("p198")
        refusal(Stale, scene.decide, *items, to=P.FAILED)
        assert {"FAILED": (198, 0)} == scene.counts()
        items[198] = scene.get("p198")
        scene.decide(*items[198:], to=P.FAILED)
        assert {"FAILED": (250, 0)} == scene.counts()
        ended = [item.status for item in scene.ledger.partitions.all(scene.run_id, APPLY)]
        assert [P.FAILED] * 250 == ended

    def test_partitions_with_large_items_are_decided_too(self, table: Table) -> None:
        scene = Scene(table)
        names = [f"large-{number}" for number in range(20)]
        for name in names:
            item = scene.take(name).model_copy(update={"reason": "x" * 300_000})
            table.write(Write(scene.owner().key(name), item=item.document()))
        scene.decide(*(scene.get(name) for name in names), to=P.STUCK)
        assert {"STUCK": (20, 0)} == scene.counts()
