"""The sample jobs without their stores: what they read, what they make of it, and how they resume."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trueup import Backfill, Partition, Reject
from trueup.jobfile import load
from trueup.jobs import Settings
from trueup.loading import load_class
from trueup.local.expected import compare, expected_summary
from trueup.local.flights import days

CONTAINERS = Path(__file__).parents[2] / "containers"
PART = Partition(partition_id="date=2013-01-01", input="flights/2013-01-01.csv")
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,"
    "tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
FLOWN = "2013,1,1,517,515,{delay},830,819,11,UA,{flight},N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
CANCELLED = "2013,1,1,NA,515,NA,NA,819,NA,UA,{flight},NA,EWR,IAH,NA,1400,5,15,2013-01-01T10:00:00Z"


@pytest.fixture(scope="module")
def days_of_flights() -> Mapping[date, bytes]:
    """Ten days, the quietest one of the year (28 November) among them."""
    wanted = {date(2013, 11, 28)}
    found = dict(islice(days(), 9))
    return found | {day: data for day, data in days() if day in wanted}


@pytest.fixture(autouse=True)
def module_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a job puts its folder on the module path; it does not stay there."""
    monkeypatch.setattr(sys, "path", [*sys.path])


def job_over(name: str, data: bytes, batch_size: int | None = None) -> Backfill:
    """The job, with an S3 that holds `data` only."""
    job_file = load(CONTAINERS / name / "job.yaml")
    size = batch_size or job_file.batch.size
    settings = Settings({"bucket": "b", "table": "t"}, lambda secret: secret, lambda: size)
    job: Any = load_class(job_file, CONTAINERS / name)(settings)
    body = SimpleNamespace(read=lambda: data)
    expected = {"Bucket": "b", "Key": PART.input}
    job.s3 = SimpleNamespace(get_object=lambda **asked: {"Body": body} if asked == expected else None)
    return job


def csv_of(*lines: str) -> bytes:
    return "\n".join([HEADER, *lines, ""]).encode()


def rows_of(job: Backfill) -> Iterator[Any]:
    for batch in job.read(PART, None):
        yield from job.combine([job.transform(record) for record in batch.records])  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["flights-summary", "flights-rows"])
def test_the_count_is_the_number_of_records_that_read_yields(
    name: str, days_of_flights: Mapping[date, bytes]
) -> None:
    for data in days_of_flights.values():
        job = job_over(name, data)
        batches = list(job.read(PART, None))
        assert job.count(PART) == sum(len(batch.records) for batch in batches)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["flights-summary", "flights-rows"])
def test_after_any_cursor_read_gives_the_rest_and_after_the_last_nothing(
    name: str, days_of_flights: Mapping[date, bytes]
) -> None:
    job = job_over(name, days_of_flights[date(2013, 1, 1)])
    batches = list(job.read(PART, None))
    for done, batch in enumerate(batches, 1):
        assert batches[done:] == list(job.read(PART, batch.cursor))


def test_a_cursor_of_the_rows_holds_when_the_batch_size_changes(
    days_of_flights: Mapping[date, bytes],
) -> None:
    data = days_of_flights[date(2013, 1, 1)]
    (whole,) = job_over("flights-rows", data, batch_size=10_000).read(PART, None)
    first = next(iter(job_over("flights-rows", data, batch_size=40).read(PART, None)))
    rest = list(job_over("flights-rows", data, batch_size=7).read(PART, first.cursor))
    assert "v1:40" == first.cursor
    assert "v1:842" == rest[-1].cursor == whole.cursor
    assert whole.records == [*first.records, *(flight for batch in rest for flight in batch.records)]  # type: ignore[union-attr]


def test_a_day_of_the_summary_is_one_batch_and_the_quietest_day_of_rows_has_at_least_20(
    days_of_flights: Mapping[date, bytes],
) -> None:
    quietest = days_of_flights[date(2013, 11, 28)]
    assert ["v1:end"] == [batch.cursor for batch in job_over("flights-summary", quietest).read(PART, None)]
    assert 22 == len(list(job_over("flights-rows", quietest).read(PART, None)))  # 634 flights, 30 at a time


def test_the_summary_equals_the_independent_one(days_of_flights: Mapping[date, bytes]) -> None:
    found = {
        (row["route"], row["date"]): {name: value for name, value in row.items() if value is not None}
        for data in days_of_flights.values()
        for row in rows_of(job_over("flights-summary", data))
    }
    assert [] == compare(expected_summary(days_of_flights.items()), found)
    assert 300 < len(found)


def test_a_summary_counts_cancelled_flights_and_leaves_them_out_of_the_sums() -> None:
    lines = [FLOWN.format(flight=1, delay=2), FLOWN.format(flight=2, delay=-5), CANCELLED.format(flight=3)]
    (row,) = rows_of(job_over("flights-summary", csv_of(*lines)))
    expected = {
        "route": "EWR#UA",
        "date": "2013-01-01",
        "origin": "EWR",
        "carrier": "UA",
        "flights": 3,
        "cancelled": 1,
        "departure_delay_count": 2,
        "departure_delay_sum": -3,  # 2 - 5
        "departure_delay_mean": Decimal("-1.50"),
        "departure_delay_max": 2,
        "arrival_delay_count": 2,
        "arrival_delay_sum": 22,
        "arrival_delay_mean": Decimal(11),
        "arrival_delay_max": 11,
        "air_minutes": 454,
        "miles": 2800,
    }
    assert expected == row


def test_where_all_flights_were_cancelled_there_is_no_mean_and_no_maximum() -> None:
    (row,) = rows_of(job_over("flights-summary", csv_of(CANCELLED.format(flight=1))))
    assert (0, 0, None, None) == tuple(
        row[f"departure_delay_{name}"] for name in ("count", "sum", "mean", "max")
    )


def test_a_mean_is_rounded_to_hundredths_and_a_half_to_the_even_one() -> None:
    # 1/8 = 0.125, 3/8 = 0.375
    for total, mean in ((1, "0.12"), (3, "0.38")):
        lines = [FLOWN.format(flight=n, delay=total if n == 0 else 0) for n in range(8)]
        (row,) = rows_of(job_over("flights-summary", csv_of(*lines)))
        ((_, expected),) = expected_summary([(date(2013, 1, 1), csv_of(*lines))]).items()
        assert Decimal(mean) == row["departure_delay_mean"] == expected["departure_delay_mean"]


def test_na_is_a_missing_value_in_a_row() -> None:
    (row,) = rows_of(job_over("flights-rows", csv_of(CANCELLED.format(flight=3))))
    missing = {"dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time"}
    assert missing == {name for name, value in row.items() if value is None}
    assert HEADER.split(",") == list(row)


@pytest.mark.parametrize("name", ["flights-summary", "flights-rows"])
def test_a_line_that_is_cut_off_is_rejected(name: str) -> None:
    whole = FLOWN.format(flight=1, delay=2)
    job = job_over(name, csv_of(whole, whole[:30]))
    (batch,) = job.read(PART, None)
    assert [False, True] == [isinstance(job.transform(one), Reject) for one in batch.records]  # type: ignore[union-attr]


def test_a_delay_that_is_no_number_is_rejected_with_what_was_found() -> None:
    job = job_over("flights-summary", csv_of(FLOWN.format(flight=1, delay="late")))
    (batch,) = job.read(PART, None)
    assert "'late'" in job.transform(batch.records[0]).reason  # type: ignore[union-attr]


def test_differences_are_named_by_key_and_value() -> None:
    expected = {1: {"a": 1, "b": 2}, 2: {"a": 1}, 3: {}}
    found = {1: {"a": 1, "b": 3}, 3: {}, 4: {}}
    assert ["1: expected {'b': 2}, found {'b': 3}", "missing: 2", "unexpected: 4"] == compare(expected, found)


def test_of_many_differences_the_first_are_named_and_the_others_counted() -> None:
    differences = compare({number: {} for number in range(25)}, {})
    assert ["missing: 0", "missing: 9", "and 15 more"] == [differences[n] for n in (0, 9, 10)]
