"""Executions recorded on AWS agree with ours, but for those that the page names. Needs the recordings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RECORDED = Path(os.environ.get("TRUEUP_RECORDED", ROOT.parent / "shared" / "recorded" / "executions.jsonl"))
PAGE = (ROOT / "docs" / "local-stack.md").read_text()


@pytest.mark.skipif(
    not RECORDED.exists(), reason=f"the recordings are not part of the repository: {RECORDED}"
)
def test_all_recordings_agree_but_for_those_that_the_page_names() -> None:
    ran = subprocess.run(
        [sys.executable, str(HERE / "compare_recorded.py")],
        env={**os.environ, "TRUEUP_RECORDED": str(RECORDED)},
        capture_output=True,
        text=True,
        check=False,
    )
    differ = set(re.findall(r"^differs: \S*?([^/]+): \d+$", ran.stdout, re.MULTILINE))
    told = PAGE.partition("## Compared with executions recorded on AWS")[2]
    assert set(re.findall(r"^\| `(test_\S+)` \|", told, re.MULTILINE)) == differ
    agree = re.search(r"(\d+ of \d+) agree", ran.stdout)
    assert agree is not None, ran.stdout + ran.stderr
    assert f"\n{agree[1]} agree;" in told
