"""Where the streams of a command lead nowhere: it is told as that, and never by a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .cli_cases import CODE, JOB, contents


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with one good job, and the working directory."""
    monkeypatch.chdir(tmp_path)
    home = Path("containers/flights")
    home.mkdir(parents=True)
    (home / "job.yaml").write_text(JOB, encoding="utf-8")
    (home / "flights.py").write_text(CODE, encoding="utf-8")
    return tmp_path


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command", [["validate"], ["validate", "--json"], ["--version"], ["validate", "--help"]]
)
def test_output_that_cannot_be_written_is_told_as_that(project, command):
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "trueup.cli", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert 1 == done.returncode
    assert done.stderr.startswith("What was to be written cannot be: No space left on device. ")
    assert 1 == len(done.stderr.splitlines())


def test_a_reader_that_has_left_is_no_fault(project):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "trueup.cli", "validate"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writing)
    assert (1, "") == (done.returncode, done.stderr)


STREAMS = {"input": 0, "output": 1, "errors": 2}


def without(streams, *arguments):
    """How a command exits and what it says, with streams closed as a shell closes them (`>&-`)."""
    closed = " ".join(f"{STREAMS[one]}>&-" for one in streams)
    command = f'exec "$0" -m trueup.cli "$@" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["new my-orders", "validate --json", "--version", "validate --help"])
def test_closed_output_is_told_before_anything_is_done(project, command):
    before = contents(project)
    code, told, errors = without(["output"], *command.split())
    assert (2, "", before) == (code, told, contents(project))
    assert errors.startswith("Standard output is closed: nothing was done. Send it to a file or ")
    assert 1 == len(errors.splitlines())
    assert (2, "", "") == without(STREAMS, *command.split())


def test_with_input_and_errors_closed_a_command_works_and_errors_are_no_output(project):
    code, told, _ = without(["input", "errors"], "validate")
    assert (0, "containers/flights/job.yaml: flights-summary is valid\n") == (code, told)
    assert (2, "", "") == without(["input", "errors"], "validate", "nowhere")
