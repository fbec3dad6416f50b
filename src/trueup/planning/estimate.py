"""What a run will take: tasks, minutes, state transitions, writes, requests and dollars, each with its basis.

An estimate for a run without faults; every relaunch adds a launch. Prices are in `prices.json`, dated.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from trueup.model.estimate import Estimate, Figure
from trueup.model.job import TaskSettings
from trueup.model.jobs import AnyJob
from trueup.model.plan import Partition, Slice

START_SECONDS = 45
"""From a task's launch to its first record: image pull and imports; billed. 20 to 60 s were seen."""
LEAST_BILLED_SECONDS = 60.0
"""Fargate bills a minute at least."""
STOP_SECONDS = 30
"""From a container's end until Step Functions knows; not billed, but the slot stays taken."""
LAUNCHES_A_SECOND = 20
CHECKPOINT_SECONDS = 3
BEAT_SECONDS = 10
TRANSITIONS_A_LAUNCH = 8
TRANSITIONS_A_RUN = 40
ACCEPTED_AT_ONCE = 99
ACCEPT_GB_SECONDS = 0.5


def estimate(
    job: AnyJob, partitions: Sequence[Partition], slices: Sequence[Slice], *, dry_run: bool = False
) -> Estimate:
    """What working these slices will take. `partitions` come in key order; weights are seconds."""
    work = [one.weight for one in slices]
    wall, billed = _wall_seconds(work, job.limits.max_concurrency), sum(map(_billed_seconds, work))
    checkpoints = sum(math.ceil(one.weight / CHECKPOINT_SECONDS) for one in partitions)
    figures = [
        *_time(job, work, wall, billed),
        _transitions(len(slices)),
        _writes(slices, checkpoints, sum(work)),
        _reads(slices, len(partitions)),
        *_requests(len(slices)),
        _lambda(len(slices)),
    ]
    amounts = {figure.name: figure.value for figure in figures}
    return Estimate(
        job=job.name,
        partitions=len(partitions),
        slices=len(slices),
        first=partitions[0].id,
        last=partitions[-1].id,
        first_input=partitions[0].input,
        last_input=partitions[-1].input,
        tasks=len(slices),
        wall_minutes=amounts["wall time"],
        billed_minutes=amounts["billed time"],
        transitions=round(amounts["state transitions"]),
        dynamodb_writes=round(amounts["DynamoDB writes"]),
        dynamodb_reads=round(amounts["DynamoDB reads"]),
        s3_requests=round(amounts["S3 puts"] + amounts["S3 gets"]),
        dollars=round(sum(figure.usd or 0 for figure in figures), 4),
        figures=figures,
        guard=job.writes_to.guard,
        cannot_prevent=job.writes_to.guard.cannot_prevent,
        dry_run=dry_run,
        prices_as_of=price_list()["asOf"],
    )


@cache
def price_list() -> dict[str, Any]:
    """The dated list of prices, with their sources."""
    text = files("trueup.planning").joinpath("prices.json").read_text(encoding="utf-8")
    listed: dict[str, Any] = json.loads(text)
    return listed


def price(name: str) -> float:
    """Dollars for one unit."""
    prices = price_list()["prices"]
    return float(prices[name]["usd"])


def spent(task: TaskSettings, launches: int, task_seconds: int) -> float:
    """Dollars for what was launched and for the time that tasks are known to have had.

    Fargate's time and the state transitions, which grow with every launch. A launch counts as a minute
    before its task registers: the least that Fargate bills, and more than image pull and imports take.
    """
    hours = (task_seconds + LEAST_BILLED_SECONDS * launches) / 3600
    transitions = TRANSITIONS_A_LAUNCH * launches
    return hours * _usd_an_hour(task) + transitions * price("stateTransition")


def _usd_an_hour(task: TaskSettings) -> float:
    return task.cpu / 1024 * price("fargateVcpuHour") + task.memory / 1024 * price("fargateGbHour")


def _time(job: AnyJob, work: Sequence[float], wall: float, billed: float) -> Iterable[Figure]:
    vcpu, gigabytes, hours = job.task.cpu / 1024, job.task.memory / 1024, billed / 3600
    heaviest = max(work) / 60
    yield Figure(
        name="wall time",
        value=round(wall / 60, 1),
        unit="minutes",
        basis=f"{len(work)} tasks, {min(job.limits.max_concurrency, len(work))} at once, the longest with "
        f"{heaviest:.1f} min of work; {START_SECONDS} s to start and {STOP_SECONDS} s to end each, "
        f"{LAUNCHES_A_SECOND} launches a second",
    )
    yield Figure(
        name="billed time",
        value=round(billed / 60, 1),
        unit="task minutes",
        basis=f"work of {sum(work) / 60:.1f} min and {START_SECONDS} s a task to start, at least a minute; "
        f"{vcpu:g} vCPU, {gigabytes:g} GB",
        usd=hours * _usd_an_hour(job.task),
    )


def _billed_seconds(weight: float) -> float:
    return max(LEAST_BILLED_SECONDS, START_SECONDS + weight)


def _wall_seconds(work: Sequence[float], at_once: int) -> float:
    """Tasks are launched in order, each when a slot is free and the launch rate allows."""
    free = [0.0] * min(at_once, len(work))
    end = 0.0
    for launched, weight in enumerate(work):
        start = max(heapq.heappop(free), launched / LAUNCHES_A_SECOND)
        done = start + START_SECONDS + weight + STOP_SECONDS
        heapq.heappush(free, done)
        end = max(end, done)
    return end


def _transitions(slices: int) -> Figure:
    count = TRANSITIONS_A_LAUNCH * slices + TRANSITIONS_A_RUN
    basis = f"at most {TRANSITIONS_A_LAUNCH} a launch and {TRANSITIONS_A_RUN} a run"
    return _priced("state transitions", count, "transitions", basis, "stateTransition")


def _writes(slices: Sequence[Slice], checkpoints: int, seconds: float) -> Figure:
    partitions = sum(one.partitions for one in slices)
    batches = sum(math.ceil(one.partitions / ACCEPTED_AT_ONCE) for one in slices)
    beats = math.ceil(seconds / BEAT_SECONDS)
    # Launch number 1, registering a transaction over run and task item 4, ending the task item another: 4.
    count = 2 * partitions + checkpoints + 2 * (partitions + batches) + 9 * len(slices) + beats
    basis = (
        f"take and report of {partitions:,} partitions, {checkpoints:,} checkpoints "
        f"{CHECKPOINT_SECONDS} s apart, acceptance in {batches:,} transactions at double cost, "
        f"9 for each task's own item and {beats:,} beats; items up to 1 KB"
    )
    return _priced("DynamoDB writes", count, "write units", basis, "dynamodbWrite")


def _reads(slices: Sequence[Slice], partitions: int) -> Figure:
    basis = (
        "acceptance and settling read each partition once, each task the run twice; consistent, up to 4 KB"
    )
    return _priced("DynamoDB reads", 2 * partitions + 2 * len(slices), "read units", basis, "dynamodbRead")


def _requests(slices: int) -> Iterable[Figure]:
    basis = "plan 2, dispatch 2, report 1; one result a task; what the job itself puts is not in it"
    yield _priced("S3 puts", slices + 5, "requests", basis, "s3Put")
    basis = "plan, slice and, by acceptance, result of each task; what the job itself reads is not in it"
    yield _priced("S3 gets", 3 * slices + 5, "requests", basis, "s3Get")


def _lambda(slices: int) -> Figure:
    count = slices + 4
    return Figure(
        name="Lambda requests",
        value=count,
        unit="requests",
        basis=f"accept once a task, plan, settle and end; {ACCEPT_GB_SECONDS} GB seconds each",
        usd=count * (price("lambdaRequest") + ACCEPT_GB_SECONDS * price("lambdaGbSecond")),
    )


def _priced(name: str, count: int, unit: str, basis: str, item: str) -> Figure:
    return Figure(name=name, value=count, unit=unit, basis=basis, usd=count * price(item))
