"""`make layer`: what the functions' runtime on AWS finds, whatever machine built it."""

from __future__ import annotations

import re
import shutil
import subprocess
from email.parser import HeaderParser
from pathlib import Path

import pytest

from trueup.local.packaging import read_template

ROOT = Path(__file__).parents[2]
LIMIT = 250 * 1024 * 1024  # unzipped, with the function's own code


@pytest.mark.timeout(300)
def test_the_layer_has_every_dependency_for_the_runtime(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make
    subprocess.run([make, "layer", f"LAYER={tmp_path}"], cwd=ROOT, check=True, capture_output=True)
    packages = tmp_path / "python"
    locked = dict(
        re.findall(r"^(\S+)==(\S+) \\", (ROOT / "requirements/worker.lock").read_text(), re.MULTILINE)
    )
    found = {}
    for metadata in packages.glob("*.dist-info/METADATA"):
        headers = HeaderParser().parsestr(metadata.read_text())
        found[re.sub(r"[-_.]+", "-", headers["Name"]).lower()] = headers["Version"]
    assert locked == found
    assert (packages / "trueup" / "handling" / "wiring" / "accept.py").is_file()
    assert (packages / "catalogue.json").is_file()
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < LIMIT

    function = read_template(ROOT)["Globals"]["Function"]
    assert ("python3.12", ["x86_64"]) == (function["Runtime"], function["Architectures"])
    built = {path.name.split(".", 1)[1] for path in (packages / "pydantic_core").glob("*.so")}
    assert {"cpython-312-x86_64-linux-gnu.so"} == built
