"""The commands that speak to the API: what they print, how they exit, and that each example works."""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import stamina

from trueup import Reject
from trueup.cli import COMMANDS, main, reference
from trueup.cli.output import duration, program
from trueup.model.states import RunStatus

from .api_cases import api_of
from .api_server import be, serving
from .handler_fakes import Execution
from .handler_world import World
from .worker_cases import Numbers, job_file, job_of

SECTIONS: dict[str, Any] = {
    "name": "numbers",
    "description": "Numbers, by day.",
    "partitions": {"by": "date"},
    "errors": {"rejects": 1},
    "parameters": {
        "type": "object",
        "properties": {
            "depth": {"type": "integer", "default": 1},
            "bucket": {"type": "string"},
            "table": {"type": "string"},
        },
    },
}
DAYS = ["--from", "2013-01-01", "--to", "2013-01-08"]


def rejecting(self: Numbers, number: int) -> Any:
    """Each day has one record that cannot be used."""
    return Reject("five") if number == 5 else number


class Stage:
    """A world, its API behind a socket, and an execution that goes on a little with each call."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.arrows = 4
        self._one_at_a_time = threading.Lock()

    def play(self) -> None:
        """A few arrows of each execution that runs."""
        with self._one_at_a_time:
            for execution in list(self.world.steps.executions.values()):
                for _ in range(self.arrows):
                    self._round(execution)

    def _round(self, execution: Execution) -> None:
        self.world.step(execution)
        for child in list(execution.children):
            self.world.step_child(child)
            if child.task is not None:
                child.task.step()
                if child.task.worker.heart is not None and child.task.ended is None:
                    child.task.worker.heart.beat()
        self.world.clock.pass_(0.5)

    def finish(self) -> str:
        """Play the only run to its end, and give its id."""
        (execution,) = self.world.steps.executions.values()
        self.world.play(execution)
        return str(execution.data["runId"])


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stage]:
    """What commands find when they look at TRUEUP_API, as ann."""
    here = Stage(World(job_of(transform=rejecting), job_file(**SECTIONS)))
    with serving(api_of(here.world), here.play) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        be(monkeypatch, "AKIAANN")
        yield here


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Iterator[list[Any]]:
    """An address that answers calls one after the other with these, and what it was asked.

    An answer is a status with a document or bytes; None shuts the connection without one.
    """
    asked: list[Any] = []
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(json.loads(body or b"null"))
            answer = next(left)
            if answer is None:
                return
            status, document = answer
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *said: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("TRUEUP_API", f"http://127.0.0.1:{server.server_address[1]}")
    be(monkeypatch, "AKIAANN")
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints, if it exits as it should."""
    assert code == main(list(arguments)), capsys.readouterr()
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The one document that a command prints."""
    (line,) = told(capsys, *arguments, "--json", code=code).splitlines()
    return json.loads(line)


def started(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """The id of a run over a week."""
    return str(as_json(capsys, "start", "numbers", *DAYS, *more)["runId"])


def test_a_run_is_started_and_who_started_it_is_who_signed(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "AKIABOB")
    out = told(capsys, "start", "numbers", *DAYS, "--param", "depth=3", "--comment", "the fives")
    run_id = out.splitlines()[0]
    assert f"Follow it with: {program()} status {run_id} --watch" in out
    run = stage.world.run(run_id)
    assert ("arn:aws:iam::123456789012:user/bob", {"depth": 3}) == (run.requester, run.params)
    assert "the fives" == next(stage.world.ledger.audit.of(run_id)).why


def test_each_start_is_a_run_of_its_own_unless_it_has_the_same_request_id(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    same = {started(capsys, "--request-id", "r-1") for _ in range(2)}
    assert (1, 1) == (len(same), len(stage.world.steps.executions))
    stage.finish()
    assert started(capsys) not in same


@pytest.mark.parametrize("arguments", [["--wait"], ["--wait", "--json"]])
def test_waiting_shows_progress_and_exits_as_the_run_ends(
    stage: Stage, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    out = told(capsys, "start", "numbers", *DAYS, "--every", "0", *arguments)
    if "--json" in arguments:
        assert "SUCCEEDED" == json.loads(out)["run"]["status"]
        return
    said = out.splitlines()
    assert "SUCCEEDED: 7 of 7 partitions" == said[-1]
    assert any(re.fullmatch(r"RUNNING: [1-6] of 7 partitions(, about .* left)?", line) for line in said)


def test_a_run_that_fails_exits_with_1(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    def transform(self: Numbers, number: int) -> Any:
        return Reject("bad")

    stage.world.job.transform = transform  # type: ignore[assignment, method-assign]
    told(capsys, "start", "numbers", *DAYS, "--every", "0", "--wait", code=1)
    (run,) = as_json(capsys, "status")["runs"]
    assert "FAILED" == run["status"]
    out = told(capsys, "status", run["runId"], code=1)
    assert "FAILED (7 of 7 partitions did not make it)" in out
    rejected = as_json(capsys, "partitions", run["runId"], "--state", "rejected")["partitions"]
    assert 7 == len(rejected)


@pytest.mark.parametrize(("goal", "code"), [(RunStatus.PAUSED, 3), (RunStatus.CANCELLED, 4)])
def test_a_run_that_waits_for_a_person_exits_with_3_and_a_cancelled_one_with_4(
    stage: Stage, capsys: pytest.CaptureFixture[str], goal: RunStatus, code: int
) -> None:
    run_id = started(capsys)
    stage.world.ledger.runs.stop(run_id, goal, who="ann", why="lunch")
    out = told(capsys, "status", run_id, "--watch", "--every", "0", code=code)
    assert out.splitlines()[-1].startswith(goal.value)


def test_status_says_how_far_a_run_is_and_what_its_tasks_do(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = started(capsys)
    for _ in range(20):
        out = told(capsys, "status", run_id)
        if "slice 0 launch 1: date=" in out:
            break
    assert "numbers, 2013-01-01 to 2013-01-08 (UTC), phase apply, asked by user/ann" in out
    assert re.search(r"partitions \d of 7 \(\d+%\), work \d+%, [\d,]+ records a second", out)
    assert "time left not known yet (measuring: " in out
    assert re.search(r"dollars 0.\d{4} of 0.\d{4} estimated", out)


def test_partitions_rejects_and_the_trail_are_listed(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = started(capsys)
    stage.finish()
    assert 7 == told(capsys, "partitions", run_id).count("ACCEPTED")
    assert 2 == told(capsys, "partitions", run_id, "--limit", "2").count("ACCEPTED")
    lines = told(capsys, "rejects", run_id, "--partition", "date=2013-01-05").splitlines()
    assert [{"partition": "date=2013-01-05", "rejected": 5, "reason": "five"}] == [
        json.loads(one) for one in lines
    ]
    assert 7 == len(as_json(capsys, "rejects", run_id)["rejects"])
    trail = as_json(capsys, "audit", run_id)["entries"]
    assert {"start", "launch-ended", "succeeded"} <= {entry["verb"] for entry in trail}
    assert "user/ann" in told(capsys, "audit", run_id)


def test_a_reject_with_a_broken_byte_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    line = {"partitionId": "date=2013-01-05", "reject": {"rejected": "caf\udce9", "reason": "é"}}
    with answering(monkeypatch, (200, {"rejects": [line], "next": None})):
        assert 0 == main(["rejects", "run-1"])
    expected = r'{"partition": "date=2013-01-05", "rejected": "caf\udce9", "reason": "é"}'
    assert expected == capfdbinary.readouterr().out.decode().strip()


def test_the_log_of_a_partitions_task_is_printed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = started(capsys)
    stage.finish()
    lines = told(capsys, "logs", run_id, "--partition", "date=2013-01-05").splitlines()
    assert ["began", "ended"] == [line.rpartition(" ")[2] for line in lines]
    assert lines[0].startswith("2026-01-01 00:00:00 numbers-write/job/")
    assert 2 == main(["logs", run_id, "--partition", "date=2014-01-05"])
    assert "No task worked date=2014-01-05" in capsys.readouterr().err


def test_a_report_is_shown_once_the_run_has_ended(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stage.arrows = 1
    run_id = started(capsys)
    assert 4 == main(["report", run_id])
    assert f"Run {run_id} is RUNNING: its report is made when it ends." in capsys.readouterr().err
    stage.finish()
    file = tmp_path / "report.html"
    out = told(capsys, "report", run_id, "--html", str(file))
    assert "rejected 7: five" in out
    assert re.search(r"ACCEPTED +7 +84 +77 +0 +7 ", out)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert 84 == as_json(capsys, "report", run_id)["records"]["read"]
    assert 2 == main(["report", run_id, "--html", str(tmp_path)])
    assert "cannot be written: Is a directory." in capsys.readouterr().err


def test_more_entries_than_a_page_holds_are_all_there(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueup.cli.calling._PAGE", 3)
    run_id = started(capsys)
    stage.finish()
    assert 7 == len(as_json(capsys, "partitions", run_id)["partitions"])
    assert 5 == len(as_json(capsys, "partitions", run_id, "--limit", "5")["partitions"])


def test_the_rejects_of_a_run_are_started_again(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = started(capsys)
    stage.finish()
    again = as_json(capsys, "start", "numbers", "--rejects-of", run_id)["runId"]
    request = stage.world.run(again).request
    assert request is not None
    assert 7 == len(request.keys or ())


def test_keys_come_from_a_file(stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "days.txt"
    file.write_text("2013-01-05\n\n2013-01-07\n", encoding="utf-8")
    run_id = as_json(capsys, "start", "numbers", "--keys", f"@{file}", "--dry-run")["runId"]
    run = stage.world.run(run_id)
    assert run.request is not None
    assert (("2013-01-05", "2013-01-07"), True) == (run.request.keys, run.dry_run)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["status", "nothing"], 2, "There is no run nothing. Check the id"),
        (["start", "numbres", *DAYS], 2, "job: no job is called 'numbres'. Did you mean `numbers`?"),
        (["start", "numbres", *DAYS, "--param", "depth=1"], 2, "Did you mean `numbers`?"),
        (["start", "numbers", "--from", "2013-01-01"], 2, "a window needs both ends"),
        (["start", "numbers", *DAYS, "--param", "depth"], 2, "--param: 'depth' is not a parameter."),
        (["start", "numbers", *DAYS, "--param", "depth=deep"], 2, "params.depth"),
        (["start", "numbers", "--keys", "@none.txt"], 2, "--keys: none.txt cannot be read"),
        (["partitions", "nothing"], 2, "There is no run nothing."),
        (["partitions", ""], 2, "RUN is empty. Give a run's id"),
        (["jobs", "--api", "ftp://x"], 2, "ftp://x is no address of an API."),
        (["jobs", "--api", "http://"], 2, "http:// is no address of an API."),
        (["jobs", "--api", "https://[::1"], 2, "https://[::1 is no address of an API."),
        (["jobs", "--api", "http://[zz]/"], 2, "http://[zz]/ is no address of an API."),
        (["jobs", "--api", "http://127.0.0.1:99999"], 2, "is no address of an API."),
        (["status", "r", "--watch", "--every", "inf"], 2, "--every"),
        (["jobs", "--api", "http://127.0.0.1:9"], 1, "http://127.0.0.1:9 does not answer: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_message(
    stage: Stage, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    with stamina.set_testing(True, attempts=1):
        assert code == main(arguments)
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert "" == said.out
    assert not stage.world.steps.executions


def test_whoever_nobody_knows_is_refused(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "AKIAANN", "another secret")
    assert 1 == main(["jobs"])
    assert "The API answered 403: " in capsys.readouterr().err


def test_without_an_address_or_credentials_it_says_what_to_set(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert 2 == main(["jobs"])
    assert "There are no AWS credentials to sign the call with. Set AWS_PROFILE" in capsys.readouterr().err
    monkeypatch.delenv("TRUEUP_API")
    assert 2 == main(["jobs"])
    told = capsys.readouterr().err
    assert "TRUEUP_API is not set. Set it to the stack's output Api" in told
    assert "`trueup up > stack.env`" in told


def test_a_profile_that_is_not_there_is_the_callers_mistake(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "typo")
    assert 2 == main(["jobs"])
    assert "The config profile (typo) could not be found. Check AWS_PROFILE" in capsys.readouterr().err


def test_a_lost_answer_starts_no_second_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (202, {"runId": "run-1", "status": "RUNNING", "location": "/runs/run-1"})
    lost = (None, (429, {"message": "Too Many Requests"}), good)
    with answering(monkeypatch, *lost) as asked, stamina.set_testing(True, attempts=3):
        assert "run-1" in told(capsys, "start", "numbers")
    assert (3, 1) == (len(asked), len({one["requestId"] for one in asked}))


@pytest.mark.parametrize("words", [["jobs"], ["partitions", "r"], ["audit", "r"], ["gates"]])
def test_a_command_that_reads_asks_again_and_says_why_it_takes_so_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    empty = {"phase": "apply", "next": None} | {
        name: [] for name in ("jobs", "partitions", "entries", "gates")
    }
    lost = [(500, b"away"), (429, {"message": "Too Many Requests"}), (502, b"away"), (200, empty)]
    with answering(monkeypatch, *lost), stamina.set_testing(True, attempts=4):
        assert 0 == main([*words, "--json"])
    told = capsys.readouterr()
    assert 1 == len(told.out.splitlines())
    assert "The API answered 502: away. trueup goes on asking, for 10 s in all.\n" == told.err


def test_a_start_that_is_not_answered_names_the_id_to_ask_again_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        answering(monkeypatch, (503, b"away"), (502, b"away")) as asked,
        stamina.set_testing(True, attempts=2),
    ):
        assert 1 == main(["start", "numbers"])
    assert f"ask again with --request-id {asked[0]['requestId']}, and" in capsys.readouterr().err


def test_what_somebody_else_answers_does_not_reach_the_terminal_raw(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"detail": "\x1b[2J", "remedy": "Look\x07\nthere."}
    with answering(monkeypatch, (418, b"\x1b]0;x\x07"), (418, problem), (200, b"[" * 100_000)):
        for said in (r"\x1b]0;x\x07", "\\x1b[2J Look\\x07\nthere.", "The API answered no JSON object."):
            assert 1 == main(["jobs"])
            assert said in capsys.readouterr().err


_KNOWN = {"sign", "known", "withdraw"}
ELSEWHERE = {"demo", "up", "new", "validate", "estimate", "approve", "reject", "evidence", *_KNOWN}
"""Tests of `make e2e` have the first two, test_cli_gates two more, test_cli_evidence the next.
The last three are in test_known_api. The others run below, without an API.
"""


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - ELSEWHERE))
def test_the_example_of_every_command_works(
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    tmp_path: Path,
) -> None:
    run_id = started(capsys)
    stage.finish()
    monkeypatch.chdir(tmp_path)
    example = example_of(capsys, name)
    known = {r"flights-summary-\d{8}T\d{6}Z-[a-z]{4}": run_id, r"\bflights-summary\b": "numbers"}
    for pattern, real in known.items():
        example = re.sub(pattern, real, example)
    program, *arguments = shlex.split(example.replace("2014-01-01", "2013-01-08"))
    assert ("trueup", name) == (program, arguments[0])
    assert 0 == main(arguments), capsys.readouterr()
    assert capsys.readouterr().out or name == "partitions"


def test_the_examples_that_need_no_api_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    for name in ("validate", "estimate"):
        monkeypatch.chdir(root)
        example = shlex.split(example_of(capsys, name))[1:]
        assert 0 == main(example), capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    assert 0 == main(shlex.split(example_of(capsys, "new"))[1:])
    assert "trueup demo" == example_of(capsys, "demo")


def example_of(capsys: pytest.CaptureFixture[str], name: str) -> str:
    """The example in a command's help."""
    capsys.readouterr()
    assert 0 == main([name, "--help"])
    help_text = capsys.readouterr().out
    assert "Example: " in help_text
    return " ".join(help_text.partition("Example: ")[2].split())


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.text(), (
        "run python -m trueup.cli.reference"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5_940, "99 min"),
        (6_000, "1 h 40 min"),
        (190_800, "2 d 5 h"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float, said: str) -> None:
    assert said == duration(seconds)


def test_partitions_are_listed_with_what_they_are_read_from(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = started(capsys)
    stage.finish()
    first, *_ = as_json(capsys, "partitions", run_id)["partitions"]
    assert first["weight"] > 0
    assert "work (s)" not in told(capsys, "partitions", run_id)
    wide = told(capsys, "partitions", run_id, "--wide")
    assert "work (s)" in wide
    assert 7 == wide.count(f"{first['weight']:,.1f}")
