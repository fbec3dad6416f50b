"""What jobs, their data and other people say is shown, and does nothing to the terminal that shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console

from trueup import Reject, Skip
from trueup.cli import main
from trueup.cli.watching import fitting

from .api_server import be
from .handler_world import World
from .test_cli_api import Stage, answering, started
from .test_cli_api import stage as stage
from .test_cli_gates import run_id as run_id
from .test_cli_gates import world as world
from .test_cli_watching import task, whole
from .worker_cases import Numbers

# Clears the screen, writes over the line before, and turns the direction of what follows.
BAD = "\x1b[2Jwell\r\x9b1A\u202e\x07"
SEEN = r"\x1b[2Jwell\r\x9b1A\u202e\x07"


def speaking(self: Numbers, number: int) -> Any:
    """Some are left out, some are bad, and one day fails, each with words that no terminal should have."""
    if number % 10 == 3:
        raise ValueError(BAD)
    return {5: Reject(BAD), 6: Skip(BAD)}.get(number % 10, number)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command shows; lines and tabs are all that is not seen."""
    assert main(list(arguments)) in (0, 1, 3, 4)
    told = capsys.readouterr()
    assert [] == [one for one in told.out + told.err if not one.isprintable() and one not in "\n\t"]
    return told.out


COMMANDS = {
    "status": ["status", "RUN"],
    "watched": ["status", "RUN", "--watch"],
    "partitions": ["partitions", "RUN"],
    "report": ["report", "RUN"],
    "rejects": ["rejects", "RUN"],
    "audit": ["audit", "RUN"],
}


@pytest.mark.parametrize("kind", ["text", "json"])
def test_words_of_jobs_and_people_move_no_cursor(
    stage: Stage, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    stage.world.job.transform = speaking  # type: ignore[assignment, method-assign]
    run_id = started(capsys, "--comment", BAD)
    stage.finish()
    said = {}
    for name, words in COMMANDS.items():
        options = ["--json"] if kind == "json" else []
        said[name] = shown(capsys, *(run_id if word == "RUN" else word for word in words), *options)
    if kind == "text":
        assert all(SEEN in said[name] for name in ("partitions", "report", "audit"))
        return
    assert BAD in {one["why"] for one in json.loads(said["audit"])["entries"]}
    errors = [one["error"] for one in json.loads(said["partitions"])["partitions"]]
    assert any(BAD in error["message"] for error in errors if error)


def test_lines_of_a_log_move_no_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"at": "2013-01-01T00:00:00Z", "message": f"a\t{BAD}"}
    with answering(monkeypatch, (200, {"partitionId": "a", "task": "arn", "lines": [line], "next": None})):
        assert f"2013-01-01 00:00:00 a\t{SEEN}\n" == shown(capsys, "logs", "RUN", "--partition", "a")


def test_words_at_a_gate_move_no_cursor(
    world: World, run_id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "AKIABOB")
    gate = world.ledger.gates.get(run_id, "apply")
    shown(capsys, "reject", run_id, "apply", "--sha", gate.sha256[:8], "--reason", BAD)
    for words in (["gates", run_id], ["audit", run_id]):
        assert SEEN in shown(capsys, *words)


def test_a_run_that_is_watched_on_a_terminal_moves_no_cursor() -> None:
    detail = whole(task(1, waiting=BAD), waitsFor=BAD)
    fitted = fitting(detail, Console(width=200, height=40))
    assert [f"waits for {SEEN}"] == [line for line in fitted if line.startswith("waits for")]
    assert fitted[-1].endswith(f"waits: {SEEN}")
