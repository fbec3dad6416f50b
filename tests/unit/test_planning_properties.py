"""Whatever the calendar, time zone or key type: a window is covered once, and nothing is lost or repeated."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trueup.model.base import canonical
from trueup.model.job import JobFile
from trueup.model.plan import CodeIdentity, Partition, Window
from trueup.model.request import Request
from trueup.model.states import Phase
from trueup.planning import in_order, make_dispatch, make_plan, pack, partitions, read_slice, window
from trueup.planning.calendar import floor
from trueup.planning.lines import line

ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Paris",
        "America/New_York",
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Africa/Casablanca",
        "Pacific/Apia",
        "America/St_Johns",
    ]
)
DAYS = st.dates(date(1990, 1, 1), date(2035, 1, 1))
calm = settings(deadline=None)  # one example may take long where tests run side by side
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CODE = CodeIdentity(task_definition="job:1", image_digest="sha256:" + "0" * 64)


def make_job(settings, **more):
    document = {"name": "job", "class": "module:Job", "target": {"name": "table", "guard": "key"}}
    return JobFile.model_validate({**document, "partitions": settings, **more})


def make_request(start=None, end=None, keys=None):
    return Request(job="job", request_id="r", requester="me", start=start, end=end, keys=keys)


def assert_covered_once(job, request):
    parts, whole = list(partitions(job, request)), window(job, request)
    assert whole.low == parts[0].low
    assert whole.high == parts[-1].high
    assert all(before.high == after.low for before, after in pairwise(parts))
    assert len(parts) == len({one.id for one in parts})
    return parts


@calm
@given(DAYS, st.integers(1, 1000), st.sampled_from(["day", "week", "month", "year"]), ZONES)
def test_dates_cover_a_window_once(day, length, unit, zone):
    start, end = floor(day, unit), floor(day + timedelta(days=length), unit)
    assume(start < end)
    job = make_job({"by": "date", "unit": unit, "timezone": zone})
    parts = assert_covered_once(job, make_request(start.isoformat(), end.isoformat()))
    assert all(one.low < one.high for one in parts)


@calm
@given(DAYS, st.integers(1, 40), ZONES)
def test_hours_cover_a_window_once_and_are_never_longer_than_an_hour(day, length, zone):
    job = make_job({"by": "date", "unit": "hour", "timezone": zone})
    end = day + timedelta(days=length)
    parts = assert_covered_once(job, make_request(day.isoformat(), end.isoformat()))
    lengths = [datetime.fromisoformat(one.high) - datetime.fromisoformat(one.low) for one in parts]
    assert timedelta(0) < min(lengths)
    assert timedelta(hours=1) >= max(lengths)


@calm
@given(DAYS, ZONES)
def test_every_hour_can_be_asked_for_by_its_label(day, zone):
    job = make_job({"by": "date", "unit": "hour", "timezone": zone})
    planned = list(partitions(job, make_request(day.isoformat(), (day + timedelta(days=1)).isoformat())))
    again = list(partitions(job, make_request(keys=[one.label for one in planned])))
    assert planned == again


@calm
@given(st.integers(-(10**20), 10**20), st.integers(1, 10**6), st.integers(1, 10**6))
def test_integers_cover_a_window_once(low, length, size):
    assume(length // size < 500)
    job = make_job({"by": "key-range", "size": size})
    parts = assert_covered_once(job, make_request(str(low), str(low + length)))
    assert length == sum(int(one.high) - int(one.low) for one in parts)
    assert size >= max(int(one.high) - int(one.low) for one in parts)


WORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Cc", "Cs"]), max_size=8
)


@calm
@given(st.sets(WORDS.filter(bool), max_size=20), st.one_of(st.none(), st.tuples(WORDS, WORDS)))
def test_text_covers_a_window_once(splits, bounds):
    if bounds is not None:
        assume(bounds[0] < bounds[1])
    job = make_job({"by": "key-range", "type": "text", "splits": sorted(splits)})
    assert_covered_once(job, make_request(*(bounds or (None, None))))


@pytest.mark.parametrize("splits", [["."], [".."], ["a", "a."], ["%2E", "."], ["a..b"], ["..a", "a.."]])
def test_splits_with_dots_name_no_two_partitions_alike(splits):
    job = make_job({"by": "key-range", "type": "text", "splits": sorted(splits)})
    assert_covered_once(job, make_request(None, None))


# Windows


def bounded(kind, low, high, **more):
    return Window(kind=kind, low=low, high=high, **more)


INTEGERS = st.tuples(st.integers(-50, 50), st.integers(1, 30)).map(
    lambda pair: bounded("key", str(pair[0]), str(pair[0] + pair[1]), key_type="integer")
)
OPEN_TEXT = st.tuples(st.none() | st.sampled_from("abcd"), st.none() | st.sampled_from("efgh")).map(
    lambda pair: bounded("key", pair[0], pair[1], key_type="text")
)
DATES = st.tuples(DAYS, st.integers(1, 400), ZONES).map(
    lambda drawn: bounded(
        "date", drawn[0].isoformat(), (drawn[0] + timedelta(days=drawn[1])).isoformat(), timezone=drawn[2]
    )
)
LISTS = st.sets(st.sampled_from("abcdef")).map(lambda items: Window(kind="list", items=tuple(items)))
BROKEN = st.sampled_from(
    [
        bounded("key", "x", "y", key_type="integer"),
        bounded("date", "x", "y"),
        bounded("date", "2024-01-01", "2024-01-02", timezone="No/Where"),
        bounded("key", "a", "b"),
        Window(kind="all"),
    ]
)
WINDOWS = st.one_of(INTEGERS, OPEN_TEXT, DATES, LISTS, BROKEN)


@calm
@given(WINDOWS, WINDOWS)
def test_overlap_is_symmetric(one, other):
    assert one.overlaps(other) == other.overlaps(one)


@calm
@given(WINDOWS)
def test_a_window_overlaps_itself(one):
    assert one.overlaps(one)


@calm
@given(WINDOWS, WINDOWS)
def test_windows_of_different_kinds_cannot_be_compared_and_overlap(one, other):
    assume(one.kind != other.kind or one.key_type != other.key_type)
    assert one.overlaps(other)


@calm
@given(BROKEN, WINDOWS)
def test_windows_that_cannot_be_read_overlap(one, other):
    assert one.overlaps(other)


@calm
@given(INTEGERS, INTEGERS)
def test_integer_ranges_overlap_when_they_share_a_key(one, other):
    keys = set(range(int(one.low), int(one.high))) & set(range(int(other.low), int(other.high)))
    assert bool(keys) == one.overlaps(other)


@calm
@given(DATES, DATES)
def test_dates_overlap_when_they_share_an_instant(one, other):
    def instants(window):
        zone = ZoneInfo(window.timezone)
        bounds = (datetime.fromisoformat(text).replace(tzinfo=zone) for text in (window.low, window.high))
        return [bound.astimezone(UTC) for bound in bounds]

    (low, high), (other_low, other_high) = instants(one), instants(other)
    assert (max(low, other_low) < min(high, other_high)) == one.overlaps(other)


@calm
@given(LISTS, LISTS)
def test_lists_overlap_when_they_share_an_item_or_one_says_nothing(one, other):
    shared = set(one.items) & set(other.items)
    assert (bool(shared) or not one.items or not other.items) == one.overlaps(other)


@calm
@given(OPEN_TEXT, OPEN_TEXT)
def test_text_that_is_unbounded_on_facing_sides_overlaps(one, other):
    unbounded = [window_.model_copy(update={"low": None}) for window_ in (one, other)]
    assert unbounded[0].overlaps(unbounded[1])


# Packing and dispatch

WEIGHTS = st.lists(st.floats(0, 10_000, allow_nan=False), min_size=1, max_size=300)
ORDERS = st.sampled_from(["heaviest", "oldest", "newest"])


def parts_of(weights):
    return [Partition(partition_id=f"n={n}", weight=weight) for n, weight in enumerate(weights)]


@calm
@given(WEIGHTS, ORDERS, st.floats(1, 10_000), st.integers(1, 80))
def test_packing_loses_and_repeats_nothing_and_leaves_no_slice_empty(weights, order, target, at_once):
    parts = parts_of(weights)
    packs = pack(in_order(parts, order), order=order, target_seconds=target, max_concurrency=at_once)
    assert sorted(one.id for one in parts) == sorted(one.id for each in packs for one in each.partitions)
    assert all(each.partitions for each in packs)
    assert min(len(parts), at_once) <= len(packs)


@calm
@given(WEIGHTS, st.floats(1, 10_000), st.integers(1, 80))
def test_within_a_slice_the_order_of_the_plan_is_kept(weights, target, at_once):
    for order, sign in (("oldest", 1), ("newest", -1)):
        parts = in_order(parts_of(weights), order)
        for each in pack(parts, order=order, target_seconds=target, max_concurrency=at_once):
            numbers = [sign * int(one.label) for one in each.partitions]
            assert sorted(numbers) == numbers


@calm
@given(WEIGHTS, ORDERS, st.integers(1, 80), st.randoms(use_true_random=False))
def test_the_byte_ranges_of_a_dispatch_give_back_exactly_its_partitions(weights, order, at_once, random):
    job = make_job({"by": "job", "key": "n"}, order=order, limits={"maxConcurrency": at_once})
    parts = parts_of(weights)
    plan, data = make_plan(
        job, make_request(), parts, run_id="job-1", read_code=CODE, write_code=CODE, created_at=NOW
    )
    wanted = {one.id for one in parts if random.random() < 0.7}
    dispatch, lines, _ = make_dispatch(plan, read_slice(data), phase=Phase.APPLY, number=1, unfinished=wanted)
    ranges = [(one.offset, one.offset + one.length) for one in dispatch.slices]
    assert [(0, len(lines))] == [(ranges[0][0], ranges[-1][1])] if ranges else not lines
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    found = [read_slice(lines[low:high]) for low, high in ranges]
    by_id = {one.id: one for one in parts}
    assert sorted(wanted) == sorted(one.id for each in found for one in each)
    assert all(by_id[one.id] == one for each in found for one in each)
    assert [one.partitions for one in dispatch.slices] == [len(each) for each in found]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@calm
@given(TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.floats(0, 1e9))
def test_a_line_is_the_canonical_document_of_its_partition(name, low, high, source, weight):
    part = Partition(partition_id=name, low=low, high=high, input=source, weight=weight)
    document = {key: value for key, value in part.document().items() if value is not None}
    assert canonical(document) + b"\n" == line(part)
    assert [part] == read_slice(line(part))
