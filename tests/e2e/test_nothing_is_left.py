"""A stack that ends while its tasks are at work leaves neither processes nor files."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .watching import nothing_is_left, started_by

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stack_that_is_ended_at_work_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.e2e.at_work"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as up:
        assert up.stdout is not None
        assert "at work\n" == up.stdout.readline()
        assert 2 <= sum("trueup" in " ".join(one.cmdline()) for one in started_by(folder))
        up.send_signal(number)
    assert -number == up.returncode
    assert nothing_is_left(folder, seconds=30)
