"""The demo's data is complete, one file a day, and each flight has a key."""

from __future__ import annotations

import csv
import io
from datetime import date
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from trueup.errors import LocalStackError
from trueup.local import flights


@pytest.fixture(scope="module")
def days() -> dict[date, bytes]:
    return dict(flights.days())


def test_each_day_of_2013_comes_once_and_in_order() -> None:
    days = [day for day, _ in flights.days()]
    assert 365 == len(set(days)) == len(days)
    assert (date(2013, 1, 1), date(2013, 12, 31)) == (days[0], days[-1])
    assert days == sorted(days)


def test_the_days_hold_336776_flights_and_no_two_share_a_key(days: dict[date, bytes]) -> None:
    keys = [
        tuple(flight[column] for column in flights.KEY)
        for text in days.values()
        for flight in csv.DictReader(io.StringIO(text.decode()))
    ]
    assert 336_776 == len(keys) == len(set(keys))


def test_a_day_holds_its_own_flights_under_the_header_of_the_source(days: dict[date, bytes]) -> None:
    header, first, *_ = days[date(2013, 1, 5)].decode().splitlines()
    assert header.startswith("year,month,day,dep_time,")
    assert header.endswith(",time_hour")
    assert first.startswith("2013,1,5,")
    assert 721 == len(days[date(2013, 1, 5)].splitlines())  # 720 flights


def test_without_the_data_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(flights, "distribution", absent)
    with pytest.raises(LocalStackError, match=r"not installed.*requirements/data\.lock"):
        next(flights.days())


def test_a_package_without_its_file_is_missing_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flights, "ARCHIVE", "data/other.zip")
    with pytest.raises(LocalStackError, match=r"other\.zip does not exist"):
        next(flights.days())
