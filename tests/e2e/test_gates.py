"""Gates on the joined stack: a second person decides through the signed API, and tokens decide nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from trueup.cli import main
from trueup.local.stack import Stack
from trueup.model.gate import Gate
from trueup.model.states import GateStatus, PartitionStatus, RunStatus

from .numbered import assert_exact, assert_nothing_is_left
from .rig import Begun, Case, Rig
from .watching import tasks_of, wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def as_bob(up: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of the one who may approve."""
    iam = up.client("iam")
    iam.create_user(UserName="bob")
    key = iam.create_access_key(UserName="bob")["AccessKey"]
    for name, value in up.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    monkeypatch.setenv("TRUEUP_API", up.api)
    yield
    iam.delete_access_key(UserName="bob", AccessKeyId=key["AccessKeyId"])
    iam.delete_user(UserName="bob")


def waiting(rig: Rig, job: str = "rows-asks", days: int = 2, **request: Any) -> tuple[Begun, Gate]:
    """A run that waits at its gate, its execution with its token."""
    run = rig.begin(Case(job=job, days=days), **request)
    return run, asked_again(rig, run, None)


def asked_again(rig: Rig, run: Begun, token: str | None) -> Gate:
    """The gate, once its execution waits by another token."""

    def waits() -> Gate | None:
        found = [gate for gate in rig.up.ledger.gates.of(run.run_id) if gate.is_waiting]
        return next((gate for gate in found if gate.token not in (None, token)), None)

    wait_until(waits)
    gate = waits()
    assert gate is not None
    return gate


def say(verb: str, gate: Gate, *more: str) -> None:
    """A word on the command line."""
    assert 0 == main([verb, gate.run_id, gate.name, "--sha", gate.sha256[:8], *more])


def test_approved_by_a_second_person_it_goes_on_and_bare_tokens_let_nothing_be_written(
    rig: Rig, as_bob: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run, gate = waiting(rig)
    assert [] == tasks_of(rig.up, run.run_id)
    rig.up.client("stepfunctions").send_task_success(taskToken=gate.token, output=json.dumps({"do": "work"}))
    again = asked_again(rig, run, gate.token)
    assert (gate.sha256, []) == (again.sha256, tasks_of(rig.up, run.run_id))
    assert 3 == main(["status", run.run_id])
    say("approve", again, "--comment", "fine")
    assert "cannot prevent" in capsys.readouterr().out
    assert_exact(rig, rig.ended(run))
    assert GateStatus.SPENT is rig.up.ledger.gates.get(run.run_id, "apply").status


def test_rejected_it_ends_with_the_reason_and_nothing_written(rig: Rig, as_bob: None) -> None:
    run, gate = waiting(rig)
    say("reject", gate, "--reason", "wrong window")
    found = rig.ended(run)
    assert (RunStatus.CANCELLED, []) == (found.status, tasks_of(rig.up, run.run_id))
    assert found.run is not None
    assert "rejected at gate apply: wrong window" == found.run.reason
    assert_nothing_is_left(rig.up, run.run_id)


def test_a_plan_that_is_changed_between_approval_and_start_stops_the_run(rig: Rig) -> None:
    run, gate = waiting(rig)
    bob = "arn:aws:iam::000000000000:user/bob"
    rig.up.ledger.gates.decide(run.run_id, "apply", GateStatus.APPROVED, who=bob, sha256=gate.sha256)
    s3 = rig.up.client("s3")
    body = s3.get_object(Bucket=rig.up.bucket, Key=gate.key)["Body"].read()
    s3.put_object(Bucket=rig.up.bucket, Key=gate.key, Body=body.replace(b'"records":30', b'"records":3'))
    rig.up.client("stepfunctions").send_task_success(taskToken=gate.token, output="{}")
    found = rig.ended(run)
    assert (RunStatus.FAILED, []) == (found.status, tasks_of(rig.up, run.run_id))
    assert found.run is not None
    assert "It was changed after it was hashed" in (found.run.reason or "")


def test_a_canary_is_applied_and_then_the_rest_of_the_same_run(rig: Rig, as_bob: None) -> None:
    run, gate = waiting(rig, job="rows", days=3, canary=1)
    states = [item.status for item in rig.items(run)]
    assert ("canary", [PartitionStatus.ACCEPTED] + [PartitionStatus.PENDING] * 2) == (
        gate.name,
        sorted(states),
    )
    say("approve", gate)
    assert_exact(rig, rig.ended(run))
