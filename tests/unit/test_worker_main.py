"""The container's process: environment in, exit code out."""

from __future__ import annotations

import http.server
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trueup.worker.main as worker_main
from trueup.errors import UsageError
from trueup.model.naming import Named, NamingOrder
from trueup.model.plan import CodeIdentity
from trueup.testing import LocalRun
from trueup.worker import Control, Exit, Identity

from .handler_fakes import READ
from .handler_world import World
from .worker_cases import FailingStore, job_file, job_of, last, run_of, step_until

ARN = "arn:aws:ecs:eu-central-1:123456789012:task/trueup/0123456789abcdef"
DIGEST = "sha256:" + "ab" * 32
METADATA = {
    "TaskARN": ARN,
    "Family": "trueup-flights-write",
    "Revision": "7",
    "Containers": [{"Name": "worker", "ImageID": DIGEST}],
}


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Signal handlers and log handlers belong to the whole process: put them back."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)
    root.handlers[:] = handlers
    root.setLevel(level)


def ordered(run: LocalRun) -> dict[str, str]:
    """The environment of a task that was launched for a run."""
    step_until(run, "registered")
    run.kill()
    run._launch_waiting()
    order = last(run).worker._order
    return {
        "TRUEUP_ORDER": order.model_dump_json(by_alias=True),
        "TRUEUP_TABLE": "ledger",
        "TRUEUP_BUCKET": "artifacts",
        "ECS_CONTAINER_METADATA_URI_V4": "http://127.0.0.1:9",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }


@pytest.mark.parametrize(
    "name", ["TRUEUP_ORDER", "TRUEUP_TABLE", "TRUEUP_BUCKET", "ECS_CONTAINER_METADATA_URI_V4"]
)
def test_a_variable_that_is_missing_is_named_and_leaves_with_64(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = ordered(run_of(job_of()))
    del environment[name]
    assert Exit.BAD_INPUT == worker_main.main(environment)
    told = capsys.readouterr().err
    assert f"{name} is not set." in told
    assert "Traceback" not in told


@pytest.mark.parametrize("order", ["", "{}", "not JSON", '{"runId": 1}'])
def test_an_order_that_is_none_leaves_with_64(order: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert Exit.BAD_INPUT == worker_main.main({"TRUEUP_ORDER": order})
    assert "TRUEUP_ORDER does not say what to do" in capsys.readouterr().err


def test_a_checkpoint_interval_that_is_no_number_is_named() -> None:
    environment = {"TRUEUP_CHECKPOINT_SECONDS": "soon"}
    with pytest.raises(UsageError, match=r"TRUEUP_CHECKPOINT_SECONDS is 'soon'. Give a number of seconds"):
        worker_main._seconds(environment, "TRUEUP_CHECKPOINT_SECONDS", 3.0)


def test_a_metadata_endpoint_that_does_not_answer_leaves_with_70(capsys: pytest.CaptureFixture[str]) -> None:
    assert Exit.FAULT == worker_main.main(ordered(run_of(job_of())))
    assert "The metadata endpoint http://127.0.0.1:9 did not answer" in capsys.readouterr().err


def test_without_an_environment_the_process_leaves_with_64_and_a_message() -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "trueup.worker"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    line = json.loads(done.stderr)
    assert (64, "error") == (done.returncode, line["level"])
    assert "TRUEUP_ORDER is not set." in line["message"]


def test_the_identity_is_that_of_the_metadata_document() -> None:
    definition = "arn:aws:ecs:eu-central-1:123456789012:task-definition/trueup-flights-write:7"
    expected = Identity(ARN, CodeIdentity(task_definition=definition, image_digest=DIGEST))
    assert expected == worker_main.identity_of(METADATA)


@pytest.mark.parametrize(
    "changes",
    [
        {"TaskARN": None},
        {"Containers": []},
        {"Containers": [{"Name": "worker", "ImageID": "latest"}]},
        {"Revision": "latest"},
    ],
)
def test_a_metadata_document_that_does_not_say_who_it_is_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="The task's metadata do not say who it is"):
        worker_main.identity_of({**METADATA, **changes})


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers as ECS's metadata endpoint does."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/v4/id/task" else 404)
        self.end_headers()
        self.wfile.write(json.dumps(METADATA).encode())

    def log_message(self, *arguments: Any) -> None:
        """Nothing is logged."""


def test_the_metadata_endpoint_is_asked() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/v4/id"
        try:
            found = worker_main.who_am_i({"ECS_CONTAINER_METADATA_URI_V4": address})
        finally:
            server.shutdown()
            thread.join()
    assert ARN == found.task


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")])
def test_a_signal_becomes_a_wish_to_stop(number: signal.Signals, name: str) -> None:
    control = Control()
    worker_main.listen(control)
    signal.raise_signal(number)
    assert name == control.signal


def over(run: LocalRun, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make main work over a run's stores; the environment of its task."""
    environment = ordered(run)
    tools = last(run).worker._tools
    monkeypatch.setattr(worker_main, "make_tools", lambda environment, control, job, phase: tools)
    monkeypatch.setattr(worker_main, "load", lambda job, folder: run.job_class)
    return environment


def test_a_task_works_its_slice_and_leaves_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(job_of(), keys="ab")
    environment = over(run, monkeypatch)
    assert Exit.DONE == worker_main.main(environment)
    assert 24 == len(run.job_class.sink.witness)


def named_by(hook: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[World, NamingOrder]:
    """Make main name the partitions of a run by this hook; what its task is told."""
    here = World(job_of(partitions=hook), job_file(partitions={"by": "job", "key": "item"}))
    run = here.run(here.start.handle({"job": "numbers", "requestId": "r", "requester": "ann"})["runId"])
    here.step(here.execution(run))
    tools = here._tools(ARN, Control(), READ)
    monkeypatch.setattr(worker_main, "make_tools", lambda environment, control, job, phase: tools)
    monkeypatch.setattr(worker_main, "load", lambda job, folder: here.job)
    return here, NamingOrder.model_validate((here.execution(run).told or {})["order"])


def test_a_task_that_is_to_name_partitions_does_so_and_leaves_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    here, order = named_by(lambda self, window: ["a", "b"], monkeypatch)
    assert Exit.DONE == worker_main.main({"TRUEUP_NAMING": order.model_dump_json(by_alias=True)})
    assert Named(partitions=("a", "b")) == here.artifacts.named(order.run_id, order.launch)


@pytest.mark.parametrize("change", [{"briefKey": "no/such"}, {"briefSha256": "0" * 64}, {"launch": "x"}])
def test_an_order_to_name_that_is_wrong_leaves_with_64_and_names_nothing(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, order = named_by(lambda self, window: ["a", "b"], monkeypatch)
    told = json.dumps({**order.document(), **change})
    assert Exit.BAD_INPUT == worker_main.main({"TRUEUP_NAMING": told})
    assert None is here.artifacts.named(order.run_id, order.launch)


def test_a_plan_that_is_not_there_leaves_with_64(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(job_of())
    environment = over(run, monkeypatch)
    run.artifacts.store._objects.clear()
    assert Exit.BAD_INPUT == worker_main.main(environment)


def test_a_store_that_does_not_answer_leaves_with_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = FailingStore()
    run = run_of(job_of(), store=store)
    environment = over(run, monkeypatch)
    store.down = lambda key: True
    assert Exit.FAULT == worker_main.main(environment)
    assert "the task cannot begin: The store does not answer." in capsys.readouterr().err


def test_a_bug_before_the_slice_leaves_with_70_and_a_traceback_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = over(run_of(job_of()), monkeypatch)

    def bug(*arguments: Any) -> Any:
        raise RuntimeError("oops")

    monkeypatch.setattr(worker_main, "load", bug)
    assert Exit.FAULT == worker_main.main(environment)
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert "RuntimeError: oops" in line["traceback"]


def test_every_line_of_the_log_says_where_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(job_of(transform=lambda self, n: 1 / 0))
    environment = over(run, monkeypatch)
    worker_main.main(environment)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines
    assert {(run.run_id, 0, 2)} == {(line["run"], line["slice"], line["launch"]) for line in lines}


HANGS = """
import threading
from tests_worker_cases import job_file, job_of, run_of, step_until
from trueup.worker.loop import Worker
from trueup.clock import SystemClock

def write(self, rows, ctx):
    print("hanging", flush=True)
    threading.Event().wait()

SECTIONS = {"task": {"no_progress_seconds": 0.3}, "batch": {"maximum_seconds": 0.2, "target_seconds": 0.1}}
run = run_of(job_of(write=write), sections=SECTIONS, clock=SystemClock())
step_until(run, "registered")
run.kill()
run._launch(run.tasks[-1].launch.slice)
worker = run.tasks[-1].worker
worker._tools.beat_seconds = 0.05
Worker(run.job_class, worker._order, worker._tools).run()
print("came back", flush=True)
"""


def test_a_loop_that_hangs_in_somebodys_code_is_ended_with_70() -> None:
    cases = Path(__file__).with_name("worker_cases.py")
    load = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('tests_worker_cases', {str(cases)!r})\n"
        "module = sys.modules['tests_worker_cases'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", load + HANGS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (70, "hanging\n") == (done.returncode, done.stdout)
    assert "leaving without progress: progress: " in done.stderr
