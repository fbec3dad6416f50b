"""Whatever happens to a task, and in whatever order: it stops once, for one reason, by legal moves."""

from __future__ import annotations

import asyncio
from itertools import groupby, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.local.ecs.tasks import MOVES, Status

from .ecs_cases import Case, settle

HAPPENINGS = st.sampled_from(
    ["stop", "kill", "crash", "leave", "freeze", "thaw", "interrupt", "exit", "wait", "settle"]
)


@settings(max_examples=200, deadline=None)
@given(
    happenings=st.lists(HAPPENINGS, max_size=12),
    obeys=st.booleans(),
    cold_start=st.sampled_from([0, 3]),
    deprovision=st.sampled_from([0, 3]),
)
def test_a_task_stops_once_for_one_reason_by_legal_moves(
    happenings: list[str], obeys: bool, cold_start: float, deprovision: float
) -> None:
    asyncio.run(_live(happenings, obeys, cold_start, deprovision))


async def _live(happenings: list[str], obeys: bool, cold_start: float, deprovision: float) -> None:
    case = Case(cold_start=cold_start, deprovision=deprovision)
    case.launcher.obey = obeys
    task = case.fargate.run({"taskDefinition": "job"})[0][0]
    life = case.fargate.life(task.arn)
    reasons = []
    for happening in happenings:
        if happening == "stop":
            case.fargate.stop(task, "asked")
        elif happening == "exit" and case.launcher.processes:
            case.process.exit(0)
        elif happening == "wait":
            await case.clock.pass_(2)
        elif happening == "settle":
            await settle()
        elif happening == "leave":
            life.exit(64)
        elif happening in ("kill", "crash", "freeze", "thaw", "interrupt"):
            getattr(life, happening)()
        reasons += [task.stop] if task.stop else []
    case.fargate.stop(task, "at last")
    await case.clock.pass_(60)
    assert task.stopped
    assert {task.stop} >= set(reasons)
    # A Spot interruption is an event of a task that runs on: RUNNING twice.
    statuses = [Status(status) for status, _ in groupby(case.statuses())]
    assert 1 == statuses.count(Status.STOPPED)
    assert all(after in MOVES[before] for before, after in pairwise(statuses))
    assert (task.container.exit_code is not None) == ("startedAt" in task.times)
    assert list(task.times.values()) == sorted(task.times.values())
