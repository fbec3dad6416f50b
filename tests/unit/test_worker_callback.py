"""A task that is waited for: it beats, and its last word is its result's hash or its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from trueup.artifacts import result_key_of
from trueup.model.base import sha256
from trueup.testing import ManualClock
from trueup.worker import Exit
from trueup.worker import main as worker_main
from trueup.worker.callback import tell
from trueup.worker.heart import Heart

from .worker_cases import job_of, last, run_of, step_until


class Listener:
    """A state that waits, and what it heard."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def beat(self) -> None:
        self.heard.append("beat")

    def succeed(self, result: Mapping[str, Any]) -> None:
        self.heard.append(dict(result))

    def fail(self, error: str, cause: Mapping[str, Any]) -> None:
        self.heard.append((error, dict(cause)))


def test_the_last_word_of_a_finished_slice_is_its_results_key_and_hash() -> None:
    run, state = run_of(job_of()), Listener()
    run.run()
    task = last(run)
    tell(state, task.worker.exit, task.worker.contract)
    key = result_key_of(run.run_id, run.phase, 0, 1, task.arn)
    assert [{"key": key, "sha256": sha256(run.artifacts.store.get(key))}] == state.heard


@pytest.mark.parametrize("code", [Exit.BAD_INPUT, Exit.FAULT, Exit.INTERRUPTED])
def test_the_last_word_of_any_other_is_its_exit_code(code: Exit) -> None:
    state = Listener()
    tell(state, code, None)
    assert [("TaskEnded", {"exitCode": int(code)})] == state.heard


def test_the_heart_tells_the_state_now_and_then() -> None:
    clock, state = ManualClock(), Listener()
    run = run_of(job_of(), clock=clock)
    step_until(run, "registered")
    (item,) = run.ledger.tasks.of(run.run_id)
    heart = Heart(
        run.ledger,
        run.run_id,
        item,
        last(run).control,
        clock,
        no_progress_seconds=600,
        follow=lambda _: None,
        no_progress=lambda _: None,
        callback=state,
        callback_seconds=30,
    )
    for seconds in (0, 10, 10, 10, 10):
        clock.pass_(seconds)
        heart.beat()
    assert ["beat", "beat"] == state.heard


@pytest.mark.parametrize(("waits", "told", "beats"), [(None, 30, 10), ("300", 30, 10), ("15", 1.5, 1.5)])
def test_a_task_gives_ten_words_in_the_time_that_its_state_waits_for_one(
    monkeypatch: pytest.MonkeyPatch, waits: str | None, told: float, beats: float
) -> None:
    run = run_of(job_of())
    step_until(run, "registered")
    order = last(run).worker._order
    monkeypatch.setattr(worker_main, "who_am_i", lambda environment: None)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    environment = {"TRUEUP_TABLE": "t", "TRUEUP_BUCKET": "b"}
    if waits is not None:
        environment["TRUEUP_HEARTBEAT_SECONDS"] = waits
    tools = worker_main.make_tools(environment, last(run).control, order.job, order.phase)
    assert (told, beats) == (tools.callback_seconds, tools.beat_seconds)


def test_a_task_that_cannot_begin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Listener()
    monkeypatch.setattr(worker_main, "make_callback", lambda environment: state)
    monkeypatch.setattr(worker_main, "listen", lambda control: None)
    assert Exit.BAD_INPUT == worker_main.main({"TRUEUP_TASK_TOKEN": "token"})
    assert [("TaskEnded", {"exitCode": 64})] == state.heard


def test_the_second_task_of_a_launch_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run, state = run_of(job_of()), Listener()
    step_until(run, "registered")
    first = last(run)
    order = first.worker._order
    tools = run._tools("arn:aws:ecs:local:000000000000:task/local/other", first.control)
    monkeypatch.setattr(worker_main, "read_order", lambda environment, variable, kind: order)
    monkeypatch.setattr(worker_main, "make_tools", lambda environment, control, job, phase: tools)
    monkeypatch.setattr(worker_main, "read_class", lambda environment, order, tools: job_of())
    assert Exit.INTERRUPTED == worker_main.work({}, first.control, state)
    assert [] == state.heard


def test_a_task_that_hangs_says_so_before_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Listener()
    monkeypatch.setattr(worker_main, "leave_now", state.heard.append)
    worker_main._leaving(state)("no progress")
    assert [("TaskEnded", {"exitCode": 70}), "no progress"] == state.heard
