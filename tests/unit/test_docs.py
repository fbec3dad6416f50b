"""What the pages show is what runs: every snippet is a part of a sample, and the samples are tested."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from trueup.cli import app, main
from trueup.jobfile import catalogue, load
from trueup.loading import load_class
from trueup.requests import check_request
from trueup.testing import LocalRun

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"```(?:python|yaml)\n# (samples/\S+)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
HEADER = "year,month,day,carrier,flight,origin,sched_dep_time,dep_delay\n"


def snippets() -> list[tuple[str, str, str]]:
    found = []
    for page in PAGES:
        found += [(page.name, file, text) for file, text in SNIPPET.findall(page.read_text())]
    return found


@pytest.mark.parametrize(("page", "file", "text"), snippets(), ids=lambda value: str(value)[:30])
def test_a_snippet_is_a_part_of_its_sample(page: str, file: str, text: str) -> None:
    assert text in (ROOT / file).read_text(), f"{page} shows what is not in {file}"


def test_the_readme_shows_code_by_line_20() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()

    assert "```python" in lines[:20]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_request_that_the_page_of_the_local_stack_shows_is_one() -> None:
    page = (ROOT / "docs" / "local-stack.md").read_text()
    shown = json.loads(page.partition("--payload '")[2].partition("'")[0])
    job, request, _ = check_request(shown, catalogue(ROOT))
    assert ("flights-summary", "first") == (job.name, request.request_id)


def test_the_commands_of_the_readme_for_a_job_of_ones_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (ROOT / "README.md").read_text().partition("## Write one of your own\n")[2]
    commands = section.split("```")[1].replace("\\\n", " ").strip().splitlines()
    monkeypatch.chdir(tmp_path)

    assert 3 == len(commands)
    for command in commands:
        program, *arguments = command.split()
        assert ".venv/bin/trueup" == program
        assert 0 == main(arguments), command


def texts() -> Iterator[tuple[str, str]]:
    """Everything that people may read, with the path: pages, sources, templates and what is deployed."""
    kinds = {".md", ".py", ".txt", ".yaml", ".json", ".toml"}
    folders = ("containers", "docs", "lambdas", "samples", "src", "statemachines")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    for path in [*files, *ROOT.glob("*.md"), *ROOT.glob("*.yaml"), ROOT / "Makefile"]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def named(pattern: str) -> dict[str, set[str]]:
    """What the pattern finds in all texts, each with the files that it is in."""
    found: dict[str, set[str]] = {}
    for path, text in texts():
        for name in re.findall(pattern, text, re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


def test_every_command_that_a_text_names_is_there() -> None:
    commands = {command.name for command in app.registered_commands}
    said = named(r"(?:`|bin/|\(BIN\)/|^\$ )trueup ([a-z][a-z-]*)")

    assert {} == {name: files for name, files in said.items() if name not in commands}
    assert {"demo", "estimate", "new", "validate"} <= set(said)


def test_every_module_that_a_text_says_to_run_can_be_run() -> None:
    said = named(r"python -m (trueup[a-z_.]*[a-z])")

    assert {} == {name: files for name, files in said.items() if not runs_as_a_program(name)}
    assert "trueup.worker" in said


def runs_as_a_program(module: str) -> bool:
    """Whether `python -m` does something with a module, or with a package."""
    found = find_spec(module)
    if found is None or found.submodule_search_locations is not None:
        return found is not None and find_spec(f"{module}.__main__") is not None
    return found.origin is not None and '__name__ == "__main__"' in Path(found.origin).read_text()


def test_every_target_of_make_that_a_text_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = named(r"(?:`|^)(?:[A-Z]+=\d+ )?make ([a-z]+)(?:`|$)")

    assert {} == {name: files for name, files in said.items() if name not in targets}
    assert {"demo", "test", "bench"} <= set(said)


def test_the_test_of_the_tutorial_reaches_no_stack_that_the_shell_names(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    files = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", page, re.DOTALL)
    readings = re.findall(r"^cat > (readings/\S+) <<END\n(.*?)^END$", page, re.DOTALL | re.MULTILINE)
    assert 3 == len(readings)
    for name, text in [*files, *readings]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    # Nothing answers there: whatever moto does not take fails.
    stack = dict.fromkeys(("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        env={**os.environ, **stack},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flights").mkdir()
    days = {"2013-01-01": ["UA,1545,EWR,515,2", "AA,1,JFK,600,NA"], "2013-01-02": ["B6,2,JFK,700,-4"]}
    for day, rows in days.items():
        year, month, date = (str(int(part)) for part in day.split("-"))
        lines = "".join(f"{year},{month},{date},{row}\n" for row in rows)
        (tmp_path / "flights" / f"{day}.csv").write_text(HEADER + lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_naive_script_of_the_readme_runs(flights: Path) -> None:
    script = ROOT / "samples" / "readme" / "naive.py"
    done = subprocess.run(
        [sys.executable, str(script), "2013-01-01", "2013-01-03"], capture_output=True, text=True, check=True
    )

    assert ["put 2013-01-01 UA 1545 2", "put 2013-01-02 B6 2 -4"] == done.stdout.splitlines()


@mock_aws
def test_the_job_of_the_readme_accounts_for_every_flight(
    flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    dynamodb = boto3.client("dynamodb")
    dynamodb.create_table(
        TableName="delays",
        KeySchema=[
            {"AttributeName": "day", "KeyType": "HASH"},
            {"AttributeName": "flight", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("day", "flight")],
        BillingMode="PAY_PER_REQUEST",
    )
    job = load(ROOT / "samples" / "readme" / "job.yaml")
    job_class = load_class(job, ROOT / "samples" / "readme")

    run = LocalRun(job_class, job, start="2013-01-01", end="2013-01-03", params={"table": "delays"})
    run.run()

    assert 2 == run.accepted == run.planned
    assert (3, 2, 1, 2) == (run.records.read, run.records.used, run.records.skipped, run.records.written)
    stored = {
        item["flight"]["S"]: int(item["delay"]["N"]) for item in dynamodb.scan(TableName="delays")["Items"]
    }
    assert {"UA1545 EWR 515": 2, "B62 JFK 700": -4} == stored


def test_the_tests_of_the_page_on_writing_jobs_pass() -> None:
    folder = ROOT / "samples" / "docs"
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "2 passed" in done.stdout
