"""What pages show can be typed as it stands, and every block of theirs is held to the code by some test."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
import typer.main

from trueup.cli import app
from trueup.jobfile import loads
from trueup.jobs import Reconcile
from trueup.local import ecs as servers
from trueup.local import stack as stacks
from trueup.local.ecs import Ecs
from trueup.local.faults import Faults, served
from trueup.local.stepfunctions.__main__ import parse
from trueup.model.job import JobFile
from trueup.model.reconcile_job import Reconciliation

ROOT = Path(__file__).parents[2]
TESTS = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:\.venv/bin/)?trueup [a-z][^`\n]*)`")
COMMAND = re.compile(r"(?:^\$ |^|=\$\()(?:\.venv/bin/)?(trueup [a-z].*?)(?: \| .*\)| > \S+)?$", re.MULTILINE)
OF_ECS = (ROOT / "docs" / "ecs.md").read_text(encoding="utf-8")
GROUP: Any = typer.main.get_command(app)

# Blocks that are neither of a sample, nor the tutorial, nor commands of ours: which test holds them.
HELD = {
    ("README.md", "make demo"): "test_docs.py",
    ("CONTRIBUTING.md", "make test"): "test_docs.py",
    ("contract.md", "{"): "test_contract_docs.py",
    ("deploying.md", "docker build"): "test_deploying_docs.py",
    ("ecs.md", "from pathlib import Path"): "test_docs_shown.py",
    ("faults.md", "curl $TRUEUP_FAULTS"): "test_docs_shown.py",
    ("faults.md", "from trueup.local.faults import"): "test_docs_shown.py",
    ("job-file.md", "name: flights-summary"): "test_jobfile.py",
    ("job-file.md", "verify:"): "test_docs_shown.py",
    ("local-stack.md", "export AWS_ENDPOINT_URL="): "test_one_address.py",
    ("local-stack.md", "aws lambda invoke"): "test_docs.py",
    ("reconciling.md", "class FlightsReconcile(Reconcile):"): "test_docs_shown.py",
    ("reconciling.md", "repair:"): "test_docs_shown.py",
    ("state-machines.md", ".venv/bin/python -m pytest tests/workflows/test_mocked.py"): "test_mocked.py",
    ("local-stack.md", "SUCCEEDED {"): "test_own_machines.py",
    ("stepfunctions.md", ".venv/bin/python -m trueup.local.stepfunctions"): "test_docs_shown.py",
    ("stepfunctions.md", "{"): "test_docs_shown.py",
}
# For machines that are not here, and what was seen once.
ELSEWHERE = {
    ("deploying.md", "make layer"): "needs an account of AWS; tests/e2e/test_layer.py makes the layer",
    ("metrics.md", "fields @timestamp"): "a query of CloudWatch Logs Insights",
    ("reconciling.md", "of 300,000 rows"): "figures of the run whose command stands above",
    ("state-machines.md", "docker run"): "needs Docker; .github/workflows/ci.yml runs it",
}


def blocks() -> Iterator[tuple[str, str, str]]:
    """Page, language and text of each block."""
    for page in PAGES:
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            yield page.name, language, text


def block(page: str, begin: str) -> str:
    """The one block of a page that begins like that."""
    (found,) = [text for name, _, text in blocks() if name == page and text.startswith(begin)]
    return found


def typed() -> set[tuple[str, str]]:
    """The page and each command line of ours in a block."""
    lines = [(page, COMMAND.findall(text.replace("\\\n", " "))) for page, _, text in blocks()]
    return {(page, line) for page, found in lines for line in found}


def said() -> set[tuple[str, str]]:
    """The page and each command of ours in a sentence, often without all that a command line needs."""
    prose = [(page.name, BLOCK.sub("", page.read_text(encoding="utf-8"))) for page in PAGES]
    return {(page, line) for page, text in prose for line in INLINE.findall(text)}


@pytest.mark.parametrize(("page", "line"), sorted(typed()))
def test_a_command_line_of_a_page_is_taken(page: str, line: str) -> None:
    _, name, *words = shlex.split(line)
    assert GROUP.commands[name].make_context(name, words)


@pytest.mark.parametrize(("page", "line"), sorted(said()))
def test_a_sentence_names_commands_and_options_that_there_are(page: str, line: str) -> None:
    _, name, *words = shlex.split(line)
    there = {option for one in GROUP.commands[name].params for option in one.opts}
    assert {word for word in words if word.startswith("-")} <= there


def test_commands_are_found() -> None:
    assert ("README.md", "trueup up --flights") in typed()
    assert ("tutorial.md", 'trueup status "$RUN" --watch') in typed()
    assert ("reconciling.md", "trueup new cases-in-dynamodb --kind reconcile") in typed()
    assert {("errors.md", "trueup status RUN --watch"), ("CHANGELOG.md", "trueup start --undo RUN")} <= said()


def test_every_block_of_every_page_is_held_by_a_test() -> None:
    left = []
    for page, _, text in blocks():
        known = text.startswith("# samples/") or page == "tutorial.md" or ". ./stack.env" in text
        listed = [key for key in HELD | ELSEWHERE if key[0] == page and text.startswith(key[1])]
        if not (known or listed or COMMAND.match(text)):
            left.append((page, text))
    assert [] == left


@pytest.mark.parametrize(("page", "begin"), [*HELD, *ELSEWHERE])
def test_the_list_of_blocks_names_blocks_and_tests_that_there_are(page: str, begin: str) -> None:
    assert block(page, begin)
    held = HELD.get((page, begin))
    assert held is None or list(TESTS.rglob(held))


# The blocks that nothing else runs


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_faults_are_given_and_taken_back_as_the_page_says() -> None:
    given, more, none = block("faults.md", "curl $TRUEUP_FAULTS").splitlines()
    with served() as faults:
        told = [curl(line, faults.address)["faults"] for line in (given, more, given, none)]
    assert [[], 1, 1, []] == [told[0], len(told[1]), len(told[2]), told[3]]
    assert ("kill", 0) == (told[2][0]["fault"], told[2][0]["struck"])


def curl(line: str, address: str) -> Any:
    """What a line of the page prints, typed into a shell that has the stack's lines."""
    environment = {**os.environ, "TRUEUP_FAULTS": address, "no_proxy": "127.0.0.1"}
    command = ["/bin/sh", "-c", line.replace("curl ", "curl --silent --fail ", 1)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_the_python_of_the_page_of_faults_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    up = create_autospec(stacks.Stack, instance=True)
    up.faults, up.ecs = create_autospec(Faults, instance=True), create_autospec(Ecs, instance=True)
    options: list[stacks.Options] = []

    @contextmanager
    def started(given: stacks.Options) -> Iterator[Any]:
        options.append(given)
        yield up

    monkeypatch.setattr(stacks, "stack", started)
    text = block("faults.md", "from trueup.local.faults import")
    exec(compile(ast.parse(text), "docs/faults.md", "exec"), {"arn": "arn"})  # noqa: S102 - our own page
    assert [("kill", "mine")] == [(one.fault, one.job) for one in options[0].faults.faults]
    assert "throttled" == up.faults.add.call_args.args[0].fault
    up.ecs.harm.assert_called_once_with("arn", "kill")


def test_the_local_ecs_takes_the_options_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    @contextmanager
    def served(options: servers.Options) -> Iterator[None]:
        given.append(options)
        yield

    monkeypatch.setattr(servers, "serve", served)
    exec(compile(ast.parse(block("ecs.md", "from pathlib")), "docs/ecs.md", "exec"), {})  # noqa: S102 - our own page
    (options,) = given
    assert (20, 0.5, ["run"]) == (options.cold_start, options.unseen, image_of(options).argv(None, ["run"]))
    told = re.findall(r"^\| `(\w+)` \| .*: ([0-9.,]+)(?:, on AWS .*)? \|$", OF_ECS, re.MULTILINE)
    unless_given = servers.Options(images=options.images)
    assert {name: float(value.replace(",", "")) for name, value in told} == {
        field.name: getattr(unless_given, field.name)
        for field in fields(unless_given)
        if field.type == "float"
    }


def image_of(options: servers.Options) -> servers.Image:
    """The one that the page names."""
    return asyncio.run(options.images.pull("counter"))


def test_a_job_file_takes_the_repair_of_the_page() -> None:
    sample = (ROOT / "samples" / "reconcile" / "job.yaml").read_text(encoding="utf-8")
    job = loads(sample.partition("\nrepair:")[0] + "\n" + block("reconciling.md", "repair:"))
    assert isinstance(job, Reconciliation)
    assert job.repair is not None
    assert ("asked", 0.5, 20) == (job.repair.deletes, job.repair.breaker.share, job.repair.breaker.sample)


def test_a_job_file_takes_the_verification_of_the_page() -> None:
    sample = (ROOT / "samples" / "docs" / "orders.yaml").read_text(encoding="utf-8")
    region = "parameters: {type: object, properties: {region: {type: string}}}\n"
    job = loads(f"{sample}\n{region}{block('job-file.md', 'verify:')}")
    assert isinstance(job, JobFile)
    assert job.verify is not None
    assert {("since", "from"), ("region", "region")} == set(job.verify.placeholders())


def test_the_hooks_of_the_page_are_those_that_there_are() -> None:
    (shown,) = ast.parse(block("reconciling.md", "class FlightsReconcile(Reconcile):")).body
    assert isinstance(shown, ast.ClassDef)
    methods = [one for one in shown.body if isinstance(one, ast.FunctionDef)]
    hooks = {one.name: [arg.arg for arg in one.args.args] for one in methods}
    assert {"normalise", "fold", "repair_one"} == hooks.keys()
    for name, arguments in hooks.items():
        assert arguments == list(inspect.signature(getattr(Reconcile, name)).parameters), name


def test_the_local_step_functions_takes_the_options_of_its_page() -> None:
    first, *_ = block("stepfunctions.md", ".venv/bin/python -m trueup.local.stepfunctions").splitlines()
    options = parse(shlex.split(first)[3:])
    assert {"dynamodb", "*"} == set(options.endpoints)


def test_the_mock_configuration_of_the_page_is_the_one_of_the_sample() -> None:
    assert block("stepfunctions.md", "{") == (ROOT / "samples" / "machines" / "mocks.json").read_text()
