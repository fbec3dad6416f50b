"""Where the demo's reports go: what cannot be kept is said at once, or loses no figures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trueup.cli import main
from trueup.cli.demo import _show_what_is_next
from trueup.local import demo
from trueup.local.demo_reports import make_folder


@pytest.fixture(autouse=True)
def _nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: object) -> None:
        pytest.fail("the stack was started")

    monkeypatch.setattr(demo, "stack", started)
    monkeypatch.setattr("trueup.cli.demo.leave_on_sigterm", lambda: None)


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 2 == main(["demo", "--reports", "/proc"])
    told = capsys.readouterr().err
    assert "Nothing can be written to /proc" in told
    assert "Name a folder for the reports" in told


def test_a_folder_that_cannot_be_made_is_told_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert 2 == main(["demo", "--reports", str(tmp_path / "file" / "reports")])
    assert "cannot be made" in capsys.readouterr().err


def test_the_probe_leaves_nothing(tmp_path: Path) -> None:
    make_folder(tmp_path / "reports")
    assert [] == list((tmp_path / "reports").iterdir())


def test_a_report_that_cannot_be_kept_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = SimpleNamespace(model_dump_json=lambda indent: "{}")
    kept = SimpleNamespace(of=lambda run_id: report, page_of=lambda run_id: "<html>")
    monkeypatch.setattr(demo, "Reports", lambda *stores: kept)
    up = cast(Any, SimpleNamespace(ledger=None, artifacts=None))
    notes: list[str] = []
    gone, there = (
        demo._Demo(up, notes.append, folder, demo.END, cast(Any, None))._keep_report("run-1")
        for folder in (tmp_path / "gone", tmp_path)
    )
    assert (None, str(tmp_path / "run-1.html")) == (gone, there)
    assert [f"run-1: its report could not be kept in {tmp_path / 'gone'}: No such file or directory"] == notes


@pytest.mark.parametrize("report", [None, "/reports/run-1.html"])
def test_only_reports_that_were_kept_are_named(
    capsys: pytest.CaptureFixture[str], report: str | None
) -> None:
    _show_what_is_next({"next": ["trueup up"], "jobs": {"rows": {"report": report}}, "reconcile": None})
    said = capsys.readouterr().out
    assert ("pages for a browser" in said) == bool(report)
    assert "None" not in said
