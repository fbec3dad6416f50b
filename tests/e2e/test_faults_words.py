"""Tasks that are awaited by their word, and do not say it: silence is found out, and nobody is believed dead.

All of it waits for heartbeats, so the runs are started together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from trueup.local.faults import fault
from trueup.model.states import PartitionStatus

from .numbered import assert_exact, assert_failed
from .rig import Begun, Case, Rig, harm, together
from .test_faults_tasks import ALL_REPORTED, NEVER_PULLED, POINTS
from .watching import tasks_of

pytestmark = pytest.mark.timeout(900)
SILENCE = "States.Timeout"
ERROR = "TaskEnded"
NOT_PULLED = "CannotPullContainerError"


@dataclass(frozen=True, slots=True)
class Passing:
    """What passes, how audit and history tell of its first launch, and what was heard of the tasks."""

    case: Case
    how: str
    answer: str
    errors: set[str]
    struck: list[tuple[str, ...]] | None = None
    """What befell words, and each answer that they got."""
    taken: int | None = None
    """How many words of success the machine took."""


LATE = 22.0
"""Seconds after which the heart of a task that says nothing more is missed."""
STOPPED = harm(1, "writing", 2, "terminate")
PASSING = {
    "killed": Passing(Case(harms=[harm(1, "writing", 2)]), "exit code 137", "again", {SILENCE}),
    "frozen": Passing(Case(harms=[harm(1, "writing", 2, "freeze")]), SILENCE, "again", {SILENCE}),
    "an image that cannot be pulled": Passing(
        Case(faults=[fault("cannot-pull", launches=[1])]), NOT_PULLED, "again", {SILENCE}
    ),
    # Frozen, so that it cannot hear of it and say a word, however slow this machine is.
    "taken by Spot before it began": Passing(
        Case(faults=[fault("freeze", launches=[1]), fault("interrupt", launches=[1])]),
        "SpotInterruption", "again", {SILENCE},
    ),
    "hangs without progress": Passing(
        Case(harms=[harm(1, "writing", 2, "hang")]), "exit code 70", "again", {ERROR}
    ),
    "asked to stop": Passing(Case(harms=[STOPPED]), "exit code 75", "again", {ERROR}),
    "success lost": Passing(
        Case(faults=[fault("callback-lost", word="Success", times=1)]),
        "exit code 0", "done", {SILENCE}, [("Success", "callback-lost")], 0,
    ),
    "success said twice": Passing(
        Case(faults=[fault("callback-twice", word="Success", times=1)]),
        "exit code 0", "done", set(), [("Success", "callback-twice", "", "TaskTimedOut")], 1,
    ),
    "success late": Passing(
        Case(faults=[fault("callback-late", word="Success", times=1, seconds=LATE)]),
        "exit code 0", "done", {SILENCE}, [("Success", "callback-late", "TaskTimedOut")], 0,
    ),
    "failure lost": Passing(
        Case(harms=[STOPPED], faults=[fault("callback-lost", word="Failure", times=1)]),
        "exit code 75", "again", {SILENCE}, [("Failure", "callback-lost")], 1,
    ),
    "failure said twice": Passing(
        Case(harms=[STOPPED], faults=[fault("callback-twice", word="Failure", times=1)]),
        "exit code 75", "again", {ERROR}, [("Failure", "callback-twice", "", "TaskTimedOut")], 1,
    ),
    "failure late": Passing(
        Case(harms=[STOPPED], faults=[fault("callback-late", word="Failure", times=1, seconds=LATE)]),
        "exit code 75", "again", {SILENCE}, [("Failure", "callback-late", "TaskTimedOut")], 1,
    ),
}  # fmt: skip
# At the last of them all is reported, and the silence costs no launch.
KILLED_AT = ("opened", "taken", "reading", "written", "checkpointed", "finishing", "closing")
PASSING |= {
    f"killed when {point}": Passing(
        Case(harms=[harm(1, point, POINTS[point])]),
        "exit code 137",
        "done" if point in ALL_REPORTED else "again",
        {SILENCE},
    )
    for point in KILLED_AT
}
LASTING = {
    "frozen": (harm("every", "writing", do="freeze"), 2, PartitionStatus.STUCK, "NoProgress", SILENCE),
    "killed": (harm("every", "writing"), 2, PartitionStatus.STUCK, "NoProgress", "exit code 137"),
    "a wrong input": (
        harm("every", "opened", do="leave", code=64), 1, PartitionStatus.FAILED, "BadInput", "exit code 64",
    ),
}  # fmt: skip


NEVER = (None, 2, PartitionStatus.FAILED, "NeverStarted", NOT_PULLED)


def test_silence_is_found_out_and_costs_no_record(rig: Rig, subtests: pytest.Subtests) -> None:
    lasting = [Case(f"always {name}", harms=[one]) for name, (one, *_) in LASTING.items()]
    never = Case("an image that can never be pulled", faults=[NEVER_PULLED])
    passing = [one.case.named(name) for name, one in PASSING.items()]
    cases = [replace(case, job="rows-callback") for case in [*lasting, never, *passing]]
    for case, run in together(rig, cases, at_once=len(cases)):
        with subtests.test(case.name):
            if case.name in PASSING:
                assert_passed(rig, run, PASSING[case.name])
            else:
                assert_lasted(rig, run, *LASTING.get(case.name.removeprefix("always "), NEVER)[1:])


def assert_passed(rig: Rig, run: Begun, expected: Passing) -> None:
    """Exact, and told in audit and history; a word that comes after the end changes nothing."""
    struck = rig.words(run.run_id)
    assert_exact(rig, run)
    launches = list(rig.launches(run.run_id).values())
    assert expected.how in launches[0][0]
    assert expected.answer == launches[0][1]
    assert "done" == launches[-1][1]
    assert expected.errors == {error for error, _ in rig.failures(run.run_id)}
    if expected.struck is not None:
        assert expected.struck == [(one.what, one.fault, *one.answers) for one in struck]
        assert expected.taken == len(taken(rig, run))


def taken(rig: Rig, run: Begun) -> list[dict[str, Any]]:
    """The words of success that the machine took from tasks."""
    told = [
        one["taskSucceededEventDetails"] for one in rig.history(run.run_id) if one["type"] == "TaskSucceeded"
    ]
    return [one for one in told if one["resourceType"] == "ecs"]


def assert_lasted(
    rig: Rig, run: Begun, launches: int, status: PartitionStatus, kind: str, cause: str
) -> None:
    """The partition ended with its cause after so many launches, each found out by its silence."""
    assert_failed(rig, run, {run.window.partitions[0]: (status, kind, cause)})
    told = rig.launches(run.run_id)
    assert launches == len(told)
    assert all(cause in how for how, _ in told.values())
    assert {SILENCE} == {error for error, _ in rig.failures(run.run_id)} - {"SliceFailed", "RunFailed"}


def test_who_is_frozen_is_stopped_and_proved_before_its_slice_goes_on(rig: Rig) -> None:
    ((_, run),) = together(rig, [Case(job="rows-callback", harms=[harm(1, "written", 2, "freeze")])])
    assert_exact(rig, run)
    first, second = sorted(tasks_of(rig.up, run.run_id), key=lambda task: task["createdAt"])
    assert ("UserInitiated", 137) == (first["stopCode"], first["containers"][0]["exitCode"])
    assert first["stoppedReason"].startswith("launch 1 of slice 0 is over")
    assert first["stoppedAt"] <= second["createdAt"]
    assert "stopping" in answers(rig, run)


def answers(rig: Rig, run: Begun) -> list[str]:
    """What `accept` answered, call by call."""
    outputs = [
        json.loads(event["taskSucceededEventDetails"]["output"])
        for event in rig.history(run.run_id)
        if event["type"] == "TaskSucceeded"
    ]
    return [one["Payload"]["answer"] for one in outputs if "answer" in (one.get("Payload") or {})]
