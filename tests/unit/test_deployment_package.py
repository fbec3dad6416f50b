"""What is deployed: a layer that the functions can live on, and a template whose paths are objects in S3."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
import yaml

from trueup.errors import LocalStackError
from trueup.jobfile import catalogue, read_catalogue
from trueup.local.packaging import compiled, layer, main, package, project, read_template, zipped

ROOT = Path(__file__).parents[2]
JOBS = catalogue(ROOT)
ARTEFACTS = ("CodeUri", "ContentUri", "DefinitionUri")


class Bucket:
    """Takes objects, and says where they are."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> str:
        self.objects[key] = data
        return f"s3://artefacts/{key}"

    def get(self, address: str) -> bytes:
        return self.objects[address.removeprefix("s3://artefacts/")]


def packaged(root: Path, files: Mapping[str, bytes] | None = None) -> tuple[dict[str, Any], Bucket]:
    bucket = Bucket()
    return json.loads(package(root, files or {"python/x.py": b""}, bucket.put)), bucket


def names(data: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(data)).namelist()


def test_every_local_path_of_the_template_becomes_an_object() -> None:
    template, bucket = packaged(ROOT)
    before = read_template(ROOT)["Resources"]
    for name, resource in template["Resources"].items():
        for field in ARTEFACTS:
            if field in resource.get("Properties", {}):
                assert bucket.get(resource["Properties"][field]), (name, field)
                assert not before[name]["Properties"][field].startswith("s3://")
    assert {"Ref": "Table"} == template["Outputs"]["Table"]["Value"]


def test_functions_layer_and_definitions_are_what_the_paths_named() -> None:
    template, bucket = packaged(ROOT)
    found = {name: one["Properties"] for name, one in template["Resources"].items()}
    assert ["app.py"] == names(bucket.get(found["AcceptFunction"]["CodeUri"]))
    assert ["python/x.py"] == names(bucket.get(found["Layer"]["ContentUri"]))
    definition = bucket.get(found["BackfillMachine"]["DefinitionUri"])
    assert (ROOT / "statemachines" / "backfill.asl.yaml").read_bytes() == definition
    assert found["BackfillMachine"]["DefinitionUri"].endswith(".asl.yaml")


def test_the_same_files_have_the_same_key() -> None:
    files = {"a.py": b"1", "b.py": b"2"}
    assert zipped(files) == zipped(dict(reversed(files.items())))
    assert packaged(ROOT)[0] == packaged(ROOT)[0]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    resource = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "lambdas/missing"}}
    (tmp_path / "template.yaml").write_text(yaml.safe_dump({"Resources": {"F": resource}}))
    with pytest.raises(LocalStackError, match="F names lambdas/missing, which is not there"):
        packaged(tmp_path)


def test_reading_the_template_teaches_other_readers_of_yaml_nothing() -> None:
    read_template(ROOT)
    with pytest.raises(yaml.YAMLError, match="could not determine a constructor"):
        yaml.safe_load("a: !Ref b")


def test_the_layer_carries_the_catalogue_of_the_jobs() -> None:
    assert JOBS == read_catalogue(layer(JOBS)["python/catalogue.json"])


def test_the_layer_leaves_out_what_no_function_needs() -> None:
    parts = {part for name in layer(JOBS) for part in Path(name).parts}
    assert {"handling", "ledger", "wiring"} <= parts
    assert not {"local", "cli", "testing", "__pycache__"} & parts


def test_the_local_layer_is_compiled_for_this_interpreter(tmp_path: Path) -> None:
    """Python takes the bytecode as it is, whatever the date of its copy; here it reads no source."""
    files = {"a.py": b"A = 'compiled'", "b/__init__.py": b"", "catalogue.json": b"{}"}
    made = compiled(files)
    assert files == {name: made[name] for name in files}
    bytecode = cache_from_source("a.py")
    assert set(made) - set(files) == {bytecode, cache_from_source("b/__init__.py")}
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / bytecode).write_bytes(made[bytecode])
    (tmp_path / "a.py").write_text("A = 'read again'")
    command = [sys.executable, "-c", "import a; print(a.A)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "compiled"


def test_the_functions_live_on_the_layer_alone(tmp_path: Path) -> None:
    """With the layer in place of the package, every handler finds its code and the catalogue."""
    main([str(tmp_path)])
    code = (
        "import sys, runpy, trueup; from trueup.handling.wiring import planning; "
        "[runpy.run_path(path) for path in sys.argv[1:]]; "
        "print(trueup.__file__, *planning.jobs())"
    )
    handlers = [str(path) for path in sorted((ROOT / "lambdas").glob("*/app.py"))]
    done = subprocess.run(
        [sys.executable, "-c", code, *handlers],
        env={"PYTHONPATH": str(tmp_path / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [str(tmp_path / "python" / "trueup" / "__init__.py"), *JOBS] == done.stdout.split(), done.stderr


@pytest.mark.parametrize("function", ["accept", "ask", "plan", "start"])
def test_what_starts_cold_most_often_imports_neither_reports_nor_the_api_nor_the_worker(
    function: str,
) -> None:
    """As many of `accept` start cold at one moment as tasks end in it; each pays for all that it imports."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); print(*sys.modules)"
    app = str(ROOT / "lambdas" / function / "app.py")
    done = subprocess.run([sys.executable, "-c", code, app], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "trueup.handling" in modules
    assert not modules & {"trueup.reporting", "trueup.handling.api", "trueup.watching", "trueup.worker"}


def test_outside_a_clone_there_is_nothing_to_deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ROOT == project()
    monkeypatch.setattr("trueup.local.packaging.__file__", str(tmp_path / "a/b/c/d/packaging.py"))
    with pytest.raises(LocalStackError, match="There is nothing to deploy here"):
        project()
