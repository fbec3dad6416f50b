"""The program from its first moment on."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from trueup import program
from trueup.cli import exits


def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *others: Any) -> Any:
        if name == "trueup.cli":
            raise KeyboardInterrupt
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert exits.INTERRUPTED == program.INTERRUPTED == program.main()
    assert "Interrupted.\n" == capsys.readouterr().err


def test_nothing_slow_is_imported_before_ctrl_c_is_heard() -> None:
    code = (
        "import sys, trueup.program; print(sorted({'pydantic', 'typer', 'trueup.jobs'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout


def test_what_job_code_imports_is_there_and_nothing_else() -> None:
    import trueup
    from trueup import jobs

    assert [getattr(jobs, name) for name in trueup.__all__] == [
        getattr(trueup, name) for name in trueup.__all__
    ]
    with pytest.raises(AttributeError, match="no attribute 'Backfil'"):
        _ = trueup.Backfil
