"""What a launch's state is left with becomes how it ended: refused, told, silent, or as ECS describes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.handling.ends import ended_of
from trueup.platform import Ended

UNKNOWN_ERROR = {"Error": "States.Timeout"}


def of_task(**task: Any) -> dict[str, str]:
    """The error of `.sync`, with a task's description as its cause."""
    return {"Error": "States.TaskFailed", "Cause": json.dumps(task)}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ECS.ThrottlingException", ""),
        ("ECS.ServerException", "Service Unavailable"),
        ("ECS.AmazonECSException", "Rate exceeded (Service: AmazonECS; Status Code: 400)"),
        ("ECS.AmazonECSException", "Capacity is unavailable at this time. Please try again later."),
        ("ECS.InvalidParameterException", "Error retrieving subnet information: Request limit exceeded."),
        ("ECS.InvalidParameterException", "Network interface: RequestLimitExceeded"),
        ("AmazonECS.Unknown", '[{"Reason": "RESOURCE:ENI"}]'),
    ],
)
def test_throttling_and_capacity_in_each_disguise_say_nothing_against_the_slice(
    error: str, cause: str
) -> None:
    ended = ended_of({"Error": error, "Cause": cause})
    assert ended.launch_refused
    assert ended.from_outside
    assert error in str(ended)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ECS.AccessDeniedException", "not authorized to perform: ecs:RunTask"),
        ("ECS.ClientException", "TaskDefinition is inactive"),
        ("ECS.InvalidParameterException", "Container Overrides length must be at most 8192"),
    ],
)
def test_a_launch_that_can_never_work_counts_as_one_that_ended(error: str, cause: str) -> None:
    ended = ended_of({"Error": error, "Cause": cause})
    assert (False, False, f"{error}: {cause}") == (ended.launch_refused, ended.from_outside, ended.reason)


@pytest.mark.parametrize("code", [64, 70, 75, 137])
def test_the_exit_code_comes_out_of_the_cause(code: int) -> None:
    left = of_task(
        Containers=[{"ExitCode": code}],
        StopCode="EssentialContainerExited",
        StoppedReason="Essential container in task exited",
    )
    assert Ended(
        exit_code=code, stop_code="EssentialContainerExited", reason="Essential container in task exited"
    ) == ended_of(left)


def test_a_spot_interruption_comes_from_outside() -> None:
    left = of_task(Containers=[{"ExitCode": 137}], StopCode="SpotInterruption", StoppedReason="Spot")
    assert ended_of(left).from_outside


def test_an_image_that_cannot_be_pulled_counts_and_one_without_room_does_not() -> None:
    pull = of_task(Containers=[{}], StopCode="TaskFailedToStart", StoppedReason="CannotPullContainerError")
    room = of_task(Containers=[{}], StopCode="TaskFailedToStart", StoppedReason="Capacity is unavailable")
    assert (False, True) == (ended_of(pull).from_outside, ended_of(room).from_outside)
    assert "CannotPullContainerError" in str(ended_of(pull))


def test_a_tasks_own_word_stands() -> None:
    assert 0 == ended_of({"key": "runs/r/apply/results/0/1-x.json", "sha256": "0" * 64}).exit_code
    told = ended_of({"Error": "TaskEnded", "Cause": '{"exitCode": 75}'})
    assert (75, True) == (told.exit_code, told.from_outside)


@pytest.mark.parametrize("error", ["States.Timeout", "States.HeartbeatTimeout"])
def test_silence_says_only_that_it_was_silent(error: str) -> None:
    assert Ended(reason=error) == ended_of({"Error": error})


@pytest.mark.parametrize("cause", ["", "no JSON", "[1]", "null"])
def test_a_cause_that_says_nothing_leaves_the_end_unknown(cause: str) -> None:
    assert ended_of({"Error": "States.TaskFailed", "Cause": cause}).exit_code is None
    assert ended_of({"Error": "TaskEnded", "Cause": cause}).exit_code is None


def test_a_long_cause_is_cut() -> None:
    assert 1000 == len(ended_of({"Error": "ECS.ClientException", "Cause": "x" * 30_000}).reason or "")
