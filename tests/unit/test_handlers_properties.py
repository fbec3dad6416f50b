"""Machine, workers, `accept`, `settle`, closer, sweep and redrive in any order, dying at any write.

Nothing is lost, counted twice or stranded, and no lock is kept or freed wrongly. The sink has no guard, so
that an older task's write after a newer one's is seen.
`EXAMPLES=2000` tries more than CI does, and other ones each time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import Phase as Phases
from hypothesis import strategies as st

from trueup.aborting import ABORTER
from trueup.accepting import Acceptance
from trueup.model.ledger import PartitionItem
from trueup.model.states import END_STATES, PartitionStatus, Phase, RunStatus
from trueup.settling import SETTLER

from .handler_play import KEYS, Action, Play, story

MORE = os.environ.get("EXAMPLES")
given_time = settings(
    max_examples=int(MORE or 150),
    derandomize=MORE is None,
    deadline=None,
    phases=[Phases.explicit, Phases.generate],  # a seed does not shrink
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SEEDS = st.integers(0, 2**64 - 1)

# Of the runs told, the share that must have met each of these: what nobody met, the property says nothing of.
SHARES = {
    "SUCCEEDED": 0.35, "FAILED": 0.04, "ABORTED": 0.02, "a slice launched again": 0.4,
    "137 SpotInterruption": 0.25, "137 EssentialContainerExited": 0.1, "70 EssentialContainerExited": 0.08,
    "stumbled": 0.1, "refused": 0.1, "frozen": 0.05, "stopping": 0.03, "late": 0.12, "twice": 0.08,
    "accept lost": 0.2, "echo": 0.12, "closer": 0.02, "closer late": 0.02, "sweep": 0.3, "redrive": 0.08,
    "NoProgress": 0.01, "NeverStarted": 0.02, "BadInput": 0.005,
}  # fmt: skip


def play_out(play: Play, actions: list[Action], *, warm: bool) -> Play:
    """The story, and whatever is needed after it for the run to be over. `warm`: each child is to launch."""
    if warm:
        play.warm_up()
    for what, who, dies_at in actions:
        play.act(what, who, dies_at)
    did = Counter(play.did)
    play.drain()
    play.did = did  # what was needed to end it does not count as having been tried
    return play


def test_nothing_is_lost_counted_twice_or_stranded() -> None:
    seen: Counter[str] = Counter()

    @given_time
    @given(st.integers(1, 3), st.booleans(), SEEDS)
    def tell(concurrency: int, warm: bool, seed: int) -> None:
        play = play_out(Play(concurrency), story(seed), warm=warm)
        judge(play)
        seen.update(happened(play))

    tell()
    assert {} == too_few(seen)


def happened(play: Play) -> set[str]:
    """What there was in one run, to be counted over all."""
    several = {"a slice launched again"} if play.faults.launches_of_one_slice() > 1 else set()
    charges = {charge.kind for charge in play.faults.charges}
    return {"runs", play.run.status.value, *several, *charges, *(what for what, n in play.did.items() if n)}


def too_few(seen: Counter[str]) -> dict[str, str]:
    """What fewer runs met than would make the property worth something, with the shares."""
    runs = seen["runs"]
    return {
        what: f"{seen[what]} of {runs} runs" for what, share in SHARES.items() if seen[what] < share * runs
    }


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
        else:
            assert item.status not in (PartitionStatus.REFUSED, PartitionStatus.REJECTED)
    if run.status is RunStatus.SUCCEEDED:
        assert {f"item={key}" for key in KEYS} == set(items)
        assert {PartitionStatus.ACCEPTED} == {item.status for item in items.values()}
    assert [] == [charge for charge in play.faults.charges if not charge.deserved]
    judge_end(play, items.values())
    ends = [entry.subject for entry in ledger.audit.of(run.run_id) if entry.verb == "launch-ended"]
    assert len(ends) == len(set(ends))


def judge_end(play: Play, items: Iterable[PartitionItem]) -> None:
    """A run fails for its partitions or for dispatches that moved nothing; it aborts where it was aborted."""
    run = play.run
    if run.status is RunStatus.FAILED and "moved nothing" in (run.reason or ""):
        assert play.faults.moved_nothing()
    elif run.status is RunStatus.FAILED:
        assert any(item.status in END_STATES - {PartitionStatus.ACCEPTED} for item in items)
    elif run.status is RunStatus.ABORTED:
        assert play.did["abort"]
    else:
        assert run.status is RunStatus.SUCCEEDED


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
@given(st.integers(1, 3), st.sampled_from(["a", "ab", "abc", "b"]), st.sampled_from(RULES), SEEDS)
def test_a_run_that_breaks_a_rule_is_aborted_once_whatever_happens(
    concurrency: int, fails: str, rule: dict[str, Any], seed: int
) -> None:
    play = play_out(Play(concurrency, fails, [rule]), story(seed), warm=True)
    judge_aborted(play, fails, rule)


def judge_aborted(play: Play, fails: str, rule: dict[str, Any]) -> None:
    """The rule ended the run if, and only if, it was broken; what was not worked is not called failed."""
    ledger, run = play.here.ledger, play.run
    assert {} == ledger.locks.get("numbers").holders
    assert [] == [charge for charge in play.faults.charges if not charge.deserved]
    items = list(ledger.partitions.all(run.run_id, Phase.APPLY))
    for item in items:
        if item.status in (PartitionStatus.FAILED, PartitionStatus.ACCEPTED):
            good = item.partition_id.removeprefix("item=") not in fails
            given_up = item.error is not None and item.error.kind in ("NeverStarted", "BadInput")
            assert (item.status is PartitionStatus.ACCEPTED) == good or given_up
            assert 6 == item.counters.read or given_up
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
