"""Whatever happens to a service, it comes to run what it shall, and no protected task is ended for it."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.local.ecs.tasks import StopCode

from .service_cases import ServiceCase

HAPPENINGS = st.one_of(
    st.tuples(st.just("scale"), st.integers(0, 5)),
    st.tuples(st.just("deploy"), st.sampled_from(["good", "bad"])),
    st.tuples(st.just("exit"), st.integers(0, 9)),
    st.tuples(st.just("protect"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(1, 30)),
)
LIMITS = st.sampled_from([(100, 200), (50, 100), (0, 100), (100, 150), (75, 125)])
BAD = "registry.example/other@sha256:" + "b" * 64


@settings(max_examples=40, deadline=None)
@given(
    happenings=st.lists(HAPPENINGS, max_size=12),
    limits=LIMITS,
    obeys=st.booleans(),
    breaker=st.booleans(),
)
def test_a_service_comes_to_run_what_it_shall(
    happenings: list[tuple[str, object]], limits: tuple[int, int], obeys: bool, breaker: bool
) -> None:
    asyncio.run(_live(happenings, limits, obeys, breaker))


async def _live(
    happenings: list[tuple[str, object]], limits: tuple[int, int], obeys: bool, breaker: bool
) -> None:
    case = ServiceCase(cold_start=1, deprovision=1, pace=2.0)
    case.launcher.obey = obeys
    configuration = {
        "minimumHealthyPercent": limits[0],
        "maximumPercent": limits[1],
        "deploymentCircuitBreaker": {"enable": breaker, "rollback": breaker},
    }
    await case.create(2, deploymentConfiguration=configuration)
    for happening, value in happenings:
        await _happen(case, happening, value)
        _check_protected(case)
    case.register()
    # Room to move, where the limits and protected tasks left none.
    await case.update(
        240,
        taskDefinition="job",
        desiredCount=3,
        deploymentConfiguration={"minimumHealthyPercent": 0, "maximumPercent": 200},
    )
    told = case.told()
    assert (3, 1, "COMPLETED") == (
        told["runningCount"],
        len(told["deployments"]),
        told["deployments"][0]["rolloutState"],
    )
    assert told["taskDefinition"] == {task.definition.arn for task in case.running()}.pop()
    assert "has reached a steady state." == case.said()[-1]
    case.api("DeleteService", service="work", force=True)
    await case.clock.pass_(60)
    assert ("INACTIVE", []) == (case.told()["status"], case.running())
    await case.fargate.close()


async def _happen(case: ServiceCase, happening: str, value: object) -> None:
    running = case.running()
    if happening == "scale":
        case.api("UpdateService", service="work", desiredCount=value)
    elif happening == "deploy":
        case.register(**({"image": BAD} if value == "bad" else {}))
        case.api("UpdateService", service="work", taskDefinition="job")
    elif happening == "exit" and case.launcher.processes:
        case.launcher.processes[int(str(value)) % len(case.launcher.processes)].exit(1)
    elif happening == "protect" and running:
        case.protect(running[int(str(value)) % len(running)], expiresInMinutes=1)
    elif happening == "wait":
        await case.clock.pass_(float(str(value)))


def _check_protected(case: ServiceCase) -> None:
    """None was ended by the scheduler in the time for which it was protected."""
    for task in case.fargate.tasks("default"):
        if task.stop is not None and task.stop.code is StopCode.SCHEDULER:
            assert not task.protected(task.times["stoppingAt"])
