"""What a worker loads: each module costs its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

WORKER = "import json, sys, trueup.worker.main, trueup.ledger.dynamo, trueup.artifacts.s3"
BUILT_MODELS = """
from pydantic import BaseModel
waiting = [BaseModel]
built = []
for model in waiting:
    waiting += model.__subclasses__()
    built += [model.__name__] if model.__dict__.get("__pydantic_complete__") else []
"""


def answer(code: str) -> Any:
    """What a fresh interpreter prints for the code, read as JSON."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that are loaded after importing what a task needs, AWS included."""
    return set(answer(f"{WORKER}\nprint(json.dumps(sorted(sys.modules)))"))


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
    assert False is answer(
        "import json, sys, trueup.worker.main; print(json.dumps('botocore' in sys.modules))"
    )


def test_loading_a_worker_builds_no_model() -> None:
    # An instance as a default builds its model at once; `default_factory` waits until one is needed.
    assert [] == answer(f"{WORKER}\n{BUILT_MODELS}\nprint(json.dumps(built))")


def test_a_model_in_use_counts_as_built() -> None:
    use = "from trueup.model.counters import Counters; Counters()"
    assert ["Counters"] == answer(f"{WORKER}\n{use}\n{BUILT_MODELS}\nprint(json.dumps(built))")
