"""The tutorial, done as it stands: each of its files written, each of its commands typed, in its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from .following import BLOCK, follower

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.mark.timeout(400)
def test_whoever_follows_the_tutorial_has_a_job_of_their_own(tmp_path: Path) -> None:
    with follower(tmp_path, ROOT) as somebody:
        somebody.follow(PAGE)
    report = (tmp_path / "rain" / "report.html").read_text(encoding="utf-8")
    assert "the rain is not a number" in report
    # The page shows nothing that is not written, typed or printed.
    assert {"sh", "text", "python", "yaml"} == {language for language, _ in BLOCK.findall(PAGE)}
