"""`trueup demo` as a stranger runs it: the whole year, by the state machines, killed on the way."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from trueup.local.demo import DEADLY, days_before, run_demo
from trueup.local.demo_faults import EVERYTHING
from trueup.local.faults import Fault

from .watching import TRUEUP, begin, nothing_is_left

FLIGHTS = 336_776
FEW_WEEKS = "2013-01-21"
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


@pytest.mark.timeout(1200)
def test_the_demo_accounts_for_a_year_of_flights() -> None:
    done = subprocess.run([str(TRUEUP), "demo", "--json"], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert "SUCCEEDED" == figures["status"]
    for job in figures["jobs"].values():
        check(job, partitions=365, records=FLIGHTS)
        assert job["runId"]
    assert FLIGHTS == figures["jobs"]["flights-rows"]["records"]["produced"]


@pytest.mark.timeout(300)
def test_whatever_goes_wrong_in_a_few_weeks_every_record_is_right() -> None:
    notes: list[str] = []
    figures = run_demo(seed=7, note=notes.append, end=FEW_WEEKS, faults=EVERYTHING)
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
    deadly = sum(one["struck"] for one in given if one["fault"] in DEADLY)
    assert deadly == sum(job["kills"] for job in figures["jobs"].values())


@pytest.mark.timeout(900)
def test_a_sink_that_is_dead_is_named_with_the_partitions_that_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with begin("demo") as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if "flights-rows" in line and "partitions are planned" in line:
                kill_postgres(demo.pid)
    text = "".join(said)
    assert 1 == demo.returncode, text
    assert "ABORTED, abort rule consecutiveFailures" in text
    assert "is STUCK: NoProgress" in text
    assert "PostgreSQL did not answer" in text
    assert "NO" in said[-2]
    assert nothing_is_left(tmp_path)


def kill_postgres(parent: int) -> None:
    """Kill the PostgreSQL that a process started."""
    (server,) = [
        child
        for child in psutil.Process(parent).children(recursive=True)
        if child.name() == "postgres" and child.parent().name() != "postgres"
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
    with begin("demo") as demo:
        assert demo.stdout is not None
        assert any("killed launch" in line for line in demo.stdout)
        demo.send_signal(number)
        demo.stdout.read()
    assert code == demo.returncode
    assert nothing_is_left(tmp_path, seconds=20 if number is signal.SIGKILL else 0)
