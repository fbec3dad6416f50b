"""The table of the job `rows`, its witness, and what both must hold whatever happened to a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from trueup.ledger.partitions import FENCE_EPOCH
from trueup.local.stack import Stack
from trueup.model.ledger import PartitionItem, Run
from trueup.model.states import PartitionStatus, Phase, RunStatus

from .rig import Begun, Rig, Window
from .watching import tasks_of

TARGET = "numbered"
RECORDS, BATCH = 30, 10

# A BEFORE trigger sees every row that a statement applies, those that turn out to be the same as before too.
TABLES = """
create table numbered (day text, number int, square int, primary key (day, number));
create view numbered_as_it_should_be as
    select to_char(day, 'YYYY-MM-DD') as day, number, number * number as square
    from generate_series(timestamp '2000-01-01', '2009-12-31', '1 day') day, generate_series(1, 30) number
    where number % 10 not in (3, 7);
create table reads (run text, day text, launch int, done int);
create table witness (n bigserial, fence bigint, day text, number int);
create function bear_witness() returns trigger language plpgsql as $$
begin
    insert into witness (fence, day, number) values (
        (select fence from trueup_fence where target = 'numbered' and partition = 'date=' || new.day),
        new.day, new.number);
    return new;
end $$;
create trigger witness before insert on numbered for each row execute function bear_witness();
"""


def create_tables(up: Stack) -> None:
    """The target and its witnesses, owned by the user that writes."""
    secret = up.client("secretsmanager").get_secret_value(SecretId="flights/postgres/write")
    with psycopg.connect(secret["SecretString"]) as connection:
        connection.execute(TABLES)


@dataclass(frozen=True, slots=True)
class Share:
    """What a launch applied to a day: the numbers in their order, and how many records it took for done."""

    launch: int
    done: int
    applied: tuple[int, ...]


def used() -> list[int]:
    """The numbers of a day that are written."""
    return [number for number in range(1, RECORDS + 1) if number % 10 not in (3, 7)]


def assert_exact(rig: Rig, run: Begun) -> None:
    """The run succeeded, table and counters are exact, and nothing of it is left."""
    up, items = rig.up, rig.items(run)
    assert RunStatus.SUCCEEDED is run.status, (run.run, rig.launches(run.run_id))
    assert {PartitionStatus.ACCEPTED} == {item.status for item in items}
    for item in items:
        assert _figures() == _figures_of(item)
    counts = up.ledger.verdicts.counts(run.run_id, Phase.APPLY).tally()
    assert (len(items), len(items) * RECORDS) == (counts.partitions, counts.records.read)
    assert len(items) * len(used()) == counts.records.written + counts.records.unchanged
    assert_table(up, run.window)
    assert_nothing_reaches_back(up, run)
    assert_nothing_is_left(up, run.run_id)


def assert_failed(rig: Rig, run: Begun, partitions: Mapping[str, tuple[PartitionStatus, str, str]]) -> None:
    """The run failed over these partitions, each in a state, with an error of a kind that says something."""
    assert RunStatus.FAILED is run.status
    found = {
        item.partition_id: (item.status, item.error.kind, item.error.message)
        for item in rig.items(run)
        if item.error is not None
    }
    assert partitions.keys() == found.keys()
    for partition, (status, kind, says) in partitions.items():
        assert (status, kind) == found[partition][:2]
        assert says in found[partition][2]
    assert_nothing_reaches_back(rig.up, run)
    assert_nothing_is_left(rig.up, run.run_id)


def assert_table(up: Stack, window: Window) -> None:
    """The rows of the window's days are those that must be there, and no others."""
    with psycopg.connect(up.dsn) as connection:
        found = connection.execute(
            "select * from numbered where day = any(%s) order by 1, 2", [[str(day) for day in window.days]]
        ).fetchall()
    assert [(str(day), number, number * number) for day in window.days for number in used()] == found


def assert_nothing_is_left(up: Stack, run_id: str) -> None:
    """No lock is held, no task is registered, and none is alive."""
    assert run_id not in up.ledger.locks.get(TARGET).holders
    assert [] == list(up.ledger.tasks.of(run_id))
    assert {"STOPPED"} >= {task["lastStatus"] for task in tasks_of(up, run_id)}


def _figures() -> dict[str, Any]:
    skipped, rejected = (sum(n % 10 == digit for n in range(1, RECORDS + 1)) for digit in (3, 7))
    produced = len(used())
    return {
        "read": RECORDS, "used": produced, "skipped": skipped, "rejected": rejected,
        "produced": produced, "arrived": produced, "refused": 0, "why": {"it ends in 3": skipped},
    }  # fmt: skip


def _figures_of(item: PartitionItem) -> dict[str, Any]:
    """Written and unchanged together: how often a row was applied decides which of the two it is."""
    figures: dict[str, Any] = dict(item.counters)
    figures["arrived"] = figures.pop("written") + figures.pop("unchanged")
    return figures | {"why": item.skipped}


def assert_nothing_reaches_back(up: Stack, run: Begun) -> None:
    """Each launch goes on at the last checkpoint, which is at most one batch behind what was applied."""
    for day in run.window.days:
        furthest = 0
        for share in shares(up, up.ledger.runs.get(run.run_id), str(day)):
            assert furthest - BATCH <= share.done <= furthest, (
                f"{day}: applied up to {furthest}, then {share}"
            )
            expected = [number for number in used() if number > share.done]
            assert expected[: len(share.applied)] == list(share.applied)
            furthest = max([furthest, share.done, *share.applied])


def shares(up: Stack, run: Run, day: str) -> Iterator[Share]:
    """What each launch of a run did to a day, in the order in which they held it."""
    with psycopg.connect(up.dsn) as connection:
        reads = connection.execute(
            "select launch, done from reads where (run, day) = (%s, %s)", [run.run_id, day]
        ).fetchall()
        rows = connection.execute(
            "select fence %% %s, number from witness where day = %s and fence / %s = %s order by n",
            [FENCE_EPOCH, day, FENCE_EPOCH, run.epoch],
        ).fetchall()
    launches = [launch for launch, _ in rows]
    assert sorted(launches) == launches, f"{day}: an older launch wrote after a newer one"
    assert len(reads) == len({launch for launch, _ in reads})
    for launch, done in sorted(reads):
        yield Share(launch, done, tuple(number for theirs, number in rows if theirs == launch))
