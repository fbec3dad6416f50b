"""The demo, over its first days: the figures that it prints are those of the data."""

from __future__ import annotations

import pytest

from trueup.local.backfilling import Kills
from trueup.local.demo import days_before, run_demo

END = "2013-01-06"


@pytest.fixture(scope="module")
def figures() -> dict:
    return run_demo(seed=7, note=lambda line: None, end=END, kills=Kills(0.3, 0.6, 2))


@pytest.fixture(scope="module")
def flights() -> int:
    return sum(data.count(b"\n") - 1 for _, data in days_before(END))


def test_both_runs_succeed_with_every_partition_accepted(figures: dict) -> None:
    assert "SUCCEEDED" == figures["status"]
    assert ["flights-summary", "flights-rows"] == list(figures["jobs"])
    for job in figures["jobs"].values():
        assert {"planned": 5, "accepted": 5} == job["partitions"]
        assert "SUCCEEDED" == job["status"]


def test_every_record_is_accounted_for(figures: dict, flights: int) -> None:
    for job in figures["jobs"].values():
        records = job["records"]
        assert flights == records["read"] == records["used"] + records["skipped"] + records["rejected"]
        assert records["produced"] == records["written"] + records["unchanged"] + records["refused"]
        assert 0 == records["skipped"] == records["rejected"] == records["refused"]


def test_every_flight_is_a_row_of_the_second_job(figures: dict, flights: int) -> None:
    assert flights == figures["jobs"]["flights-rows"]["records"]["produced"]


def test_the_tables_equal_an_independent_count(figures: dict) -> None:
    assert {True} == {job["tableEqual"] for job in figures["jobs"].values()}


def test_what_was_worked_again_is_part_of_the_figures(figures: dict) -> None:
    for job in figures["jobs"].values():
        assert job["records"]["replayed"] >= 0
        assert job["seconds"] > 0
