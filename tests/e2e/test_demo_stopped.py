"""`trueup demo`, stopped on its way: nothing of it is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest


def started_by(folder: Path) -> list[psutil.Process]:
    """The processes that were started for temporary files in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in {process.environ().get("TMPDIR"), process.environ().get("HOME")}:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    trueup = Path(sys.executable).with_name("trueup")
    with subprocess.Popen([str(trueup), "demo"], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("partitions in" in line for line in demo.stdout)
        demo.send_signal(number)
        demo.stdout.read()
    assert code == demo.returncode
    assert [] == started_by(tmp_path)
    assert [] == list(tmp_path.iterdir())
