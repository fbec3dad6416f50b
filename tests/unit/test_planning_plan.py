"""Packing, the plan and its hash, dispatches, parameters."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import pytest

from trueup.errors import RequestError
from trueup.model.base import sha256
from trueup.model.job import JobFile
from trueup.model.plan import CodeIdentity, Partition, Plan, Slice
from trueup.model.request import Request
from trueup.model.states import Phase
from trueup.planning import (
    check_params,
    in_order,
    make_dispatch,
    make_plan,
    pack,
    partitions,
    read_param,
    read_partitions,
    read_slice,
)
from trueup.planning.packing import MOST_IN_A_SLICE, slice_count

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CODE = CodeIdentity(task_definition="job:1", image_digest="sha256:" + "0" * 64)
DAYS = {"by": "date", "input": "flights/{date}.csv"}
SCHEMA = {
    "type": "object",
    "required": ["carrier"],
    "properties": {
        "carrier": {"type": "string"},
        "most": {"type": "integer", "default": 5, "minimum": 1},
        "table": {"type": "object", "properties": {"name": {"type": "string", "default": "t"}}},
    },
}


def make_job(settings=None, **more):
    document = {"name": "job", "class": "module:Job", "target": {"name": "table", "guard": "key"}}
    return JobFile.model_validate({**document, "partitions": settings or DAYS, **more})


def make_request(start="2024-01-01", end="2025-01-01", **more):
    return Request(job="job", request_id="r", requester="me", start=start, end=end, **more)


def plan_of(job=None, request=None, **more):
    job, request = job or make_job(), request or make_request()
    given = {"run_id": "job-1", "read_code": CODE, "write_code": CODE, "created_at": NOW, **more}
    return make_plan(job, request, partitions(job, request), **given)


def log_normal(count, sigma, target):
    """Seeded weights whose largest is a tenth of a task's target."""
    rng = random.Random(7)
    weights = [rng.lognormvariate(0, sigma) for _ in range(count)]
    scale = target / 10 / max(weights)
    return [
        Partition(partition_id=f"n={number}", weight=weight * scale) for number, weight in enumerate(weights)
    ]


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.0, 1.5])
@pytest.mark.parametrize("order", ["heaviest", "oldest", "newest"])
def test_ten_thousand_uneven_partitions_make_64_to_350_even_slices(order, sigma):
    parts = in_order(log_normal(10_000, sigma, 900), order)
    packs = pack(parts, order=order, target_seconds=900, max_concurrency=64)
    weights = [each.weight for each in packs]
    assert 64 <= len(packs) <= 350
    assert 1.5 * sum(weights) / len(weights) >= max(weights)


@pytest.mark.parametrize(
    ("count", "total", "at_once", "expected"),
    [
        (365, 3650, 16, 16),  # 5 tasks of 900 s would do, but 16 may run
        (3, 3650, 16, 3),  # never more slices than partitions
        (9999, 17 * 900, 16, 32),  # a second round is filled: 17 -> 32
        (9999, 80 * 900, 16, 80),  # 5 full rounds
        (9999, 81 * 900, 16, 81),  # from then on the last round hardly matters
        (9999, 1, 1, 10),  # 1 second of work, but at most 1,000 partitions in a slice
    ],
)
def test_there_are_as_many_slices_as_keep_tasks_busy_and_end_together(count, total, at_once, expected):
    assert expected == slice_count(count, total, 900, at_once)


def test_partitions_without_weight_are_spread_all_the_same():
    parts = [Partition(partition_id=f"n={number}", weight=0) for number in range(10_500)]
    packs = pack(parts, order="heaviest", target_seconds=900, max_concurrency=4)
    assert MOST_IN_A_SLICE >= max(len(each.partitions) for each in packs)
    assert 10_500 == sum(len(each.partitions) for each in packs)


def test_a_full_slice_takes_no_more_however_light_it_is():
    # One heavy partition loads the first of three slices; two cannot hold the 2,500 that weigh nothing.
    parts = [Partition(partition_id=f"n={number}", weight=0 if number else 1500) for number in range(2501)]
    packs = pack(parts, order="heaviest", target_seconds=900, max_concurrency=1)
    assert [501, 1000, 1000] == sorted(len(each.partitions) for each in packs)


def test_oldest_first_gives_the_first_round_of_tasks_the_oldest_keys():
    parts = [Partition(partition_id=f"n={number}", weight=100) for number in range(90)]
    packs = pack(parts, order="oldest", target_seconds=900, max_concurrency=5)
    first_round = [int(one.label) for each in packs[:5] for one in each.partitions]
    assert set(range(45)) == set(first_round)


def test_the_plan_lists_the_heaviest_first_unless_the_job_orders_otherwise():
    parts = [Partition(partition_id=f"n={number}", weight=weight) for number, weight in enumerate([1, 3, 2])]
    assert ["1", "2", "0"] == [one.label for one in in_order(parts, "heaviest")]
    assert ["0", "1", "2"] == [one.label for one in in_order(parts, "oldest")]
    assert ["2", "1", "0"] == [one.label for one in in_order(parts, "newest")]


def test_the_plan_names_its_partitions_by_their_hash():
    plan, data = plan_of()
    assert (sha256(data), len(data)) == (plan.partitions.sha256, plan.partitions.bytes)
    assert 366 == plan.partition_count == len(read_partitions(data))
    assert plan == Plan.model_validate_json(plan.bytes())


def test_the_same_inputs_give_the_same_bytes_in_another_process_and_dict_order():
    job = make_job(parameters=SCHEMA)
    params = {"carrier": "AA", "table": {"name": "x"}, "most": 2}
    backwards = dict(reversed(params.items()))
    one, data = plan_of(job, make_request(params=params))
    other, other_data = plan_of(job, make_request(params=backwards))
    assert (one.sha256(), data) == (other.sha256(), other_data)


@pytest.mark.parametrize(
    ("job", "request_", "more"),
    [
        ({}, {"end": "2024-12-31"}, {}),
        ({"order": "newest"}, {}, {}),
        ({"task": {"minutes": 10}}, {}, {}),
        ({}, {"dry_run": True}, {}),
        ({}, {"max_concurrency": 2}, {}),
        ({}, {}, {"write_code": CodeIdentity(task_definition="job:2", image_digest=CODE.image_digest)}),
        ({}, {}, {"run_id": "job-2"}),
    ],
)
def test_whatever_changes_the_work_changes_the_hash(job, request_, more):
    assert plan_of()[0].sha256() != plan_of(make_job(**job), make_request(**request_), **more)[0].sha256()


def test_a_default_written_out_plans_the_same():
    assert plan_of(make_job(batch={"targetSeconds": 5}))[0].sha256() == plan_of()[0].sha256()


def test_nothing_to_do_is_refused():
    job = make_job({"by": "s3-prefix", "prefix": "s3://b/in/"})
    with pytest.raises(RequestError, match="there is nothing to do: job has no partitions here"):
        make_plan(
            job, make_request(None, None), [], run_id="r", read_code=CODE, write_code=CODE, created_at=NOW
        )


def test_a_request_may_lower_the_concurrency_and_not_raise_it():
    assert 4 == plan_of(request=make_request(max_concurrency=4))[0].job.limits.max_concurrency
    with pytest.raises(
        RequestError, match="maxConcurrency: 17 tasks at once are more than the job file allows, 16"
    ):
        plan_of(request=make_request(max_concurrency=17))


def test_a_dispatch_holds_what_is_left_in_slices_of_one_object():
    plan, data = plan_of()
    left = {"date=2024-02-29", "date=2024-03-01"}
    dispatch, lines, slices = make_dispatch(
        plan, read_partitions(data), phase=Phase.APPLY, number=2, unfinished=left, first_slice=16
    )
    assert [16, 17] == [one.slice_id for one in dispatch.slices]
    assert left == {one.id for one in read_slice(lines)}
    assert dispatch.slices == [Slice.model_validate(one) for one in json.loads(slices)]
    assert (plan.sha256(), sha256(lines), "apply-2") == (
        dispatch.plan_sha256,
        dispatch.partitions.sha256,
        dispatch.name,
    )


def test_with_nothing_left_a_dispatch_has_no_slices():
    plan, data = plan_of()
    made = make_dispatch(plan, read_partitions(data), phase=Phase.APPLY, number=2, unfinished=())
    assert ([], b"", b"[]") == (made[0].slices, made[1], made[2])


def test_defaults_are_filled_in_also_inside():
    expected = {"carrier": "AA", "most": 5, "table": {"name": "t"}}
    assert expected == check_params(make_job(parameters=SCHEMA), {"carrier": "AA", "table": {}})


def test_parameters_that_are_missing_are_named_together_and_once():
    text = {"type": "string"}
    schema = {"type": "object", "required": ["from", "into"], "properties": {"from": text, "into": text}}
    with pytest.raises(RequestError) as refused:
        check_params(make_job(parameters=schema), {})
    wanted = "params: `from`, `into` are missing. Give them, like --param from=VALUE --param into=VALUE."
    assert wanted == str(refused.value)


@pytest.mark.parametrize(
    ("params", "messages"),
    [
        ({}, ["params: `carrier` is missing. Give it, like --param carrier=VALUE."]),
        ({"carrier": 5}, ["params.carrier: 5 is not of type string. Give a string."]),
        ({"carrier": "AA", "most": "many"}, ['params.most: "many" is not of type integer. Give an integer.']),
        ({"carrier": "AA", "most": 0}, ["params.most: 0 is less than the minimum of 1."]),
        ({"carrier": "AA", "mots": 1}, ["params.mots: job has no such parameter. Did you mean `most`?"]),
        (
            {"mots": 1, "most": "x"},
            ["Did you mean `most`?", "`carrier` is missing", '"x" is not of type integer'],
        ),
    ],
)
def test_parameters_are_refused_all_at_once(params, messages):
    with pytest.raises(RequestError) as refused:
        check_params(make_job(parameters=SCHEMA), params)
    assert all(message in str(refused.value) for message in messages), str(refused.value)


def test_a_job_without_parameters_takes_none():
    with pytest.raises(RequestError, match=r"params.a: job has no such parameter. It has none."):
        check_params(make_job(), {"a": 1})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("carrier", "5", "5"),
        ("most", "5", 5),
        ("most", "x", "x"),
        ("table", '{"name": "x"}', {"name": "x"}),
        ("q", "1", "1"),
    ],
)
def test_a_typed_parameter_is_read_as_the_schema_says(name, text, expected):
    assert expected == read_param(SCHEMA, name, text)
