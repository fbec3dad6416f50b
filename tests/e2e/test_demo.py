"""`trueup demo --json` as a stranger runs it: the whole year, killed on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FLIGHTS = 336_776


@pytest.mark.timeout(900)
def test_the_demo_accounts_for_a_year_of_flights() -> None:
    trueup = Path(sys.executable).with_name("trueup")
    done = subprocess.run([str(trueup), "demo", "--json"], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert "SUCCEEDED" == figures["status"]
    for job in figures["jobs"].values():
        assert {"planned": 365, "accepted": 365} == job["partitions"]
        assert FLIGHTS == job["records"]["read"] == job["records"]["used"]
        assert job["records"]["produced"] == job["records"]["written"] + job["records"]["unchanged"]
        assert job["tableEqual"] is True
    assert FLIGHTS == figures["jobs"]["flights-rows"]["records"]["produced"]
