"""A request becomes partitions: by date, key range, list, S3 prefix and the job's own hook."""

from __future__ import annotations

import pytest

from trueup.errors import RequestError
from trueup.model.job import JobFile
from trueup.model.plan import Partition, Window
from trueup.model.request import Request
from trueup.planning import Pace, partitions, window


def make_job(partitions, **more):
    document = {"name": "job", "class": "module:Job", "target": {"name": "table", "guard": "key"}}
    return JobFile.model_validate({**document, "partitions": partitions, **more})


def make_request(start=None, end=None, keys=None):
    return Request(job="job", request_id="r", requester="me", start=start, end=end, keys=keys)


def ids(settings, start=None, end=None, keys=None, **more):
    return [one.id for one in partitions(make_job(settings), make_request(start, end, keys), **more)]


DAYS = {"by": "date", "input": "flights/{date}.csv"}


def test_days_are_half_open_local_dates_with_their_input():
    first, second = partitions(make_job(DAYS), make_request("2013-01-05", "2013-01-07"))
    assert ("date=2013-01-05", "2013-01-05", "2013-01-06") == (first.id, first.low, first.high)
    assert "flights/2013-01-05.csv" == first.input
    assert "2013-01-06" == second.label


@pytest.mark.parametrize(
    ("unit", "start", "end", "expected"),
    [
        ("week", "2020-W53", "2021-W02", ["date=2020-W53", "date=2021-W01"]),
        ("week", "2020-12-28", "2021-01-04", ["date=2020-W53"]),
        ("month", "2024-01", "2024-03-01", ["date=2024-01", "date=2024-02"]),
        ("year", "2023", "2025", ["date=2023", "date=2024"]),
        ("day", "2024-02-28T00:00", "2024-03-01", ["date=2024-02-28", "date=2024-02-29"]),
    ],
)
def test_a_window_may_be_written_in_the_unit_or_as_its_first_day(unit, start, end, expected):
    assert expected == ids({"by": "date", "unit": unit}, start, end)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("UTC", ("2024-03-31", "2024-04-01"), 24),
        ("Europe/Paris", ("2024-03-31", "2024-04-01"), 23),
        ("Europe/Paris", ("2024-10-27", "2024-10-28"), 25),
        ("America/Sao_Paulo", ("2018-11-04", "2018-11-05"), 23),  # midnight itself was skipped
        ("Asia/Kolkata", ("2024-03-31", "2024-04-01"), 24),
    ],
)
def test_a_day_has_as_many_hours_as_its_time_zone_gives_it(zone, day, hours):
    found = ids({"by": "date", "unit": "hour", "timezone": zone}, *day)
    assert hours == len(found) == len(set(found))


def test_the_hour_that_comes_twice_is_told_apart_by_its_offset():
    found = ids({"by": "date", "unit": "hour", "timezone": "Europe/Paris"}, "2024-10-27", "2024-10-28")
    assert ["date=2024-10-27T02+02:00", "date=2024-10-27T02+01:00"] == found[2:4]


def test_hours_where_the_clock_moves_by_half_an_hour_go_on_at_full_hours():
    found = ids({"by": "date", "unit": "hour", "timezone": "Australia/Lord_Howe"}, "2024-04-07", "2024-04-08")
    assert ["date=2024-04-07T01+11:00", "date=2024-04-07T01:30+10:30", "date=2024-04-07T02+10:30"] == found[
        1:4
    ]


def test_hours_have_their_bounds_as_instants_in_utc():
    settings = {"by": "date", "unit": "hour", "timezone": "Asia/Tokyo"}
    (one,) = partitions(make_job(settings), make_request("2024-01-01T09", "2024-01-01T10"))
    assert ("date=2024-01-01T09+09:00", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z") == (
        one.id,
        one.low,
        one.high,
    )


def test_an_hour_label_given_as_a_key_finds_the_same_partition_again():
    settings = {"by": "date", "unit": "hour", "timezone": "Australia/Lord_Howe"}
    planned = list(partitions(make_job(settings), make_request("2024-04-06", "2024-04-08")))
    again = list(partitions(make_job(settings), make_request(keys=[one.id for one in planned])))
    assert planned == again


@pytest.mark.parametrize(
    ("settings", "start", "end", "message"),
    [
        (DAYS, "2024-13-01", "2024-12-01", "from: '2024-13-01' is not a day. Write it like 2024-01-31."),
        (DAYS, "yesterday", "2024-12-01", "from: 'yesterday' is not a day"),
        (DAYS, "2024-01-01", "2024-01-01T12:00", "to: '2024-01-01T12:00' is not a day"),
        (DAYS, "2024-01-02", "2024-01-01", "to: the window from 2024-01-02 to 2024-01-01 runs backwards"),
        (DAYS, "2024-01-02", "2024-01-02", "to: the window from 2024-01-02 to 2024-01-02 is empty"),
        (DAYS, None, None, "from: this job works dates, so it needs to know which. Give `from` and `to`"),
        (
            {"by": "date", "unit": "month"},
            "2024-01-15",
            "2024-03-01",
            "from: 2024-01-15 is inside the month 2024-01, and a partition named after a month must hold "
            "all of it. Begin or end at 2024-01-01 or 2024-02-01.",
        ),
        ({"by": "date", "unit": "week"}, "2024-W54", "2024-12-30", "from: '2024-W54' is not a week"),
        (
            {"by": "date", "unit": "hour"},
            "2024-01-01T00:30",
            "2024-01-02",
            "from: 2024-01-01T00:30 is inside an hour",
        ),
        (
            {"by": "date", "unit": "hour", "timezone": "Europe/Paris"},
            "2024-10-27T02:00",
            "2024-10-28",
            "from: 2024-10-27T02:00:00 happens twice in Europe/Paris, because the clock is changed then. "
            "Write the instant in UTC: 2024-10-27T00:00:00Z or 2024-10-27T01:00:00Z.",
        ),
        (
            {"by": "date", "unit": "hour", "timezone": "Europe/Paris"},
            "2024-03-31T02:00",
            "2024-04-01",
            "from: 2024-03-31T02:00:00 never happens in Europe/Paris",
        ),
        (
            {"by": "date", "unit": "hour"},
            "1900-01-01",
            "2100-01-01",
            "to: that makes 1,753,176 partitions or more",
        ),
        ({"by": "key-range", "size": 10}, "a", "20", "from: 'a' is not an integer"),
        ({"by": "key-range", "size": 10}, "20", "0", "to: the window from 20 to 0 runs backwards"),
        ({"by": "key-range", "size": 1}, "0", "9999999", "to: that makes 9,999,999 partitions or more"),
        (
            {"by": "list", "items": ["a"]},
            "0",
            "1",
            "from: this job works a list, which has no beginning and end",
        ),
        (
            {"by": "list"},
            None,
            None,
            "keys: the job file lists no items, so the request has to. Give `keys`.",
        ),
    ],
)
def test_a_window_that_does_not_fit_is_refused_with_its_field_and_remedy(settings, start, end, message):
    with pytest.raises(RequestError) as refused:
        ids(settings, start, end)
    assert message in str(refused.value)


def test_integer_steps_begin_at_multiples_of_the_size_so_that_ids_do_not_depend_on_the_window():
    settings = {"by": "key-range", "size": 1000}
    assert ["id=500-999", "id=1000-1999", "id=2000-2499"] == ids(settings, "500", "2500")
    assert "id=1000-1999" in ids(settings, "0", "3000")


def test_negative_keys_are_cut_like_others():
    assert ["id=-1000--1", "id=0-999"] == ids({"by": "key-range", "size": 1000}, "-1000", "1000")


def test_a_cut_step_weighs_its_part_of_a_whole_one():
    job = make_job({"by": "key-range", "size": 1000, "seconds": 60})
    assert [30, 60] == [one.weight for one in partitions(job, make_request("500", "2000"))]


def test_text_is_cut_at_the_splits_inside_the_window():
    settings = {"by": "key-range", "type": "text", "key": "name", "splits": ["f", "m", "t"]}
    assert ["name=..f", "name=f..m", "name=m..t", "name=t.."] == ids(settings)
    assert ["name=g..m", "name=m..n"] == ids(settings, "g", "n")
    assert ["name=f..m"] == ids(settings, keys=["name=f..m"])


def test_a_list_takes_its_items_from_the_job_file_or_the_request():
    assert ["tenant=acme", "tenant=zeta"] == ids({"by": "list", "key": "tenant", "items": ["acme", "zeta"]})
    assert ["tenant=zeta"] == ids({"by": "list", "key": "tenant"}, keys=["tenant=zeta"])


def test_objects_under_a_prefix_weigh_by_their_size_and_folders_are_none():
    settings = {"by": "s3-prefix", "prefix": "s3://bucket/in/", "suffix": ".csv"}
    listing = [("in/", 0), ("in/b.csv", 50_000_000), ("in/a.csv", 0), ("in/a.txt", 1), ("out/c.csv", 1)]
    found = list(partitions(make_job(settings), make_request(), listing=listing))
    assert ["object=a.csv", "object=b.csv"] == [one.id for one in found]
    assert "s3://bucket/in/b.csv" == found[1].input
    assert [0.001, 10.0] == [one.weight for one in found]


def test_any_object_key_becomes_an_id_that_fits():
    settings = {"by": "s3-prefix", "prefix": "s3://bucket/"}
    keys = ["é" * 400 + "1", "é" * 400 + "2", "line\nfeed"]
    found = ids(settings, listing=[(key, 1) for key in keys])
    assert 3 == len(set(found))
    assert 512 >= max(len(one.encode()) for one in found)
    assert "object=line%0Afeed" in found


def test_the_hook_names_labels_or_whole_partitions():
    own = Partition(partition_id="tenant=b", low="1", high="2", weight=7)
    job = make_job({"by": "job", "key": "tenant", "seconds": 3})
    assert [Partition(partition_id="tenant=a", input="a", weight=3), own] == list(
        partitions(job, make_request(), named=["a", own])
    )


@pytest.mark.parametrize(
    ("settings", "keys", "more", "message"),
    [
        (DAYS, ["2024-02-30"], {}, "keys: '2024-02-30' is not a day"),
        (DAYS, [], {}, "keys: no keys are given"),
        ({"by": "key-range", "size": 10}, ["5-14"], {}, "keys: '5-14' is not a partition of this job"),
        ({"by": "key-range", "size": 10}, ["0-9", "5-9"], {}, "keys: two of the keys overlap"),
        (
            {"by": "list", "items": ["a", "b"]},
            ["c"],
            {},
            "no partition is called 'c'. The job has 2, such as 'a'.",
        ),
        (
            {"by": "s3-prefix", "prefix": "s3://b/"},
            ["x"],
            {"listing": [("y", 1)]},
            "no partition is called 'x'",
        ),
        ({"by": "job"}, ["x"], {"named": ["y"]}, "no partition is called 'x'"),
        ({"by": "key-range", "type": "text", "splits": ["m"]}, ["a..b"], {}, "no partition is called 'a..b'"),
        ({"by": "list"}, ["a\tb"], {}, "control characters"),
        ({"by": "list"}, ["x" * 600], {}, "more than 512"),
        ({"by": "list"}, ["\ud800"], {}, "is not Unicode"),
        ({"by": "list"}, ["item="], {}, "has no name"),
        ({"by": "job"}, None, {"named": "abc"}, "partitions(window) gave str 'abc'. Give a list of names"),
        ({"by": "job"}, None, {"named": 5}, "partitions(window) gave int '5'."),
        ({"by": "job"}, None, {"named": ["a", 1]}, "partitions(window) gave int '1'."),
        ({"by": "job"}, None, {"named": ["a", "a"]}, "two partitions are called item=a"),
    ],
)
def test_keys_that_name_no_partition_are_refused(settings, keys, more, message):
    with pytest.raises(RequestError) as refused:
        ids(settings, keys=keys, **more)
    assert message in str(refused.value)


def test_exactly_the_named_days_are_planned_in_order_of_time():
    assert ["date=2024-01-05", "date=2024-03-01"] == ids(
        DAYS, keys=["2024-03-01", "date=2024-01-05", "2024-03-01"]
    )


def test_two_partitions_that_would_read_one_input_are_refused():
    settings = {"by": "date", "unit": "hour", "timezone": "Europe/Paris", "input": "{date}/{hour}.csv"}
    with pytest.raises(RequestError) as refused:
        ids(settings, "2024-10-27", "2024-10-28")
    assert "date=2024-10-27T02+01:00 would read 2024-10-27/02.csv" in str(refused.value)


def test_an_input_without_placeholders_may_serve_all():
    settings = {"by": "key-range", "size": 10, "input": "all.csv"}
    found = list(partitions(make_job(settings), make_request("0", "20")))
    assert ["all.csv", "all.csv"] == [one.input for one in found]


def test_an_iso_week_is_filled_in_with_its_own_year():
    settings = {"by": "date", "unit": "week", "input": "{year}/{week}.csv"}
    (one,) = partitions(make_job(settings), make_request("2024-12-30", "2025-01-06"))
    assert "2025/01.csv" == one.input


def test_counted_records_outweigh_history_and_history_the_job_file():
    job, request = make_job({**DAYS, "seconds": 60}), make_request("2024-01-01", "2024-01-03")
    pace = Pace(per_record=0.5, per_partition=9, records={"date=2024-01-02": 40})
    assert [60, 60] == [one.weight for one in partitions(job, request)]
    assert [9, 20] == [one.weight for one in partitions(job, request, pace=pace)]


@pytest.mark.parametrize(
    ("settings", "request_", "expected"),
    [
        (
            {"by": "date", "timezone": "Asia/Tokyo"},
            make_request("2024-01-01", "2024-02-01"),
            Window(kind="date", low="2024-01-01", high="2024-02-01", timezone="Asia/Tokyo"),
        ),
        (
            DAYS,
            make_request(keys=["2024-01-09", "2024-01-01"]),
            Window(kind="date", low="2024-01-01", high="2024-01-10"),
        ),
        (
            {"by": "key-range", "size": 10},
            make_request("5", "25"),
            Window(kind="key", key_type="integer", low="5", high="25"),
        ),
        ({"by": "key-range", "type": "text"}, make_request(), Window(kind="key", key_type="text")),
        ({"by": "list"}, make_request(keys=["b", "a"]), Window(kind="list", items=("b", "a"))),
        ({"by": "list"}, make_request(keys=["x" * 500 + str(n) for n in range(99)]), Window(kind="all")),
        ({"by": "s3-prefix", "prefix": "s3://b/"}, make_request(), Window(kind="all")),
        ({"by": "job"}, make_request("1", "2"), Window(kind="all", low="1", high="2")),
    ],
)
def test_the_lock_sees_the_window_or_what_encloses_the_keys(settings, request_, expected):
    assert expected == window(make_job(settings), request_)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window(kind="date", low="2013-01-01", high="2014-01-01"), "2013-01-01 to 2014-01-01 (UTC)"),
        (Window(kind="key", low=None, high="m", key_type="text"), "the beginning to m"),
        (Window(kind="key", low="m", high=None, key_type="text"), "m to the end"),
        (Window(kind="list", items=("a", "b")), "a, b"),
        (Window(kind="list", items=("a", "b", "c", "d", "e")), "a, b, c and 2 more"),
        (Window(kind="all"), "everything"),
    ],
)
def test_a_window_reads_as_people_write_it(window, text):
    assert text == str(window)


HALF = "a\ud800"  # of a surrogate pair: no store keeps it


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"by": "list"}, {"keys": [HALF]}),
        ({"by": "list", "items": [HALF]}, {}),
        ({"by": "key-range", "type": "text", "splits": [HALF]}, {}),
        ({"by": "s3-prefix", "prefix": "s3://b/"}, {"listing": [(HALF, 1)]}),
        ({"by": "s3-prefix", "prefix": "s3://b/"}, {"listing": [("x" * 600 + HALF, 1)]}),
        ({"by": "job"}, {"named": [HALF]}),
        ({"by": "job"}, {"named": [Partition(partition_id="a", input=HALF)]}),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_before_anything_is_planned(settings, more):
    keys = more.pop("keys", None)
    with pytest.raises(RequestError, match=r"\\ud800' is not Unicode: it holds half of a surrogate pair"):
        list(partitions(make_job(settings), make_request(keys=keys), **more))


@pytest.mark.parametrize("letter", ["a", "é", "\u20ac", "\U0001f600"])
def test_an_id_has_at_most_512_bytes_in_utf_8_whatever_its_letters(letter):
    fits = letter * ((512 - len("item=")) // len(letter.encode()))
    (one,) = partitions(make_job({"by": "list"}), make_request(keys=[fits]))
    assert len(f"PART#{one.id}".encode()) <= 1024
    with pytest.raises(RequestError, match="bytes, more than 512"):
        list(partitions(make_job({"by": "list"}), make_request(keys=[fits + letter])))
