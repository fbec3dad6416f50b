"""Tasks that die, hang or leave, and are awaited by their exit: what became of it, and where it can be seen.

More seeds: `SEEDS=200 pytest tests/e2e/test_faults_tasks.py`.
"""

from __future__ import annotations

import os
import random

import pytest

from trueup.local.faults import fault
from trueup.model.states import PartitionStatus, RunStatus

from .numbered import assert_exact, assert_failed
from .rig import Case, Rig, harm, together

SEEDS = int(os.environ.get("SEEDS", "10"))
pytestmark = pytest.mark.timeout(600)

# Every point that a task passes, and how often a first one passes it for certain.
POINTS = {
    "opened": 1, "taken": 1, "reading": 1, "writing": 3, "written": 3, "checkpointed": 3, "finishing": 1,
    "closing": 1, "left": 1,
}  # fmt: skip
ALL_REPORTED = ("closing", "left")
LATER = [
    ("checkpointed", 1), ("checkpointed", 2), ("checkpointed", 4), ("closing",), ("left",),
    ("reading", 1, "terminate"), ("writing", 2, "terminate"),
]  # fmt: skip
NEVER_PULLED = fault("cannot-pull")


def killed(seed: int) -> Case:
    """A first launch that is killed at one point, or before it has begun, and some later ones."""
    rng = random.Random(seed)
    point = [*POINTS, "begun"][seed % (len(POINTS) + 1)]
    harms = [] if point == "begun" else [harm(1, point, rng.randint(1, POINTS[point]))]
    # Whoever dies again without progress is STUCK, so that later ones die where they made some, or are asked.
    harms += [harm(launch, *rng.choice(LATER)) for launch in (2, 3, 4) if rng.random() < 0.5]
    faults = [fault("kill", launches=[1])] if point == "begun" else []
    return Case(f"seed {seed}: {point}", faults=faults, harms=harms, days=3)


def test_killed_at_any_point_a_run_ends_as_if_nothing_had_happened(
    rig: Rig, subtests: pytest.Subtests
) -> None:
    for case, run in together(rig, map(killed, range(SEEDS))):
        with subtests.test(case.name):
            assert_exact(rig, run)
            how, answer = rig.launches(run.run_id)[1]
            assert "exit code 137" in how
            assert ("done" if case.name.endswith(ALL_REPORTED) else "again") == answer
            causes = [cause for error, cause in rig.failures(run.run_id) if error == "States.TaskFailed"]
            assert any('"ExitCode":137' in cause for cause in causes)


PASSING = {
    "a bug that passes": (Case(harms=[harm(1, "opened", do="fail")]), "exit code 70"),
    "asked to stop": (Case(harms=[harm(1, "writing", 2, "terminate")]), "exit code 75"),
    "interrupted without end": (
        Case(harms=[harm(launch, "opened", do="leave", code=75) for launch in range(1, 5)]),
        "exit code 75",
    ),
    "taken by Spot": (Case(faults=[fault("interrupt", launches=[1])]), "stop code SpotInterruption"),
    "an image that cannot be pulled": (
        Case(faults=[fault("cannot-pull", launches=[1])]),
        "CannotPullContainerError",
    ),
    "hangs without progress": (Case(harms=[harm(1, "writing", 2, "hang")]), "exit code 70"),
}


def test_what_passes_costs_launches_and_nothing_else(rig: Rig, subtests: pytest.Subtests) -> None:
    for case, run in together(rig, (case.named(name) for name, (case, _) in PASSING.items())):
        with subtests.test(case.name):
            assert_exact(rig, run)
            *earlier, (last_how, last_answer) = rig.launches(run.run_id).values()
            assert earlier
            for how, answer in earlier:
                assert PASSING[case.name][1] in how
                assert "again" == answer
            assert ("exit code 0", "done") == (last_how, last_answer)
            assert {"States.TaskFailed"} == {error for error, _ in rig.failures(run.run_id)}


LASTING = {
    "a wrong input": (harm("every", "opened", do="leave", code=64), 1, "BadInput", "exit code 64"),
    "a bug before any take": (harm("every", "opened", do="fail"), 2, "NeverStarted", "exit code 70"),
    "a bug after the take": (harm("every", "reading", do="leave", code=70), 2, "NoProgress", "exit code 70"),
    "killed without progress": (harm("every", "written"), 2, "NoProgress", "exit code 137"),
    "hangs without progress": (harm("every", "writing", do="hang"), 2, "NoProgress", "exit code 70"),
}


def test_what_lasts_ends_the_partition_with_its_cause(rig: Rig, subtests: pytest.Subtests) -> None:
    cases = [Case(name, harms=[one]) for name, (one, *_) in LASTING.items()]
    for case, run in together(
        rig, [*cases, Case("an image that can never be pulled", faults=[NEVER_PULLED])]
    ):
        _, launches, kind, cause = LASTING.get(
            case.name, (None, 2, "NeverStarted", "CannotPullContainerError")
        )
        with subtests.test(case.name):
            status = PartitionStatus.STUCK if kind == "NoProgress" else PartitionStatus.FAILED
            assert_failed(rig, run, {run.window.partitions[0]: (status, kind, cause)})
            told = rig.launches(run.run_id)
            assert launches == len(told)
            assert all(cause in how for how, _ in told.values())
            assert "failed" == told[launches][1]
            assert "States.TaskFailed" in dict(rig.failures(run.run_id))


def test_a_wrong_input_fails_its_slice_alone(rig: Rig) -> None:
    case = Case(harms=[harm(1, "opened", do="leave", code=64)], days=2)
    ((_, run),) = together(rig, [case])
    assert RunStatus.FAILED is run.status
    items = rig.items(run)
    assert [PartitionStatus.ACCEPTED, PartitionStatus.FAILED] == sorted(item.status for item in items)
    assert {"failed", "done"} == {answer for _, answer in rig.launches(run.run_id).values()}
