"""The local stack that tests of this folder share: template.yaml's jobs, and those of `jobs/`.

Waits of the machines are a tenth of what they are on AWS; limits and heartbeats are not.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trueup.local.stack import Options, Stack, stack

from .numbered import create_tables
from .rig import Rig
from .watching import JOBS


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """A stack that lives as long as the session."""
    # A checkpoint after each batch, so that tests know where the last one was.
    environment = {"TRUEUP_CHECKPOINT_SECONDS": "0"}
    options = Options(jobs=JOBS, scale=0.1, heartbeat_seconds=20, task_environment=environment)
    with stack(options) as up:
        create_tables(up)
        yield Rig(up)


@pytest.fixture(scope="session")
def up(rig: Rig) -> Stack:
    """The stack."""
    return rig.up


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files of what a test starts."""
    # Not tmp_path: that is too long for PostgreSQL's socket, and closed to the `nobody` that root runs it as.
    folder = Path(tempfile.mkdtemp(prefix="tu-"))
    folder.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
