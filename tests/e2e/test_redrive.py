"""Executions that somebody redrives by hand: of a closed run, and beside what serves one that is open.

Its children find the gate, or tasks that find the gate; nothing is worked twice, and no figure moves.
"""

from __future__ import annotations

from typing import Any

import pytest

from trueup.model.states import RunStatus

from .numbered import assert_exact, assert_nothing_is_left, assert_nothing_reaches_back
from .rig import Begun, Case, Rig, harm
from .watching import tasks_of, wait_until

pytestmark = pytest.mark.timeout(600)
HANGS = [harm(launch, "checkpointed", 2, "hang") for launch in (1, 2)]
CASES = {job: Case(job=job, harms=HANGS, days=2) for job in ("rows", "rows-callback")}


def at_work(rig: Rig, case: Case) -> Begun:
    """A run whose two tasks have each saved twenty records and go no further."""
    begun = rig.begin(case)
    wait_until(lambda: [20, 20] == [item.counters.read for item in rig.items(begun)])
    return begun


def stop(rig: Rig, arn: str) -> None:
    """Stop an execution by hand."""
    rig.up.client("stepfunctions").stop_execution(executionArn=arn, error="Tester", cause="by hand")


def redrive(rig: Rig, arn: str) -> str:
    """Redrive an execution by hand, and give the state that it ends in."""
    client = rig.up.client("stepfunctions")
    client.redrive_execution(executionArn=arn)

    def status() -> str:
        return str(client.describe_execution(executionArn=arn)["status"])

    wait_until(lambda: status() != "RUNNING", 200)
    assert 1 == client.describe_execution(executionArn=arn)["redriveCount"]
    return status()


def fan_out(rig: Rig, run: Begun) -> str:
    """The execution that works the run's first dispatch."""
    (machine,) = [
        arn for arn in rig.up.deployed.of_type("AWS::StepFunctions::StateMachine") if "partitions" in arn
    ]
    return f"{machine.replace(':stateMachine:', ':execution:')}:{run.run_id}-1-apply-1"


def figures(rig: Rig, run: Begun) -> Any:
    """All that the ledger counts of a run, and what its tasks did to the target."""
    ledger = rig.up.ledger
    items = [(item.partition_id, item.status, item.cursor, item.counters) for item in rig.items(run)]
    return items, ledger.verdicts.counts(run.run_id).by_state, ledger.runs.get(run.run_id).launches


@pytest.mark.parametrize("job", CASES)
def test_a_redrive_of_a_closed_run_changes_nothing(rig: Rig, job: str) -> None:
    begun = at_work(rig, CASES[job])
    stop(rig, rig.execution(begun.run_id))
    wait_until(lambda: rig.up.ledger.runs.get(begun.run_id).status is not RunStatus.RUNNING)
    wait_until(lambda: rig.up.invoke("sweep", {}) and not list(rig.up.ledger.tasks.of(begun.run_id)))
    run = rig.ended(begun)
    assert RunStatus.ABORTED is run.status
    before = figures(rig, run)
    assert "FAILED" == redrive(rig, rig.execution(run.run_id))
    assert "SUCCEEDED" == redrive(rig, fan_out(rig, run))  # its children found the gate, or their tasks did
    assert before == figures(rig, run)
    assert RunStatus.ABORTED is rig.up.ledger.runs.get(run.run_id).status
    assert_nothing_reaches_back(rig.up, run)
    assert_nothing_is_left(rig.up, run.run_id)


@pytest.mark.parametrize("job", CASES)
def test_a_redrive_of_a_fan_out_whose_run_went_on_does_no_work_twice(rig: Rig, job: str) -> None:
    begun = at_work(rig, CASES[job])
    stop(rig, fan_out(rig, begun))
    wait_until(lambda: rig.up.ledger.runs.get(begun.run_id).launches > 2)  # the next dispatch is at work
    redrive(rig, fan_out(rig, begun))
    assert_exact(rig, rig.ended(begun))
    assert 4 <= len(tasks_of(rig.up, begun.run_id))
