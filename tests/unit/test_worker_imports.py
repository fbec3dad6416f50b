"""What a worker loads: each module costs its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that are loaded after importing what a task needs, AWS included."""
    code = (
        "import json, sys, trueup.worker.main, trueup.ledger.dynamo, trueup.artifacts.s3\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "name",
    [
        "jsonschema",
        "typer",
        "click",
        "rich",
        "yaml",
        "psycopg",
        "moto",
        "trueup.cli",
        "trueup.local",
        "trueup.testing",
        "trueup.contract",
        "trueup.jobfile",
        "trueup.schemas",
        "trueup.accepting",
    ],
)
def test_a_worker_does_not_load(name: str, loaded: set[str]) -> None:
    assert name not in loaded


def test_a_worker_loads_its_loop(loaded: set[str]) -> None:
    assert {"trueup.worker.loop", "botocore", "pydantic"} <= loaded


def test_the_loop_knows_nothing_of_aws() -> None:
    code = "import sys, trueup.worker.main; print('botocore' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "False" == done.stdout.strip()
