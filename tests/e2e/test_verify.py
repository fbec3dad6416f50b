"""A backfill on the joined stack that a reconciliation verifies: one run of it, its verdict, exit codes."""

from __future__ import annotations

import json

import psycopg
import pytest

from trueup.cli import main
from trueup.handling.verify import asked_for
from trueup.local.stack import Stack
from trueup.model.states import RunStatus

from .rig import Rig, Window, window

pytestmark = pytest.mark.timeout(300)
JOB, CHECK = "rows-verified", "rows-check"


@pytest.fixture
def as_me(up: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of whoever uses the stack."""
    for name, value in up.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRUEUP_API", up.api)


def started(days: Window) -> list[str]:
    """The command that starts a run over some days, and waits."""
    return [
        "start",
        JOB,
        "--from",
        days.request["from"],
        "--to",
        days.request["to"],
        "--wait",
        "--every",
        "0.2",
    ]


def spoil(up: Stack, days: Window) -> None:
    """Let the sink change one number of each day as it is written, as a rule of the database may."""
    days_in = ", ".join(f"'{day}'" for day in days.days)
    with psycopg.connect(up.dsn) as connection:
        connection.execute(
            "create function spoil() returns trigger language plpgsql as "
            "$$ begin new.square := new.square + 1; return new; end $$"
        )
        connection.execute(
            "create trigger spoil before insert on numbered for each row "
            f"when (new.number = 4 and new.day in ({days_in})) execute function spoil()"
        )


def mend(up: Stack) -> None:
    """The sink as it was."""
    with psycopg.connect(up.dsn) as connection:
        connection.execute("drop trigger spoil on numbered")
        connection.execute("drop function spoil")


def test_what_was_applied_is_verified_and_the_exit_code_says_what_was_found(
    rig: Rig, as_me: None, capsys: pytest.CaptureFixture[str]
) -> None:
    up, good, bad = rig.up, window(2), window(2)
    assert 0 == main(started(good))
    run_id = capsys.readouterr().out.splitlines()[0]
    run, by = up.ledger.runs.get(run_id), up.ledger.runs.of_request(asked_for(run_id))
    assert by is not None
    assert (RunStatus.SUCCEEDED, RunStatus.SUCCEEDED) == (run.status, by.status)
    assert (run_id, run.requester) == (by.verifies, by.requester)
    assert {"since": good.request["from"], "before": good.request["to"]} == by.params
    assert run.verification is not None
    assert ("CLEAN", by.run_id) == (run.verification.verdict, run.verification.run_id)

    spoil(up, bad)
    try:
        assert 1 == main(started(bad))
    finally:
        mend(up)
    run_id = capsys.readouterr().out.splitlines()[0]
    assert RunStatus.SUCCEEDED is up.ledger.runs.get(run_id).status
    assert 1 == main(["report", run_id, "--json"])
    told = json.loads(capsys.readouterr().out)["verification"]
    assert ("DRIFT", CHECK, ["2 differences are confirmed"]) == (
        told["verdict"],
        told["job"],
        told["reasons"],
    )
    assert 1 == main(["status", run_id])
    assert f"verified by {CHECK}: DRIFT: 2 differences are confirmed" in capsys.readouterr().out
    assert 1 == main(["report", told["runId"]])
