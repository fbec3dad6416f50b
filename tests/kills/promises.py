"""What must hold of a run, whatever happened to its tasks; checked against the CSV of the flights."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property

from trueup.artifacts.store import place
from trueup.local.expected import expected_summary
from trueup.model.counters import Counters
from trueup.model.ledger import PartitionItem
from trueup.model.states import PartitionStatus, RunStatus

from .driving import Driven
from .targets import applied, differences


@dataclass(frozen=True, slots=True)
class Flight:
    """A line of the CSV and what a picky job does with it."""

    line: bytes
    key: tuple[str, ...]
    fate: str


@dataclass(frozen=True)
class Day:
    """What a day must come to."""

    when: date
    header: bytes
    flights: tuple[Flight, ...]

    def of(self, fate: str) -> list[int]:
        """The positions of the flights that were used, skipped or rejected."""
        return [n for n, flight in enumerate(self.flights) if flight.fate == fate]

    @cached_property
    def used(self) -> bytes:
        """The CSV of what is left to write."""
        return b"\n".join([self.header, *(self.flights[n].line for n in self.of("used")), b""])

    @cached_property
    def keys(self) -> list[Hashable]:
        """What flights-rows writes, in the order in which it does."""
        return [self.flights[n].key for n in self.of("used")]

    @cached_property
    def routes(self) -> list[Hashable]:
        """What flights-summary writes, as the witness has it."""
        return sorted(route for route, _ in expected_summary([(self.when, self.used)]))  # type: ignore[misc]


@cache
def day_of(when: date, data: bytes, picky: bool) -> Day:
    """A day, read by splitting lines; no field of the source is quoted."""
    header, *lines = data.splitlines()
    names = header.decode().split(",")
    rows = [dict(zip(names, line.decode().split(","), strict=True)) for line in lines]
    return Day(when, header, tuple(_flight(line, row, picky) for line, row in zip(lines, rows, strict=True)))


def _flight(line: bytes, of: Mapping[str, str], picky: bool) -> Flight:
    fate = "used"
    if picky and of["flight"].rjust(2, "0").endswith(("07", "57")):
        fate = "rejected"
    elif picky and of["dep_time"] == "NA":
        fate = "skipped"
    return Flight(line, (of["time_hour"], of["carrier"], of["flight"], of["origin"]), fate)


def days_of(driven: Driven) -> dict[str, Day]:
    """What each partition must come to, by its id."""
    picky = "picky" in driven.shape.traits
    return {f"date={day}": day_of(day, driven.stack.days[day], picky) for day in driven.shape.dates}


def assert_ended_well(driven: Driven) -> None:
    """Every partition ACCEPTED, the run SUCCEEDED, its lock left, none of its tasks remembered."""
    ledger, run_id = driven.stack.ledger, driven.run.run_id
    assert {PartitionStatus.ACCEPTED} == {item.status for item in driven.ended.values()}, _errors(driven)
    assert RunStatus.SUCCEEDED is ledger.runs.get(run_id).status
    assert {} == ledger.locks.get(driven.table).holders
    assert [] == list(ledger.tasks.of(run_id))


def _errors(driven: Driven) -> list[str]:
    return [f"{part}: {item.status} {item.error}" for part, item in driven.ended.items()]


def assert_table_is_equal(driven: Driven) -> None:
    """The table holds what an independent aggregate of the used flights gives, and nothing else."""
    assert [] == differences(driven, {day.when: day.used for day in days_of(driven).values()})


def assert_records_are_exact(driven: Driven) -> None:
    """Every counter of every partition, and their sum over the run."""
    items, total = driven.ended, Counters()
    for part, day in days_of(driven).items():
        total = total.plus(items[part].counters)
        assert _figures(driven, day) == _figures_of(items[part])
        skipped = len(day.of("skipped"))
        assert ({"cancelled": skipped} if skipped else {}) == items[part].skipped
    tally = driven.stack.ledger.verdicts.counts(driven.run.run_id).tally(PartitionStatus.ACCEPTED)
    assert (total, len(items)) == (tally.records, tally.partitions)


def _figures(driven: Driven, day: Day) -> dict[str, int]:
    produced = len(_rows_of(driven, day))
    fates = {fate: len(day.of(fate)) for fate in ("used", "skipped", "rejected")}
    return {"read": len(day.flights), **fates, "produced": produced, "arrived": produced, "refused": 0}


def _figures_of(item: PartitionItem) -> dict[str, int]:
    """Written and unchanged together: how often a row was applied decides which of the two it is."""
    figures = dict(item.counters)
    figures["arrived"] = figures.pop("written") + figures.pop("unchanged")
    return figures


def _rows_of(driven: Driven, day: Day) -> list[Hashable]:
    """The keys of the rows that a day makes, in the order of the witness."""
    return day.keys if driven.shape.job == "flights-rows" else day.routes


def assert_each_reject_is_kept_once(driven: Driven) -> None:
    """The rejects object of each partition names every rejected flight, and none twice."""
    for part, day in days_of(driven).items():
        expected = Counter(day.flights[n].key for n in day.of("rejected"))
        assert expected == Counter(_rejects(driven, driven.ended[part]))


def _rejects(driven: Driven, item: PartitionItem) -> list[tuple[str, ...]]:
    if item.entry is None or item.entry.rejects is None:
        return []
    lines = driven.stack.artifacts.store.get(place(item.entry.rejects)[1]).splitlines()
    records = [json.loads(line)["rejected"] for line in lines]
    return [
        tuple(record[name] for name in ("time_hour", "carrier", "flight", "origin")) for record in records
    ]


def assert_nothing_reaches_back(driven: Driven) -> int:
    """What each task applied begins at the checkpoint that it found, and goes on without gap or repetition.

    Nor is any checkpoint ahead of what was applied. Returns how many records more than one task worked.
    """
    again = 0
    seen = _seen(driven)
    for part, day in days_of(driven).items():
        order = _rows_of(driven, day)
        times: Counter[Hashable] = Counter()
        for low, high, launch in _spans(driven, part, day):
            rows = seen.pop((launch, part), [])
            assert order[low : low + len(rows)] == rows, f"launch {launch} began elsewhere than at {low}"
            assert high <= low + len(rows), f"launch {launch} left a checkpoint ahead of what it applied"
            times.update(rows)
        assert set(order) == times.keys()
        repeated = sum(number > 1 for number in times.values())
        again += len(day.flights) if repeated and driven.shape.job == "flights-summary" else repeated
    assert {} == seen, "a task applied rows of a partition that it had no business with"
    return again


def _seen(driven: Driven) -> dict[tuple[int, str], list[Hashable]]:
    """The rows that the witness saw, by launch and partition, in order."""
    seen: dict[tuple[int, str], list[Hashable]] = defaultdict(list)
    found = {task.launch.launch: task.before for task in driven.launched}
    for one in applied(driven):
        if driven.shape.job == "flights-summary":  # one batch a partition: nothing lies between
            assert found[one.launch][one.partition] == one.after
        seen[one.launch, one.partition] += one.rows
    return dict(seen)


def _spans(driven: Driven, part: str, day: Day) -> list[tuple[int, int, int]]:
    """For each launch, how many rows lay before the checkpoint that it found and the one that it left."""
    cursors = [task.before[part] for task in driven.launched] + [driven.ended[part].cursor]
    rows = [_rows_before(driven, day, cursor) for cursor in cursors]
    launches = [task.launch.launch for task in driven.launched]
    return list(zip(rows, rows[1:], launches, strict=False))


def _rows_before(driven: Driven, day: Day, cursor: str | None) -> int:
    if cursor is None:
        return 0
    if cursor == "v1:end":
        return len(_rows_of(driven, day))
    return sum(n < int(cursor.removeprefix("v1:")) for n in day.of("used"))
