"""A reconciliation on the local stack: the summary of some days' flights, damaged, against the flights."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trueup.artifacts.findings import lines_in, listed
from trueup.cli import main
from trueup.local.flights import days
from trueup.local.stack import Stack
from trueup.local.stores import put_days
from trueup.local.targets import FLIGHTS_BUCKET, SUMMARY_TABLE
from trueup.model.base import sha256
from trueup.model.gate import Gate
from trueup.model.ledger import Run
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.states import RUN_ENDS, GateStatus, Phase, RunStatus
from trueup.reporting import Reports

from .watching import ended, start, tasks_of, wait_until

pytestmark = pytest.mark.timeout(600)
PARAMS = {"bucket": FLIGHTS_BUCKET, "table": SUMMARY_TABLE}
FIRST, LAST = date(2013, 2, 1), date(2013, 2, 4)
PREFIX = "2013-02-0"


@pytest.fixture(scope="module")
def summary(up: Stack) -> Stack:
    """The stack with some days of flights in S3, and their summary as a backfill wrote it."""
    put_days(up.client("s3"), FLIGHTS_BUCKET, ((day, data) for day, data in days() if FIRST <= day < LAST))
    window = {"from": str(FIRST), "to": str(LAST)}
    assert RunStatus.SUCCEEDED is worked(up, job="flights-summary", params=PARAMS, **window).status
    return up


def worked(up: Stack, **request: Any) -> Run:
    """Start a run, and give it as it ended."""
    made = up.invoke("start", {"requestId": f"e2e/{uuid.uuid4()}", "requester": "ann", **request})
    return ended(up, made["runId"], 300)


def reconciled(up: Stack, **params: Any) -> tuple[Run, ReconcileReport]:
    """A reconciliation that ended, and its report; where it asks for a signature it was turned down."""
    asked = {"job": "flights-reconcile", "params": {**PARAMS, "prefix": PREFIX, **params}}
    run_id = start(up, **asked)
    wait_until(lambda: up.ledger.runs.get(run_id).status in RUN_ENDS or waiting(up, run_id), 300)
    for gate in waiting(up, run_id):
        word = {"who": "arn:aws:iam::000000000000:user/bob", "sha256": gate.sha256}
        rejected = up.ledger.gates.decide(run_id, gate.name, GateStatus.REJECTED, **word)
        if rejected.token:  # else whoever would wait by one is told that it need not
            up.client("stepfunctions").send_task_success(taskToken=rejected.token, output="{}")
    run = ended(up, run_id, 300)
    report = Reports(up.ledger, up.artifacts).comparison(run_id)
    assert report is not None
    return run, report


def waiting(up: Stack, run_id: str) -> list[Gate]:
    """The gates at which a run waits."""
    return [gate for gate in up.ledger.gates.of(run_id) if gate.is_waiting]


def items(up: Stack) -> Iterator[dict[str, Any]]:
    """The table's items."""
    for page in up.client("dynamodb").get_paginator("scan").paginate(TableName=SUMMARY_TABLE):
        yield from page["Items"]


def key_of(item: dict[str, Any]) -> dict[str, Any]:
    """An item's key."""
    return {name: item[name] for name in ("route", "date")}


def told(up: Stack, report: ReconcileReport, phase: Phase) -> dict[tuple[str, ...], str]:
    """What is said of each key, read from the objects that the report names."""
    lines = [
        line
        for one in report.lists
        if one.phase is phase
        for there in listed(up.artifacts, one)
        for line in lines_in(up.artifacts, phase, there)
    ]
    assert len(lines) == len({tuple(line["key"]) for line in lines})
    return {tuple(line["key"]): line["kind"] for line in lines}


def test_what_a_backfill_wrote_is_clean(summary: Stack) -> None:
    run, report = reconciled(summary)
    assert (RunStatus.SUCCEEDED, "CLEAN") == (run.status, run.reason)
    assert ("CLEAN", 3, 0) == (report.verdict, report.compared, report.confirmed)
    assert len(list(items(summary))) == report.counts["matched"] > 50


def test_damage_is_counted_exactly_by_class_and_confirmed(summary: Stack) -> None:
    table = summary.client("dynamodb")
    before = sorted(items(summary), key=lambda item: (item["route"]["S"], item["date"]["S"]))
    wrong: dict[tuple[str, ...], str] = {}
    for number, item in enumerate(before[::7]):
        key = (item["route"]["S"], item["date"]["S"])
        if number % 2:
            table.delete_item(TableName=SUMMARY_TABLE, Key=key_of(item))
            wrong[key] = "MISSING"
        else:
            table.put_item(TableName=SUMMARY_TABLE, Item={**item, "miles": {"N": "1"}})
            wrong[key] = "MISMATCHED"
    for route in ("AAA#XX", "ZZZ#XX"):
        table.put_item(TableName=SUMMARY_TABLE, Item={"route": {"S": route}, "date": {"S": "2013-02-01"}})
        wrong[route, "2013-02-01"] = "EXTRA"

    run, report = reconciled(summary)

    for item in before:
        table.put_item(TableName=SUMMARY_TABLE, Item=item)
    for route in ("AAA#XX", "ZZZ#XX"):
        table.delete_item(TableName=SUMMARY_TABLE, Key={"route": {"S": route}, "date": {"S": "2013-02-01"}})
    assert (RunStatus.CANCELLED, "DRIFT") == (run.status, report.verdict)
    classes = Counter(wrong.values())
    counted = {kind: report.counts[kind.lower()] for kind in ("MISSING", "EXTRA", "MISMATCHED")}
    assert classes == counted
    assert {("CONFIRMED", kind): number for kind, number in classes.items()} == {
        (line.state, line.kind): line.findings for line in report.states
    }
    assert wrong == told(summary, report, Phase.COMPARE) == told(summary, report, Phase.CONFIRM)
    assert [("miles", "other value", classes["MISMATCHED"])] == [
        (line.name, line.reason, line.findings) for line in report.fields
    ]
    families = {task["taskDefinitionArn"].rpartition("/")[2] for task in tasks_of(summary, run.run_id)}
    assert {"trueup-flights-reconcile-read:1"} == families


def test_its_evidence_is_downloaded_through_the_api_and_is_what_was_hashed(
    summary: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    extra = {"route": {"S": "ZZZ#XX"}, "date": {"S": "2013-02-01"}}
    summary.client("dynamodb").put_item(TableName=SUMMARY_TABLE, Item=extra)
    run, report = reconciled(summary)
    summary.client("dynamodb").delete_item(TableName=SUMMARY_TABLE, Key=extra)
    for name, value in {**summary.environment(), "TRUEUP_API": summary.api}.items():
        monkeypatch.setenv(name, value)
    assert 0 == main(["evidence", run.run_id, "--to", str(tmp_path / "copy"), "--json"])
    found = json.loads(capsys.readouterr().out)
    lines = (tmp_path / "copy" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert {name: sha256((tmp_path / "copy" / name).read_bytes()) for name in sums} == sums
    named = {one["sha256"] for one in found["manifest"]["objects"]}
    assert {*named, found["sha256"]} == set(sums.values())
    assert {one.sha256 for one in report.lists} < named
    assert 1 == main(["report", run.run_id])
    # An empty object has no range, on any store: the plan of a partition without items is one.
    summary.artifacts.store.put(f"runs/{run.run_id}/empty", b"")
    assert b"" == summary.artifacts.store.get_range(f"runs/{run.run_id}/empty", 0, 100)


def test_a_table_that_is_not_there_is_an_error_that_names_it(summary: Stack) -> None:
    run, report = reconciled(summary, table="no-such-table")
    assert (RunStatus.FAILED, "ERROR") == (run.status, report.verdict)
    assert "DynamoDB table no-such-table, the target, cannot be read" in report.reasons[0]
