"""What others take to compare the same 1,000,000 rows: reladiff's hashdiff, and datacompy over Parquet files.

They are installed in an environment of their own, and each comparison runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.figures import ROOT, Figure, rounded
from bench.reconcile import PLANTED, ROWS, Taken, make_tables
from trueup.local.postgres import postgres

PYTHON = ROOT / ".venv-reladiff" / "bin" / "python"


def measure(rows: int = ROWS, rounds: int = 3) -> Iterator[Figure]:
    """Four figures: our seconds beside those of both, and our memory beside that of both."""
    if not PYTHON.exists():
        raise RuntimeError(f"{PYTHON} is not there: `make bench` makes it")
    with postgres() as dsn, tempfile.TemporaryDirectory() as folder:
        make_tables(dsn, rows)
        _by_others("frames", dsn, folder)
        taken = Taken(dsn, folder)
        for _ in range(rounds):
            taken.once("tables")
            for name in ("reladiff", "datacompy"):
                taken.add(name, _found(name, dsn, folder))
    yield from _figures(taken.seconds(), "s", "")
    yield from _figures(taken.peaks(), "MiB", "memory ")


def _figures(values: dict[str, float], unit: str, kind: str) -> Iterator[Figure]:
    for name, how in (
        ("reladiff", "reladiff's hashdiff of the same tables, on two threads"),
        ("datacompy", "datacompy's PolarsCompare of the same rows in two Parquet files"),
    ):
        yield Figure(
            f"reconcile {kind}beside {name}", rounded(values["tables"]), unit, how, rounded(values[name])
        )


def _found(name: str, dsn: str, folder: str) -> dict[str, float]:
    answer: dict[str, float] = _by_others(name, dsn, folder)
    if answer["found"] != PLANTED:
        raise RuntimeError(f"{name} found {answer['found']} differences, and {PLANTED} were planted")
    return answer


def _by_others(what: str, dsn: str, folder: str) -> Any:
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("other_diffs.py"), what, dsn, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
