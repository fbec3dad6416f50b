"""A task's way from PROVISIONING to STOPPED, with time and processes in the test's hands.

Sources are sections of `aws-facts.md`, or pages of the ECS developer guide and API reference, by title.
"""

from __future__ import annotations

import pytest

from trueup.local.ecs.faults import Fate, Launch, NoFaults
from trueup.local.ecs.tasks import MOVES, Status, StopCode

from .ecs_cases import START, Case, on_a_loop, settle


class Doomed(NoFaults):
    """Every task has the same fate."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    def fate(self, launch: Launch) -> Fate:
        return self._fate


@on_a_loop
async def test_a_task_goes_through_every_state_and_each_is_an_event() -> None:
    """Amazon ECS task lifecycle; Amazon ECS task state change events."""
    case = Case()
    task = await case.run()
    assert Status.RUNNING is task.status
    case.process.exit(0)
    await settle()
    assert [
        *("PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "DEPROVISIONING", "STOPPED"),
    ] == case.statuses()
    assert [1, 2, 3, 4, 5, 6] == [event["detail"]["version"] for event in case.events]


@pytest.mark.parametrize("code", [0, 3])
@on_a_loop
async def test_a_container_that_exits_stops_its_task(code: int) -> None:
    """Section 2.4: stop code EssentialContainerExited, "Essential container in task exited"."""
    case = Case()
    task = await case.run()
    case.process.exit(code)
    await settle()
    assert task.stop is not None
    assert (code, "STOPPED") == (task.container.exit_code, task.container.status)
    assert ("EssentialContainerExited", "Essential container in task exited") == (
        task.stop.code,
        task.stop.reason,
    )


@on_a_loop
async def test_times_tell_what_happened_when() -> None:
    """API reference, Task: createdAt to stoppedAt. Section 2.4: 33 s from the container's end to STOPPED."""
    case = Case(cold_start=20, deprovision=33)
    task = await case.run()
    await case.clock.pass_(20)
    await case.clock.pass_(5)
    case.process.exit(0)
    await case.clock.pass_(33)
    assert {
        "createdAt": 0,
        "pullStartedAt": 20,
        "pullStoppedAt": 20,
        "startedAt": 20,
        "connectivityAt": 20,
        "stoppingAt": 25,
        "executionStoppedAt": 25,
        "stoppedAt": 58,
    } == {name: when - START for name, when in task.times.items()}


@on_a_loop
async def test_a_stopped_task_gets_sigterm_and_may_leave_in_its_own_way() -> None:
    """Section 3, row Stop; API reference, StopTask."""
    case = Case()
    task = await case.run()
    case.fargate.stop(task, "lunch")
    assert ("RUNNING", "STOPPED") == (task.status, task.desired)
    await settle()
    assert task.stop is not None
    assert ["SIGTERM"] == case.process.told
    assert (75, StopCode.USER, "lunch") == (task.container.exit_code, task.stop.code, task.stop.reason)
    assert ["DEACTIVATING", "STOPPING", "DEPROVISIONING", "STOPPED"] == case.statuses()[4:]


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 30), ({"stopTimeout": 120}, 120), ({"stopTimeout": 2}, 2)]
)
@on_a_loop
async def test_who_ignores_sigterm_is_killed_after_stop_timeout(given: dict[str, int], seconds: int) -> None:
    """Section 3, row Stop: default 30 s, at most 120 s on Fargate. 137 is 128 and SIGKILL."""
    case = Case()
    case.launcher.obey = False
    case.register(**given)
    task = await case.run()
    case.fargate.stop(task, None)
    await case.clock.pass_(seconds - 0.1)
    assert (["SIGTERM"], Status.STOPPING) == (case.process.told, task.status)
    await case.clock.pass_(0.1)
    assert (["SIGTERM", "SIGKILL"], 137) == (case.process.told, task.container.exit_code)
    assert task.stopped


@on_a_loop
async def test_a_host_that_fails_takes_its_task_without_a_word() -> None:
    """Section 2.4: StopCode values."""
    case = Case(cold_start=1)
    task = await case.run()
    assert not case.fargate.life(task.arn).crash()  # nothing runs yet, and nothing is noted
    await case.clock.pass_(1)
    assert case.fargate.life(task.arn).crash()
    await settle()
    assert task.stop is not None
    assert ["SIGKILL"] == case.process.told
    assert (137, StopCode.INFRASTRUCTURE) == (task.container.exit_code, task.stop.code)
    assert "RUNNING" == case.statuses()[3]


@on_a_loop
async def test_the_first_reason_to_stop_stands() -> None:
    case = Case()
    case.launcher.obey = False
    task = await case.run()
    case.fargate.stop(task, "first")
    case.fargate.stop(task, "second")
    await case.clock.pass_(30)
    case.fargate.stop(task, "third")
    assert task.stop is not None
    assert "first" == task.stop.reason


@on_a_loop
async def test_a_task_stopped_before_it_began_has_no_exit_code() -> None:
    """Amazon ECS task lifecycle: a task may be stopped in any state."""
    case = Case(cold_start=40)
    task = await case.run()
    case.fargate.stop(task, "too late")
    await settle()
    assert (None, True, []) == (task.container.exit_code, task.stopped, case.launcher.processes)
    assert ["PROVISIONING", "DEPROVISIONING", "STOPPED"] == case.statuses()
    assert "startedAt" not in task.times


@on_a_loop
async def test_an_image_that_nobody_knows_cannot_be_pulled() -> None:
    """Section 2.4, row "Image pull fails"; CannotPullContainer task errors."""
    case = Case()
    case.register(image="registry.example/other@sha256:" + "b" * 64)
    task = await case.run()
    assert task.stop is not None
    assert (StopCode.FAILED_TO_START, None) == (task.stop.code, task.container.exit_code)
    assert task.container.reason == task.stop.reason
    assert task.stop.reason.startswith("CannotPullContainerError: ")
    assert ["PROVISIONING", "PENDING", "ACTIVATING", "DEPROVISIONING", "STOPPED"] == case.statuses()


@on_a_loop
async def test_a_program_that_is_not_there_does_not_start() -> None:
    """CannotStartContainerError in "Stopped tasks error codes"."""
    case = Case()
    case.launcher.fails = "CannotStartContainerError: no such program"
    task = await case.run()
    assert task.stop is not None
    assert (StopCode.FAILED_TO_START, True) == (task.stop.code, task.stopped)


@on_a_loop
async def test_whatever_breaks_the_task_ends() -> None:
    def broken(reference: str) -> str:
        raise RuntimeError("out of order")

    case = Case(secrets=broken)
    case.register(secrets=[{"name": "DSN", "valueFrom": "arn:secret"}])
    task = await case.run()
    while not task.stopped:
        await settle()
    assert task.stop is not None
    assert "InternalError: RuntimeError('out of order')" == task.stop.reason


@on_a_loop
async def test_a_secret_that_cannot_be_had_is_a_task_that_failed_to_start() -> None:
    """ResourceInitializationError in "Stopped tasks error codes"."""
    case = Case()
    case.register(secrets=[{"name": "DSN", "valueFrom": "arn:secret"}])
    task = await case.run()
    while not task.stopped:
        await settle()
    assert task.stop is not None
    assert task.stop.reason.startswith("ResourceInitializationError: unable to pull secrets")


@on_a_loop
async def test_the_environment_is_the_definitions_then_secrets_then_the_calls_then_ecs_own() -> None:
    """API reference, ContainerOverride, environment; Task metadata endpoint version 4."""
    case = Case(environment={"STACK": "1", "A": "stack"}, secrets=lambda reference: f"value of {reference}")
    case.register(
        environment=[{"name": "A", "value": "definition"}, {"name": "B", "value": "definition"}],
        secrets=[{"name": "DSN", "valueFrom": "arn:secret"}],
    )
    override = {
        "name": "main",
        "command": ["again"],
        "environment": [{"name": "B", "value": "call"}, {"name": "AWS_REGION", "value": "no-where"}],
    }
    task = await case.run(overrides={"containerOverrides": [override]})
    while task.status is not Status.RUNNING:
        await settle()
    assert ["run", "again"] == case.process.order.argv
    assert {
        "STACK": "1",
        "A": "definition",
        "B": "call",
        "DSN": "value of arn:secret",
        "AWS_EXECUTION_ENV": "AWS_ECS_FARGATE",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "ECS_AGENT_URI": f"http://metadata/api/{task.container.runtime_id}",
        "ECS_CONTAINER_METADATA_URI_V4": f"http://metadata/v4/{task.container.runtime_id}",
    } == case.process.order.environment
    await case.fargate.close()


@on_a_loop
async def test_a_stopped_task_is_known_for_an_hour_and_then_missing() -> None:
    """Section 3, row Stopped tasks visible."""
    case = Case()
    task = await case.run()
    case.process.exit(0)
    await case.clock.pass_(3599)
    assert task is case.fargate.find("default", task.task_id)
    await case.clock.pass_(1)
    assert case.fargate.find("default", task.task_id) is None


@on_a_loop
async def test_a_new_task_may_be_missing_at_first() -> None:
    """Section 3, row Consistency."""
    case = Case(unseen=2)
    task = await case.run()
    assert case.fargate.find("default", task.task_id) is None
    assert [] == case.fargate.tasks("default")
    await case.clock.pass_(2)
    assert task is case.fargate.find("default", task.task_id)
    await case.fargate.close()


@on_a_loop
async def test_a_killed_task_looks_like_one_that_exited_with_137() -> None:
    case = Case(faults=Doomed(Fate(kill=5)))
    task = await case.run()
    await case.clock.pass_(5)
    assert task.stop is not None
    assert (137, StopCode.CONTAINER_EXITED) == (task.container.exit_code, task.stop.code)


@on_a_loop
async def test_a_task_ends_with_the_exit_code_that_was_meant_for_it() -> None:
    case = Case(faults=Doomed(Fate(exit=5, exit_code=64)))
    task = await case.run()
    await case.clock.pass_(5)
    assert task.stop is not None
    assert (["SIGKILL"], 64) == (case.process.told, task.container.exit_code)
    assert StopCode.CONTAINER_EXITED is task.stop.code


@on_a_loop
async def test_a_harm_is_asked_about_when_its_moment_has_come() -> None:
    asked: list[str] = []
    case = Case(faults=Doomed(Fate(kill=5, interrupt=6, strike=lambda name, do: asked.append(name))))
    task = await case.run()
    await case.clock.pass_(6)
    assert (["kill", "interrupt"], Status.RUNNING) == (asked, task.status)
    await case.fargate.close()


@on_a_loop
async def test_a_fate_may_lead_a_task_elsewhere() -> None:
    case = Case(faults=Doomed(Fate(environment={"AWS_ENDPOINT_URL": "http://gateway"})))
    await case.run()
    assert "http://gateway" == case.process.order.environment["AWS_ENDPOINT_URL"]
    await case.fargate.close()


@on_a_loop
async def test_spot_sends_sigterm_and_says_so() -> None:
    """Section 3, row Spot; Amazon ECS clusters for Fargate workloads."""
    case = Case(faults=Doomed(Fate(interrupt=0)))
    task = await case.run()
    assert task.stop is not None
    assert (["SIGTERM"], 75) == (case.process.told, task.container.exit_code)
    assert ("SpotInterruption", "Your Spot Task was interrupted.") == (task.stop.code, task.stop.reason)


@on_a_loop
async def test_an_event_gives_notice_of_a_spot_interruption_while_the_task_still_runs() -> None:
    """Task state change events: "A task using the Fargate Spot capacity provider receives a termination
    notice"; the example has stopCode TerminationNotice and lastStatus RUNNING."""
    case = Case()
    case.launcher.obey = False
    task = await case.run()
    case.fargate.life(task.arn).interrupt()
    case.fargate.life(task.arn).interrupt()  # says nothing new
    await case.clock.pass_(30)
    told = [event["detail"] for event in case.events if "stopCode" in event["detail"]]
    assert ("RUNNING", "STOPPED", "TerminationNotice") == tuple(
        told[0][name] for name in ("lastStatus", "desiredStatus", "stopCode")
    )
    assert {"SpotInterruption"} == {detail["stopCode"] for detail in told[1:]}
    assert [1, 2, 3, 4, 5, 6, 7, 8, 9] == [event["detail"]["version"] for event in case.events]


@on_a_loop
async def test_a_frozen_task_lives_until_it_is_killed() -> None:
    case = Case(faults=Doomed(Fate(freeze=1, thaw=2)))
    case.launcher.obey = False
    task = await case.run()
    await case.clock.pass_(1)
    assert (["SIGSTOP"], Status.RUNNING) == (case.process.told, task.status)
    await case.clock.pass_(2)
    assert ["SIGSTOP", "SIGCONT"] == case.process.told
    case.fargate.life(task.arn).freeze()
    case.fargate.stop(task, None)
    await case.clock.pass_(30)
    assert (["SIGSTOP", "SIGTERM", "SIGKILL"], True) == (case.process.told[2:], task.stopped)


@on_a_loop
async def test_a_cold_start_of_its_own_comes_on_top() -> None:
    case = Case(cold_start=20, faults=Doomed(Fate(cold_start=10)))
    task = await case.run()
    await case.clock.pass_(29)
    assert Status.PROVISIONING is task.status
    await case.clock.pass_(1)
    assert Status.RUNNING is task.status
    await case.fargate.close()


def test_every_state_but_stopped_leads_to_stopped() -> None:
    ends = {Status.STOPPED}
    while more := {state for state, to in MOVES.items() if ends & to.keys()} - ends:
        ends |= more
    assert set(Status) == ends
    assert {} == MOVES[Status.STOPPED]
