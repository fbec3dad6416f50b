"""Lists, page by page: every entry once, in order, whatever the size of a page; and filters that hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from trueup import Reject
from trueup.errors import NotFound, RequestError
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.planning import read_partitions
from trueup.watching import Lists, lists, rejects, room, tokens

from .handler_world import World
from .worker_cases import Numbers, job_file, job_of

KEYS = [f"k{number:02d}" for number in range(24)]


def transform(self: Numbers, number: int) -> Any:
    """Every partition has a five."""
    return Reject("five") if number in (5, 6) else number


@pytest.fixture(scope="module")
def here() -> World:
    """A world with a run that is over: its partitions of even numbers left two rejects each."""
    here = World(job_of(transform=transform), job_file(errors={"rejects": 2}))
    run = here.ask(keys=KEYS)
    here.clock.pass_(1)  # two entries of one instant have no order
    here.play(here.execution(run))
    assert "SUCCEEDED" == here.run(run.run_id).status
    return here


def run_id(here: World) -> str:
    """The only run of a world."""
    (execution,) = here.steps.executions.values()
    return str(execution.data["runId"])


def of(here: World) -> Lists:
    """The lists of a world."""
    return Lists(here.ledger, here.artifacts)


def pages(ask: Callable[..., Any], **arguments: Any) -> Iterator[Any]:
    """All pages of a list."""
    after = None
    for _ in range(1_000):
        page = ask(after=after, **arguments)
        yield page
        after = page.next
        if after is None:
            return
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 5, 24, 100])
def test_every_partition_comes_once_in_the_plans_order(here: World, limit: int) -> None:
    found = [
        one.partition_id
        for page in pages(of(here).partitions, run_id=run_id(here), limit=limit)
        for one in page.partitions
    ]
    assert [f"item={key}" for key in KEYS] == found


def test_partitions_say_what_they_are_read_from_and_how_much_work_was_estimated() -> None:
    sizes = {"k01": 3.0, "k02": 2.0}
    fresh = World(
        job_of(count=lambda self, part: round(sizes[part.label])),
        job_file(partitions={"by": "list", "key": "item", "input": "days/{label}.csv"}),
    )
    run = fresh.ask(keys=list(sizes))
    fresh.step(fresh.execution(run))
    found = of(fresh).partitions(run.run_id).partitions
    plan = fresh.artifacts.plan_of(fresh.run(run.run_id))
    planned = read_partitions(fresh.artifacts.store.get(plan.partitions.key))
    assert {"days/k01.csv", "days/k02.csv"} == {one.input for one in found}
    assert [(one.input, one.weight) for one in planned] == [(one.input, one.weight) for one in found]


def test_partitions_that_nobody_began_are_pending(here: World) -> None:
    fresh = World(job_of(), job_file())
    run = fresh.ask(keys=KEYS)
    assert [] == of(fresh).partitions(run.run_id).partitions
    fresh.step(fresh.execution(run))
    page = of(fresh).partitions(run.run_id)
    assert ({PartitionStatus.PENDING}, 24) == ({one.status for one in page.partitions}, len(page.partitions))


def test_a_state_filters_and_a_rare_one_still_ends(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LOOKED_AT", 7)
    ask = of(here).partitions
    assert 24 == sum(
        len(page.partitions)
        for page in pages(ask, run_id=run_id(here), state=PartitionStatus.ACCEPTED, limit=3)
    )
    none = list(pages(ask, run_id=run_id(here), state=PartitionStatus.STUCK))
    assert (4, 0) == (len(none), sum(len(page.partitions) for page in none))


def test_the_phase_is_the_one_at_work_unless_said(here: World) -> None:
    assert Phase.APPLY is of(here).partitions(run_id(here)).phase
    assert [] == of(here).partitions(run_id(here), phase=Phase.REHEARSE).partitions


def test_a_sample_has_only_its_first_partitions_in_the_rehearsal() -> None:
    fresh = World(job_of(), job_file())
    run = fresh.ask(keys=KEYS, sample=3)
    fresh.play(fresh.execution(run))
    found = of(fresh).partitions(run.run_id, phase=Phase.REHEARSE)
    assert ["item=k00", "item=k01", "item=k02"] == [one.partition_id for one in found.partitions]
    assert found.next is None


@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_every_reject_comes_once(here: World, limit: int) -> None:
    found = [
        (one.partition_id, one.reject["rejected"])
        for page in pages(of(here).rejects, run_id=run_id(here), limit=limit)
        for one in page.rejects
    ]
    assert [(f"item={key}", number) for key in KEYS for number in (5, 6)] == found


def test_a_page_of_large_rejects_ends_before_it_is_too_large(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = of(here).rejects(run_id(here), limit=1).rejects
    monkeypatch.setattr(room, "MOST_BYTES", 3 * room.size_of(one) + 5)
    found = list(pages(of(here).rejects, run_id=run_id(here), limit=1_000))
    assert [3] * 16 == [len(page.rejects) for page in found if page.rejects]
    assert [5, 6] * 24 == [one.reject["rejected"] for page in found for one in page.rejects]


def test_a_reject_that_no_answer_holds_is_told_with_its_place(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejects, "LONGEST_LINE", len('{"rejected": 5, "reason": "five"}') - 1)
    found = [one.reject for page in pages(of(here).rejects, run_id=run_id(here)) for one in page.rejects]
    assert len(KEYS) * 2 == len(found)
    assert all(" bytes, more than an answer holds: they are in " in one["tooLarge"] for one in found)
    assert found[0]["tooLarge"].endswith(" from byte 0 on")


@pytest.mark.parametrize("name", ["partitions", "audit", "runs"])
@pytest.mark.parametrize("fitting", [0, 1, 3])
def test_a_page_of_large_entries_ends_before_it_is_too_large_and_none_is_lost(
    here: World, monkeypatch: pytest.MonkeyPatch, name: str, fitting: int
) -> None:
    ask = getattr(of(here), name)
    arguments = {} if name == "runs" else {"run_id": run_id(here)}
    entries = {"partitions": "partitions", "audit": "entries", "runs": "runs"}[name]
    all_of_it = getattr(ask(**arguments, limit=1_000), entries)
    largest = max(map(room.size_of, all_of_it))
    monkeypatch.setattr(room, "MOST_BYTES", fitting * largest)
    found = [getattr(page, entries) for page in pages(ask, **arguments, limit=1_000)]
    assert all_of_it == [one for page in found for one in page]
    assert all(len(page) == 1 or sum(map(room.size_of, page)) <= fitting * largest for page in found)


class LongLog:
    """A log of lines, each of so many characters."""

    def __init__(self, *lengths: int) -> None:
        self.lines_of_it = [(datetime(2026, 1, 1, tzinfo=UTC), '"' * length) for length in lengths]

    def lines(
        self, stream: str, *, limit: int, after: str | None
    ) -> tuple[list[tuple[datetime, str]], str | None]:
        """As CloudWatch gives them: the mark is at the end of a page."""
        start = int(after or 0)
        found = self.lines_of_it[start : start + limit]
        return found, str(start + len(found)) if found else None


def test_a_page_of_long_log_lines_ends_before_it_is_too_large() -> None:
    # A quote travels as four bytes.
    log, after, found = LongLog(*[300_000] * 9, 10, 10), None, []
    while True:
        page, after = room.lines_that_fit(log, "s", limit=1_000, after=after)
        assert sum(map(room.size_of, page)) <= room.MOST_BYTES
        found += page
        if after is None:
            break
    assert [300_000] * 9 + [10, 10] == [len(line.message) for line in found]


def test_a_log_line_that_no_answer_holds_is_cut() -> None:
    ((line,), _) = room.lines_that_fit(LongLog(2_000_000), "s", limit=1_000, after=None)
    assert room.LONGEST_LINE == len(line.message)
    assert room.size_of(line) <= room.MOST_BYTES


@pytest.mark.parametrize("limit", [1, 10])
def test_the_rejects_of_one_partition_can_be_had_alone(here: World, limit: int) -> None:
    ask = of(here).rejects
    found = list(pages(ask, run_id=run_id(here), partition="item=k03", limit=limit))
    assert [5, 6] == [one.reject["rejected"] for page in found for one in page.rejects]
    assert {"item=k03"} == {one.partition_id for page in found for one in page.rejects}


def test_rejects_are_there_before_the_partition_is_reported() -> None:
    fresh = World(job_of(transform=transform), job_file(errors={"rejects": 2}))
    run = fresh.ask(keys=["a"])
    execution = fresh.execution(run)
    while fresh.ledger.partitions.get(run.run_id, Phase.APPLY, "item=a").reject_parts == ():
        fresh.step(execution)
        for child in execution.children:
            fresh.step_child(child)
            if child.task is not None:
                child.task.step()
    assert [5] == [one.reject["rejected"] for one in of(fresh).rejects(run.run_id).rejects]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_the_trail_comes_whole_and_oldest_first(here: World, limit: int) -> None:
    found = [
        entry.verb
        for page in pages(of(here).audit, run_id=run_id(here), limit=limit)
        for entry in page.entries
    ]
    assert [one.verb for one in here.ledger.audit.of(run_id(here))] == found
    assert "start" == found[0]


def test_runs_come_newest_first_and_can_be_filtered() -> None:
    fresh = World(job_of(), job_file())
    ids = []
    for number in range(5):
        ids.append(fresh.ask(requestId=f"r{number}", keys=[f"p{number}"]).run_id)
        fresh.clock.pass_(1)
    fresh.play(fresh.steps.executions[f"{ids[2]}-1"])
    ask = of(fresh).runs
    for limit in (1, 2, 50):
        assert ids[::-1] == [one.run_id for page in pages(ask, limit=limit) for one in page.runs]
    done = [one.run_id for page in pages(ask, status=RunStatus.SUCCEEDED, limit=1) for one in page.runs]
    assert ([ids[2]], []) == (done, ask(job="other").runs)


def test_jobs_come_by_name() -> None:
    files = {name: job_file(name=name, description=f"the {name}") for name in ("b", "a")}
    assert [("a", "the a"), ("b", "the b")] == [(one.name, one.description) for one in lists.jobs(files).jobs]


@pytest.mark.parametrize("ask", ["partitions", "rejects", "audit"])
def test_an_unknown_run_is_named(here: World, ask: str) -> None:
    with pytest.raises(NotFound, match="no run nothing"):
        getattr(of(here), ask)("nothing")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "§",
        tokens.write(offset=1),
        tokens.write(offset=-1, seen=0),
        tokens.write(offset="1", seen=0),
        "W10",
    ],
)
def test_what_is_no_token_is_refused(here: World, token: str) -> None:
    with pytest.raises(RequestError, match="after: it is no token of this list"):
        of(here).partitions(run_id(here), after=token)
