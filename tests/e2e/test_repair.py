"""A repair on the joined stack: found, signed by a second person, done, looked at again, and taken back."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from trueup.artifacts.findings import lines_in, listed
from trueup.artifacts.store import place
from trueup.cli import main
from trueup.local.damage import Damage, damage_summary, differing
from trueup.local.faults import Fault, fault
from trueup.local.flights import days
from trueup.local.stack import Stack
from trueup.local.stores import create_table, put_days
from trueup.local.targets import FLIGHTS_BUCKET
from trueup.model.base import sha256
from trueup.model.gate import Gate
from trueup.model.repair import RepairReport
from trueup.model.states import PartitionStatus, Phase, RunStatus
from trueup.reporting.repairs import Repairs

from .numbered import assert_nothing_is_left
from .watching import ended, start, tasks_of, wait_until

pytestmark = pytest.mark.timeout(600)
TABLE = "summary-to-repair"
FIRST, LAST = date(2013, 3, 1), date(2013, 3, 4)
PARAMS = {"bucket": FLIGHTS_BUCKET, "table": TABLE, "prefix": "2013-03-0"}
WRONG = {"missing": 4, "mismatched": 5, "extra": 3}
ACTIONS = {"insert": 4, "update": 5, "delete": 3}
ANN, BOB = ("--as", "ann"), ("--as", "bob")


@pytest.fixture(scope="module")
def summary(up: Stack) -> Stack:
    """The stack with some days' flights, and a table of its own with their summary as a backfill wrote it."""
    create_table(up.client("dynamodb"), TABLE, ["route", "date"])
    put_days(up.client("s3"), FLIGHTS_BUCKET, ((day, data) for day, data in days() if FIRST <= day < LAST))
    params = {name: PARAMS[name] for name in ("bucket", "table")}
    window = {"from": str(FIRST), "to": str(LAST)}
    run_id = start(up, "flights-summary", params=params, **window)
    assert RunStatus.SUCCEEDED is ended(up, run_id, 300).status
    return up


@pytest.fixture
def wrong(summary: Stack) -> Iterator[Damage]:
    """The same with damage of each class, which is gone afterwards."""
    table = summary.client("dynamodb")
    done = damage_summary(table, TABLE, random.Random(3), **WRONG)
    yield done
    for (route, day), item in done.before.items():
        table.delete_item(TableName=TABLE, Key={"route": {"S": route}, "date": {"S": day}})
        if item is not None:
            table.put_item(TableName=TABLE, Item=item)


@pytest.fixture(autouse=True)
def _two_people(up: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**up.environment(), "TRUEUP_API": up.api}.items():
        monkeypatch.setenv(name, value)


def document(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    """What a command prints as JSON, when it exits with this code."""
    capsys.readouterr()
    assert code == main([*words, "--json"]), capsys.readouterr()
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def asked_for(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """A run that Ann asked for and that waits at its gate: the command says so by its exit code."""
    told = document(capsys, "start", "flights-reconcile", *more, "--wait", "--every", "0.2", *ANN, code=3)
    return str(told["run"]["runId"])


def reconciled(capsys: pytest.CaptureFixture[str]) -> str:
    """A reconciliation of the table that waits for a signature."""
    params = [f"--param={name}={value}" for name, value in PARAMS.items()]
    return asked_for(capsys, *params)


def gate_of(up: Stack, run_id: str) -> Gate:
    (gate,) = up.ledger.gates.of(run_id)
    return gate


def signed(up: Stack, run_id: str) -> None:
    """Bob approves what waits."""
    gate = gate_of(up, run_id)
    assert 0 == main(["approve", run_id, gate.name, "--sha", gate.sha256[:8], *BOB])


def repaired(up: Stack, run_id: str) -> RepairReport:
    """What a repair came to, once its run has ended."""
    run = ended(up, run_id, 300)
    report = Repairs(up.ledger, up.artifacts).of(run)
    assert report is not None
    assert (RunStatus.SUCCEEDED, report.verdict) == (run.status, run.reason), report.reasons
    return report


def lines(up: Stack, report: RepairReport, phase: Phase) -> Iterator[dict[str, Any]]:
    """What tasks stored of a phase."""
    for one in report.lists:
        for there in listed(up.artifacts, one) if one.phase is phase else ():
            yield from lines_in(up.artifacts, phase, there)


def assert_each_once(up: Stack, report: RepairReport, wrong: Damage) -> None:
    """Each damaged item has one outcome and one verification, and the table is as it was before."""
    outcomes = [line for line in lines(up, report, Phase.REPAIR) if "outcome" in line]
    assert sorted(wrong.before) == sorted(tuple(line["key"]) for line in outcomes)
    looks = list(lines(up, report, Phase.VERIFY))
    assert sorted(wrong.before) == sorted(tuple(line["key"]) for line in looks)
    assert {("APPLIED", name): number for name, number in ACTIONS.items()} == _items(report.outcomes)
    assert {("VERIFIED", name): number for name, number in ACTIONS.items()} == _items(report.verified)
    assert [] == differing(up.client("dynamodb"), TABLE, wrong.before)


def _items(found: Any) -> dict[tuple[str, str], int]:
    return {(line.outcome, line.action.value): line.items for line in found}


def test_what_a_second_person_signed_is_repaired_proved_and_taken_back(
    summary: Stack, wrong: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    up, table = summary, summary.client("dynamodb")
    damaged = {key: _now(table, key) for key in wrong.before}
    run_id = reconciled(capsys)
    gate = gate_of(up, run_id)
    assert "repair-and-delete" == gate.name
    assert WRONG == {name: document(capsys, "report", run_id, code=1)["counts"][name] for name in WRONG}
    assert 3 == main(["gates", run_id])
    assert gate.sha256 in capsys.readouterr().out

    # Neither a hash that was not looked at, nor the word of her who asked, lets anything be written.
    assert 2 == main(["approve", run_id, gate.name, "--sha", "0" * 8, *BOB])
    assert 1 == main(["approve", run_id, gate.name, "--sha", gate.sha256[:8], *ANN])
    assert "user/ann asked for run" in capsys.readouterr().err
    assert {"trueup-flights-reconcile-read:1"} == _families(up, run_id)
    assert damaged == {key: _now(table, key) for key in wrong.before}

    signed(up, run_id)
    report = repaired(up, run_id)
    assert ("REPAIRED", "arn:aws:iam::000000000000:user/bob") == (report.verdict, report.approved_by)
    assert gate.sha256 == report.subject_sha256
    assert_each_once(up, report, wrong)
    assert 0 == main(["status", run_id])
    assert {f"trueup-flights-reconcile-{mode}:1" for mode in ("read", "write")} == _families(up, run_id)
    kinds = {
        "plan",
        "report",
        "findings",
        "repair plan",
        "before-images and outcomes",
        "verification",
        "repair",
    }
    assert_the_evidence_is_whole(up, run_id, document(capsys, "evidence", run_id), kinds)

    undo = asked_for(capsys, "--undo", run_id)
    assert ("undo", "undo") == (gate_of(up, undo).name, gate_of(up, undo).kind)
    assert [] == differing(table, TABLE, wrong.before)
    signed(up, undo)
    assert "UNDONE" == repaired(up, undo).verdict
    assert [] == differing(table, TABLE, damaged)
    kinds -= {"report", "findings"}
    assert_the_evidence_is_whole(up, undo, document(capsys, "evidence", undo), kinds)
    for one in (run_id, undo):
        assert_nothing_is_left(up, one)
        assert one not in up.ledger.locks.get("flights-summary").holders


def _now(table: Any, key: tuple[str, ...]) -> dict[str, Any] | None:
    raw = {name: {"S": part} for name, part in zip(("route", "date"), key, strict=True)}
    item: dict[str, Any] | None = table.get_item(TableName=TABLE, Key=raw, ConsistentRead=True).get("Item")
    return item


def _families(up: Stack, run_id: str) -> set[str]:
    return {task["taskDefinitionArn"].rpartition("/")[2] for task in tasks_of(up, run_id)}


def assert_the_evidence_is_whole(up: Stack, run_id: str, found: dict[str, Any], kinds: set[str]) -> None:
    """One prefix holds all that the run left, and the manifest names each object with its hash."""
    manifest, gate = found["manifest"], gate_of(up, run_id)
    assert {} == found["changed"]
    objects = {one["location"]: one for one in manifest["objects"]}
    assert len(manifest["objects"]) == len(objects)
    assert kinds == {one["kind"] for one in objects.values()}
    assert all(location.startswith(f"s3://{up.bucket}/runs/{run_id}/") for location in objects)
    hashes = {location: sha256(up.artifacts.store.get(place(location)[1])) for location in objects}
    assert hashes == {location: one["sha256"] for location, one in objects.items()}
    (signature,) = manifest["gates"]
    assert (gate.sha256, "SPENT") == (signature["subjectSha256"], signature["status"])
    assert ("user/ann", "user/bob") == tuple(
        signature[name].rpartition(":")[2] for name in ("requester", "decidedBy")
    )
    assert {task["taskArn"] for task in tasks_of(up, run_id)} == set(manifest["tasks"])


@pytest.mark.parametrize("checkpoint", [1, 2], ids=["with the intents stored", "with the outcomes stored"])
def test_a_repairing_task_that_is_killed_loses_no_item_and_repeats_none(
    summary: Stack, wrong: Damage, capsys: pytest.CaptureFixture[str], checkpoint: int
) -> None:
    run_id = reconciled(capsys)
    first = summary.ledger.runs.get(run_id).launches + 1
    strike(summary, run_id, first, fault("kill", checkpoint=checkpoint))
    signed(summary, run_id)
    report = repaired(summary, run_id)
    assert ["kill"] == [one.fault for one in summary.faults.strikes(run_id)]
    assert "REPAIRED" == report.verdict, report.reasons
    assert_each_once(summary, report, wrong)


def test_killed_in_the_middle_of_its_writes_it_goes_on_with_the_others(
    summary: Stack, wrong: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = reconciled(capsys)
    first = summary.ledger.runs.get(run_id).launches + 1
    for launch in range(first, first + 3):
        strike(summary, run_id, launch, fault("call-slow", operation="DeleteItem", seconds=600))
    signed(summary, run_id)

    def hanging() -> set[int | None]:
        return {one.subject.launch for one in summary.faults.strikes(run_id)}

    # Two of the airports have items to delete, which come after what is written of these.
    wait_until(lambda: 2 == len(hanging()), 200)
    assert 3 <= len(differing(summary.client("dynamodb"), TABLE, wrong.before)) < len(wrong.before)
    for task in summary.ledger.tasks.of(run_id):
        if task.launch in hanging():
            assert summary.ecs.harm(task.task, "kill")
    report = repaired(summary, run_id)
    assert "REPAIRED" == report.verdict, report.reasons
    assert_each_once(summary, report, wrong)


def test_a_delete_whose_answer_is_lost_is_told_as_ours(
    summary: Stack, wrong: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = reconciled(capsys)
    first = summary.ledger.runs.get(run_id).launches + 1
    for launch in range(first, first + 3):
        strike(summary, run_id, launch, fault("call-answer-lost", operation="DeleteItem", times=1))
    signed(summary, run_id)
    report = repaired(summary, run_id)
    assert "call-answer-lost" in {one.fault for one in summary.faults.strikes(run_id)}
    assert "REPAIRED" == report.verdict, report.reasons
    assert_each_once(summary, report, wrong)


@pytest.mark.parametrize(
    ("checkpoint", "seen"),
    [(1, "UNTOUCHED"), (2, "VERIFIED")],
    ids=["with the intents stored", "with the outcomes stored"],
)
def test_what_a_repair_touched_that_failed_in_part_is_looked_at_before_its_run_fails(
    summary: Stack, wrong: Damage, capsys: pytest.CaptureFixture[str], checkpoint: int, seen: str
) -> None:
    run_id = reconciled(capsys)
    first = summary.ledger.runs.get(run_id).launches + 1
    # Its input is wrong, says the first of three tasks; the first of those that look again is killed at it.
    strike(summary, run_id, first, fault("exit", checkpoint=checkpoint, code=64))
    strike(summary, run_id, first + 3, fault("kill", checkpoint=1))
    signed(summary, run_id)
    run = ended(summary, run_id, 300)
    assert ["exit", "kill"] == sorted(one.fault for one in summary.faults.strikes(run_id))
    report = Repairs(summary.ledger, summary.artifacts).of(run)
    assert report is not None
    assert (RunStatus.FAILED, "UNREPAIRED") == (run.status, report.verdict)
    assert str(run.reason).startswith("1 of 3 partitions did not make it in the phase repair; UNREPAIRED: ")

    items = summary.ledger.partitions.all(run_id, Phase.REPAIR)
    (failed,) = [one.partition_id for one in items if one.status is PartitionStatus.FAILED]
    looks = [line for line in lines(summary, report, Phase.VERIFY) if not line.get("again")]
    assert sorted(wrong.before) == sorted(tuple(line["key"]) for line in looks)
    mine = [one for one in report.lists if one.partition_id == failed]
    of_it = {
        tuple(line["key"]) for line in lines(summary, report.model_copy(update={"lists": mine}), Phase.VERIFY)
    }
    assert {seen} == {line["verification"] for line in looks if tuple(line["key"]) in of_it}
    assert {"VERIFIED"} == {line["verification"] for line in looks if tuple(line["key"]) not in of_it}
    left = of_it if seen == "UNTOUCHED" else set()
    assert left == set(differing(summary.client("dynamodb"), TABLE, wrong.before))

    found = document(capsys, "evidence", run_id)
    assert {} == found["changed"]
    assert {"verification", "before-images and outcomes"} <= {
        one["kind"] for one in found["manifest"]["objects"]
    }
    assert 1 == main(["status", run_id])
    assert 1 == main(["report", run_id])
    assert run_id not in summary.ledger.locks.get("flights-summary").holders


def strike(up: Stack, run_id: str, launch: int, one: Fault) -> None:
    """Give a fault to one launch of a run."""
    up.faults.add(one.model_copy(update={"run": run_id, "launches": (launch,)}))
