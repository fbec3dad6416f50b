"""`trueup demo` as a stranger runs it: the whole year, by the state machines, killed on the way."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from trueup.cli import demo as command
from trueup.local.demo import DEADLY, days_before, run_demo
from trueup.local.demo_faults import EVERYTHING
from trueup.local.demo_reconcile import APPROVER, REQUESTER
from trueup.local.faults import Fault
from trueup.local.postgres import postgres
from trueup.model.base import sha256
from trueup.model.reconcile_report import ReconcileReport
from trueup.model.report import Report

from .watching import TRUEUP, begin, nothing_is_left

FLIGHTS = 336_776
FEW_WEEKS = "2013-01-21"
TWO_MONTHS = (sys.executable, "-m", "tests.e2e.two_months")
KINDS = {name for kind in get_args(Fault) for name in get_args(kind.model_fields["fault"].annotation)}


def check(job: dict[str, Any], partitions: int, records: int, more_tasks: int = 0) -> None:
    """Every partition and every record is accounted for, at the price that was promised."""
    assert "SUCCEEDED" == job["status"]
    assert {"planned": partitions, "accepted": partitions} == job["partitions"]
    found = job["records"]
    assert records == found["read"] == found["used"]
    assert 0 == found["skipped"] == found["rejected"] == found["refused"]
    assert found["produced"] == found["written"] + found["unchanged"]
    assert found["replayed"] >= 0
    assert job["tableEqual"] is True
    assert 0 < job["tasks"] <= job["launches"] + more_tasks
    assert job["kills"] < job["tasks"]
    assert 0 < job["transitions"] <= 8 * job["launches"] + 40
    # The run's own execution, its fan-outs, and a child for each slice.
    assert job["executions"] > 2
    page = Path(job["report"])
    assert job["runId"] in page.read_text(encoding="utf-8")
    report = Report.model_validate_json(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert (job["runId"], records, partitions) == (report.run_id, report.records.read, report.partitions)


def check_reconciled(found: dict[str, Any]) -> None:
    """Exactly what was damaged was found, signed for by somebody else, repaired, and seen to be right."""
    assert {"missing": 8, "mismatched": 9, "extra": 8} == found["damaged"] == found["drift"]
    assert 25 == sum(found["drift"].values()) == found["repaired"] == found["verified"]
    assert ("SUCCEEDED", "REPAIRED", True) == (found["status"], found["verdict"], found["tableRestored"])
    assert f"arn:aws:iam::000000000000:user/{APPROVER}" == found["approvedBy"]
    page = Path(found["report"])
    signed = page.with_suffix(".json").read_bytes()
    report = ReconcileReport.model_validate_json(signed)
    assert (found["runId"], REQUESTER, "DRIFT") == (report.run_id, report.requester, report.verdict)
    assert 25 == sum(line.findings for line in report.states if line.state == "CONFIRMED")
    # What lies there is what was signed, byte by byte.
    assert sha256(signed) in page.read_text(encoding="utf-8")


@pytest.mark.timeout(1200)
def test_the_demo_accounts_for_a_year_of_flights(tmp_path: Path) -> None:
    """The example of its help, with the figures as JSON."""
    program, *example = shlex.split(command.EXAMPLE)
    assert "trueup" == program
    demo = [str(TRUEUP), *example, "--json", "--reports", str(tmp_path / "reports")]
    done = subprocess.run(demo, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert "SUCCEEDED" == figures["status"]
    assert 3 == len(figures["next"])
    for job in figures["jobs"].values():
        check(job, partitions=365, records=FLIGHTS)
        assert tmp_path / "reports" == Path(job["report"]).parent
    assert FLIGHTS == figures["jobs"]["flights-rows"]["records"]["produced"]
    check_reconciled(figures["reconcile"])
    assert tmp_path / "reports" == Path(figures["reconcile"]["report"]).parent


@pytest.mark.timeout(300)
def test_whatever_goes_wrong_in_a_few_weeks_every_record_is_right(tmp_path: Path) -> None:
    notes: list[str] = []
    figures = run_demo(seed=7, note=notes.append, reports=tmp_path, end=FEW_WEEKS, faults=EVERYTHING)
    flights = sum(data.count(b"\n") - 1 for _, data in days_before(FEW_WEEKS))
    assert ["flights-summary", "flights-rows"] == list(figures["jobs"]), notes
    assert "SUCCEEDED" == figures["status"], notes
    given = figures["faults"]["faults"]
    assert KINDS == {one["fault"] for one in given}
    assert [] == [one for one in given if not one["struck"]], notes
    for job in figures["jobs"].values():
        # The answer of one RunTask was lost, so that one launch had two tasks.
        check(job, partitions=20, records=flights, more_tasks=1)
    assert flights == figures["jobs"]["flights-rows"]["records"]["produced"]
    check_reconciled(figures["reconcile"])
    deadly = sum(one["struck"] for one in given if one["fault"] in DEADLY)
    assert deadly == sum(job["kills"] for job in figures["jobs"].values())


@pytest.mark.timeout(900)
def test_a_sink_that_is_dead_is_named_with_the_partitions_that_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = tmp_path / "reports"
    monkeypatch.setenv("TMPDIR", str(tmp_path / "left"))
    (tmp_path / "left").mkdir()
    said = []
    with ExitStack() as gone:
        # A server of its own, for the stack ends with its parts.
        dsn = gone.enter_context(postgres())
        monkeypatch.setenv("TRUEUP_POSTGRES_DSN", dsn)
        # What is of interest is over long before two months are.
        demo = gone.enter_context(begin("demo", "--reports", str(reports), program=TWO_MONTHS))
        assert demo.stdout is not None
        for line in demo.stdout:
            said.append(line)
            if "flights-rows" in line and "partitions are planned" in line:
                kill_postgres(dsn)
    text = "".join(said)
    assert 1 == demo.returncode, text
    assert "ABORTED, abort rule consecutiveFailures" in text
    assert "is STUCK: NoProgress" in text
    assert "PostgreSQL did not answer" in text
    assert re.search(r"table equals an independent count .* NO", text)
    pages = sorted(str(page) for page in reports.glob("flights-*.html"))
    assert pages == sorted(line.strip() for line in said if line.endswith(".html\n"))
    assert ["flights-rows", "flights-summary"] == [Path(page).name.partition("-2")[0] for page in pages]
    assert nothing_is_left(tmp_path / "left")


def kill_postgres(dsn: str) -> None:
    """Kill the PostgreSQL of this process that listens in the folder which its DSN names."""
    (server,) = [
        child
        for child in psutil.Process().children(recursive=True)
        if child.name() == "postgres" and any(f"host={word} " in dsn for word in child.cmdline())
    ]
    server.kill()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_demo_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    reports = tmp_path.with_name(f"{tmp_path.name}-reports")
    with begin("demo", "--reports", str(reports)) as demo:
        assert demo.stdout is not None
        assert any("killed launch" in line for line in demo.stdout)
        demo.send_signal(number)
        demo.stdout.read()
    assert code == demo.returncode
    assert nothing_is_left(tmp_path, seconds=20 if number is signal.SIGKILL else 0)
