"""Tasks that are awaited by their word, and do not say it: silence is found out, and nobody is believed dead.

All of it waits for heartbeats, so the runs are started together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from trueup.local.ecs import Fate
from trueup.model.states import PartitionStatus

from .numbered import assert_exact, assert_failed
from .rig import Begun, Case, Rig, harm, together
from .test_faults_tasks import NEVER_PULLED
from .trouble import Trouble, Word
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
    said: list[tuple[Any, ...]] | None = None


def words(*words: Word) -> Trouble:
    """A run whose tasks' words have this trouble."""
    return Trouble(words=words)


STOPPED = harm(1, "writing", 2, "terminate")
PASSING = {
    "killed": Passing(Case(harms=[harm(1, "writing", 2)]), "exit code 137", "again", {SILENCE}),
    "frozen": Passing(Case(harms=[harm(1, "writing", 2, "freeze")]), SILENCE, "again", {SILENCE}),
    "an image that cannot be pulled": Passing(
        Case(trouble=Trouble(fates={1: Fate(cannot_pull=True)})), NOT_PULLED, "again", {SILENCE}
    ),
    "taken by Spot before it began": Passing(
        Case(trouble=Trouble(fates={1: Fate(interrupt=0.0)})), "SpotInterruption", "again", {SILENCE}
    ),
    "hangs without progress": Passing(
        Case(harms=[harm(1, "writing", 2, "hang")]), "exit code 70", "again", {ERROR}
    ),
    "asked to stop": Passing(Case(harms=[STOPPED]), "exit code 75", "again", {ERROR}),
    "success lost": Passing(
        Case(trouble=words(Word("Success", "lost"))), "exit code 0", "done", {SILENCE}, [("Success", "lost")]
    ),
    "success said twice": Passing(
        Case(trouble=words(Word("Success", "twice"))),
        "exit code 0", "done", set(), [("Success", "twice", "", "TaskTimedOut")],
    ),
    "success late": Passing(
        Case(trouble=words(Word("Success", "late"))),
        "exit code 0", "done", {SILENCE}, [("Success", "late"), ("Success", "delivered", "TaskTimedOut")],
    ),
    "failure lost": Passing(
        Case(harms=[STOPPED], trouble=words(Word("Failure", "lost"))),
        "exit code 75", "again", {SILENCE}, [("Failure", "lost"), ("Success", "once", "")],
    ),
    "failure said twice": Passing(
        Case(harms=[STOPPED], trouble=words(Word("Failure", "twice"))),
        "exit code 75", "again", {ERROR}, [("Failure", "twice", "", "TaskTimedOut"), ("Success", "once", "")],
    ),
    "failure late": Passing(
        Case(harms=[STOPPED], trouble=words(Word("Failure", "late"))),
        "exit code 75", "again", {SILENCE},
        [("Failure", "late"), ("Failure", "delivered", "TaskTimedOut"), ("Success", "once", "")],
    ),
}  # fmt: skip
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
    never = Case("an image that can never be pulled", trouble=NEVER_PULLED)
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
    rig.words.deliver(run.run_id)
    assert_exact(rig, run)
    launches = list(rig.launches(run.run_id).values())
    assert expected.how in launches[0][0]
    assert expected.answer == launches[0][1]
    assert "done" == launches[-1][1]
    assert expected.errors == {error for error, _ in rig.failures(run.run_id)}
    if expected.said is not None:
        said = [(one.kind, one.how, *one.answer) for one in rig.words.said(run.run_id)]
        assert sorted(expected.said) == sorted(said)


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
