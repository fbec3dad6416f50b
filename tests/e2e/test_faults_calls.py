"""Calls of the machines that go wrong: launches refused, functions that die, answers that are lost."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest

from trueup import errors as errors_of_trueup
from trueup.local.ecs import REFUSALS
from trueup.local.faults import fault

from .numbered import assert_exact
from .rig import Case, Rig, together
from .watching import tasks_of

pytestmark = pytest.mark.timeout(600)
ERRORS = {
    "throttled": "ECS.AmazonECSException",
    "throttled-parameter": "ECS.InvalidParameterException",
    "throttled-failure": "AmazonECS.Unknown",
    "capacity": "ECS.AmazonECSException",
    "capacity-failure": "AmazonECS.Unknown",
}


def test_a_launch_that_is_refused_for_a_while_is_one_launch(rig: Rig, subtests: pytest.Subtests) -> None:
    assert REFUSALS.keys() == ERRORS.keys()
    cases = [
        Case(name, job, [fault(name, times=3)])
        for name, job in zip(ERRORS, cycle(["rows", "rows-callback"]), strict=False)
    ]
    for case, run in together(rig, cases):
        with subtests.test(case.name, job=case.job):
            assert_exact(rig, run)
            assert [ERRORS[case.name]] * 3 == [error for error, _ in rig.failures(run.run_id)]
            assert {1: ("exit code 0", "done")} == rig.launches(run.run_id)


FUNCTIONS = ("plan", "settle", "accept")
LATE = {name for name, one in vars(errors_of_trueup).items() if isinstance(one, type)}
"""What a call finds whose twin was first."""
ERRORS_OF_FUNCTIONS = {"function-died": "Runtime.ExitError", "function-timed-out": "Sandbox.Timedout"}
FAILURES = {
    "die before they begin": ("function-died", "before"),
    "die after their work was done": ("function-died", "after"),
    "time out before they begin": ("function-timed-out", "before"),
    "time out and go on beside the next call": ("function-timed-out", "meanwhile"),
    "time out after their work was done": ("function-timed-out", "after"),
}


def test_functions_that_fail_are_called_again_and_nothing_is_done_twice(
    rig: Rig, subtests: pytest.Subtests
) -> None:
    cases = [
        Case(name, days=2, faults=[fault(kind, function=one, when=when, times=2) for one in FUNCTIONS])
        for name, (kind, when) in FAILURES.items()
    ]
    for case, run in together(rig, cases):
        with subtests.test(f"functions that {case.name}"):
            assert_exact(rig, run)
            error = ERRORS_OF_FUNCTIONS[FAILURES[case.name][0]]
            errors = [one for one, _ in rig.failures(run.run_id)]
            assert 2 * len(FUNCTIONS) == errors.count(error)
            # Two that go on side by side may find that the other one was first, and are called again.
            assert {error, *(LATE if "beside" in case.name else [])} >= set(errors)
            assert {1: ("exit code 0", "done"), 2: ("exit code 0", "done")} == rig.launches(run.run_id)


def test_two_tasks_that_were_started_for_one_launch_do_its_work_once(
    rig: Rig, subtests: pytest.Subtests
) -> None:
    cases = [
        Case(job, job=job, faults=[fault("answer-lost", call="runTask", times=1)])
        for job in ("rows", "rows-callback")
    ]
    for case, run in together(rig, cases):
        with subtests.test(case.name):
            assert_exact(rig, run)
            tasks = tasks_of(rig.up, run.run_id)
            first = [task for task in tasks if 1 == json.loads(_order(task))["launch"]]
            assert 2 == len(first)
            assert 75 in {task["containers"][0].get("exitCode") for task in first}
            assert "ECS.SdkClientException" in dict(rig.failures(run.run_id))
            assert 1 == next(iter(rig.launches(run.run_id)))


def test_a_launch_number_whose_answer_was_lost_is_left_out(rig: Rig) -> None:
    ((_, run),) = together(rig, [Case(faults=[fault("answer-lost", call="updateItem", times=1)])])
    assert_exact(rig, run)
    assert {2: ("exit code 0", "done")} == rig.launches(run.run_id)
    assert "DynamoDB.SdkClientException" in dict(rig.failures(run.run_id))


def _order(task: dict[str, Any]) -> str:
    (container,) = task["overrides"]["containerOverrides"]
    return next(one["value"] for one in container["environment"] if one["name"] == "TRUEUP_ORDER")
