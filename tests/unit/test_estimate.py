"""The estimate: what a run takes, worked out from its plan, and what that costs."""

from __future__ import annotations

import pytest

from trueup.model.job import JobFile
from trueup.model.plan import Partition, Slice
from trueup.planning import estimate as estimating
from trueup.planning.estimate import estimate, price, price_list
from trueup.worker import tools


def make_job(**more):
    document = {
        "name": "job",
        "class": "module:Job",
        "partitions": {"by": "date"},
        "target": {"name": "table", "guard": "none"},
        "task": {"cpu": 1024, "memory": 2048},
        "limits": {"maxConcurrency": 2},
    }
    return JobFile.model_validate({**document, **more})


def make_slices(*weights, partitions=10):
    return [
        Slice(slice_id=n, key="k", offset=0, length=1, partitions=partitions, weight=weight)
        for n, weight in enumerate(weights)
    ]


def make_parts(count, weight):
    return [Partition(partition_id=f"n={n}", weight=weight) for n in range(count)]


def figure(result, name):
    return next(one for one in result.figures if one.name == name)


def test_three_tasks_of_which_two_run_at_once():
    result = estimate(make_job(), make_parts(30, 30), make_slices(300, 300, 300))
    assert (3, 30, "n=0", "n=29") == (result.tasks, result.partitions, result.first, result.last)
    # two rounds of 45 s start, 300 s work, 30 s end: 750 s
    assert 12.5 == result.wall_minutes
    # 3 x (45 + 300) s
    assert pytest.approx(17.25, abs=0.06) == result.billed_minutes
    # 8 a launch x 3 + 40
    assert 64 == result.transitions
    # take and report 60, checkpoints 30 x 10, accept 2 x (30 + 3), task items 9 x 3, beats 900 / 10
    assert 60 + 300 + 66 + 27 + 90 == result.dynamodb_writes


def test_a_short_task_is_billed_a_minute():
    assert 1.0 == estimate(make_job(), make_parts(1, 1), make_slices(1)).billed_minutes


def test_twenty_launches_a_second_bound_the_wall_time():
    job = make_job(limits={"maxConcurrency": 2000})
    result = estimate(job, make_parts(2000, 1), make_slices(*[1.0] * 2000))
    # the last starts after 1,999 / 20 = 100 s, and takes 76
    assert 2.9 == result.wall_minutes


def test_dollars_are_the_sum_of_the_figures_and_fargate_leads():
    result = estimate(make_job(), make_parts(30, 30), make_slices(300, 300, 300))
    # 1,035 s of 1 vCPU and 2 GB
    fargate = 1035 / 3600 * (0.04048 + 2 * 0.004445)
    assert pytest.approx(fargate) == figure(result, "billed time").usd
    assert pytest.approx(64 * 0.000025) == figure(result, "state transitions").usd
    assert pytest.approx(sum(one.usd or 0 for one in result.figures), abs=1e-4) == result.dollars


def test_every_figure_says_what_it_is_worked_out_from():
    result = estimate(make_job(), make_parts(30, 30), make_slices(300, 300, 300))
    assert [] == [one.name for one in result.figures if not one.basis]
    assert "a task that should be dead writing over newer data" == result.cannot_prevent


def test_every_price_has_a_date_a_source_and_a_unit():
    prices = price_list()
    assert "2026-11-29" == prices["asOf"]
    for name, entry in prices["prices"].items():
        assert entry["source"].startswith("https://aws.amazon.com/"), name
        assert entry["unit"], name
        assert 0 < price(name) < 1


def test_the_estimate_beats_and_saves_as_often_as_a_worker_does():
    assert tools.CHECKPOINT_SECONDS == estimating.CHECKPOINT_SECONDS
    assert tools.BEAT_SECONDS == estimating.BEAT_SECONDS
