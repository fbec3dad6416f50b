"""A backfill that is verified by a reconciliation: its way, its report, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.artifacts import comparison_key
from trueup.cli import main
from trueup.errors import RequestError
from trueup.handling.verify import asked_for
from trueup.ledger import keys
from trueup.ledger.table import Write
from trueup.model.base import sha256
from trueup.model.gate import Gate
from trueup.model.ledger import Run
from trueup.model.plan import Window
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import GateStatus, Phase, RunStatus
from trueup.model.verification import VerifiedBy, Verify
from trueup.planning import handed_on
from trueup.reporting import page

from .api_cases import Client, api_of
from .api_server import be, serving
from .handler_fakes import Execution
from .handler_world import World, dying_at, resumed
from .test_handlers_reconcile import JOB, drifted, same
from .worker_cases import Died, job_file, job_of

BOB = "arn:aws:iam::123456789012:user/bob"
CHECK = "numbers-check"
ONE_MORE = {"id": 3, "v": "twice"}
TABLES: dict[str, Any] = {"type": "object", "properties": {"table": {"type": "string", "default": "target"}}}


def check(**changes: Any) -> Reconciliation:
    return Reconciliation.of({**JOB, "name": CHECK, "lag": 0, **changes})


def world_of(target: list[dict[str, Any]], by: Reconciliation | None = None, **sections: Any) -> World:
    truth = [{"id": number, "v": f"v{number}"} for number in range(len(same()))]
    declared = job_file(**{"verify": {"job": CHECK}, **sections})
    rows = {"truth": truth, "target": target}
    return World(job_of(), declared, rows=rows, verified_by=by or check())


def go_on(world: World) -> None:
    """Every execution, a turn of each after the other, until all have ended or wait for a person."""
    for _ in range(2_000):
        at_work = [
            one
            for one in list(world.steps.executions.values())
            if one.status == "RUNNING" and not _waits(world, one)
        ]
        if not at_work:
            return
        for execution in at_work:
            world._turn(execution)
    raise AssertionError([(one.name, one.told) for one in at_work])


def _waits(world: World, execution: Execution) -> bool:
    return execution.token is not None and execution.token not in world.people.woken


def verifier(world: World, run: Run) -> Run:
    found = world.ledger.runs.of_request(asked_for(run.run_id))
    assert found is not None
    return found


def told(world: World, run: Run) -> VerifiedBy:
    """What the report says, which is what the run says."""
    report = world.reports.of(run.run_id)
    assert report is not None
    assert report.verification is not None
    assert world.run(run.run_id).verification == report.verification
    return report.verification


def test_what_was_applied_is_verified_by_a_run_of_its_own() -> None:
    world = world_of(same())
    run = world.ask()
    go_on(world)
    ended, by = world.run(run.run_id), verifier(world, run)
    assert (RunStatus.SUCCEEDED, RunStatus.SUCCEEDED) == (ended.status, by.status)
    assert f"every partition is accepted or skipped; verified by {CHECK}: CLEAN ({by.run_id})" == ended.reason
    assert (run.run_id, "ann", CHECK) == (by.verifies, by.requester, by.job)
    comparison = world.artifacts.store.get(comparison_key(by.run_id, "json"))
    found = VerifiedBy(job=CHECK, run_id=by.run_id, verdict="CLEAN", report_sha256=sha256(comparison))
    assert found == told(world, run)
    applied = [task.order.phase for task in world.ecs.tasks.values()]
    assert [Phase.APPLY, Phase.COMPARE] == list(dict.fromkeys(applied))
    verbs = {entry.verb for entry in world.ledger.audit.of(run.run_id)}
    assert {"verify", "verified", "stop:succeeded"} <= verbs
    assert {} == world.ledger.locks.get("numbers").holders


@pytest.mark.parametrize(
    ("target", "verdict", "reason"),
    [
        (drifted(), "DRIFT", "2 differences are confirmed"),
        ([*same(), ONE_MORE], "INCOMPLETE", ""),
    ],
)
def test_a_verdict_changes_nothing_about_what_was_applied(
    target: list[dict[str, Any]], verdict: str, reason: str
) -> None:
    world = world_of(target)
    run = world.ask()
    go_on(world)
    assert RunStatus.SUCCEEDED is world.run(run.run_id).status
    found = told(world, run)
    assert (verdict, True) == (found.verdict, reason in found.reasons[0])
    report = world.reports.of(run.run_id)
    assert report is not None
    assert f"{verdict}: {found.reasons[0]}" in page(report)


def test_a_verification_that_ends_without_comparing_is_an_error() -> None:
    world = world_of(same())
    run = world.ask()
    execution = world.execution(run)
    while (found := world.run(run.run_id).verification) is None or found.run_id is None:
        world._turn(execution)
    by = world.steps.executions[f"{found.run_id}-1"]
    world.abort(by)
    world.close.handle(world.event(by))
    go_on(world)
    assert (RunStatus.SUCCEEDED, "ERROR") == (world.run(run.run_id).status, told(world, run).verdict)


def test_the_verdict_of_a_run_that_somebody_else_started_is_not_taken() -> None:
    world = world_of(drifted())
    run = world.ask()
    other = world.ask(job=CHECK, keys=None, requestId=asked_for(run.run_id))
    go_on(world)
    found = told(world, run)
    assert "ERROR" == found.verdict
    assert other.run_id in found.reasons[0]


def test_a_job_that_is_gone_by_then_is_an_error_that_names_it() -> None:
    world = world_of(same())
    run = world.ask()
    del world.jobs[CHECK]
    go_on(world)
    found = told(world, run)
    assert (RunStatus.SUCCEEDED, "ERROR", None) == (world.run(run.run_id).status, found.verdict, found.run_id)
    assert f"{CHECK} could not be started: " in found.reasons[0]


def test_the_machine_waits_longer_the_longer_a_verification_lasts() -> None:
    world = world_of(same())
    run = world.ask()
    execution = world.execution(run)
    waits: list[int] = []
    while len(waits) < 60:  # the verification itself stands still
        world._turn(execution)
        if execution.told and execution.told["do"] == "verify":
            waits.append(execution.told["seconds"])
    assert 5 == waits[0]
    assert sorted(waits) == waits
    assert waits[-1] > 60
    detail = Client(api_of(world)).get(f"/runs/{run.run_id}")
    by = verifier(world, run).run_id
    assert (f"its verification by {by}", None) == (detail["waitsFor"], detail["verdict"])
    assert by == detail["verification"]["runId"]


@pytest.mark.parametrize("through", [False, True])
def test_whatever_dies_one_verification_is_started_and_its_verdict_told(through: bool) -> None:
    """At each write of the call that begins the verification, and of the one that finds its verdict."""
    for number in range(1, 20):
        world = world_of(drifted())
        run = world.ask()
        execution = world.execution(run)
        while not (execution.children and all(child.at == "over" for child in execution.children)):
            world._turn(execution)
        if through:
            world.step(execution)
            world.play(world.execution(verifier(world, run)))
        dying_at(world, number)
        died = _dies(world, execution)
        world.table.dies_at = 0
        world.swept()
        go_on(world)
        verifying = [name for name in world.steps.executions if name.startswith(CHECK)]
        assert (1, "DRIFT") == (len(verifying), told(world, run).verdict), number
        assert RunStatus.SUCCEEDED is world.run(run.run_id).status
        if not died:
            break
    assert 4 <= number < 19


def _dies(world: World, execution: Execution) -> bool:
    try:
        world.step(execution)
    except Died:
        return True
    return False


def test_a_run_that_is_resumed_finds_the_verification_that_it_had() -> None:
    world = world_of(same())
    run = world.ask()
    execution = world.execution(run)
    while execution.told is None or execution.told["do"] != "verify":
        world._turn(execution)
    world.abort(execution)
    resumed(world, world.run(run.run_id))
    go_on(world)
    assert "CLEAN" == told(world, run).verdict
    assert 1 == sum(name.startswith(CHECK) for name in world.steps.executions)


def test_a_rehearsal_and_a_run_that_failed_are_not_verified() -> None:
    world = world_of(same())
    run = world.ask(dryRun=True)
    go_on(world)
    report = world.reports.of(run.run_id)
    assert report is not None
    assert (RunStatus.SUCCEEDED, None) == (report.status, report.verification)

    def broken(self: Any, rows: Any, ctx: Any) -> Any:
        raise ValueError("it cannot be written")

    world = world_of(same())
    world.job = job_of(write=broken)
    run = world.ask()
    go_on(world)
    assert RunStatus.FAILED is world.run(run.run_id).status
    assert (None, None) == (told(world, run).run_id, told(world, run).verdict)
    assert world.ledger.runs.of_request(asked_for(run.run_id)) is None


def test_a_canary_is_verified_with_the_rest_and_not_before() -> None:
    world = world_of(same(), approval={"canary": 1})
    run = world.ask()
    gate = world.wait(world.execution(run))
    assert world.ledger.runs.of_request(asked_for(run.run_id)) is None
    approve(world, gate)
    go_on(world)
    assert "CLEAN" == told(world, run).verdict


def test_a_run_that_is_cancelled_meanwhile_has_no_verdict() -> None:
    world = world_of(same())
    run = world.ask()
    execution = world.execution(run)
    while execution.told is None or execution.told["do"] != "verify":
        world._turn(execution)
    world.ledger.runs.stop(run.run_id, RunStatus.CANCELLED, who="ann", why="enough")
    go_on(world)
    assert RunStatus.CANCELLED is world.run(run.run_id).status
    assert None is told(world, run).verdict


def approve(world: World, gate: Gate) -> None:
    world.gating.wake(
        world.ledger.gates.decide(gate.run_id, gate.name, GateStatus.APPROVED, who=BOB, sha256=gate.sha256)
    )


def test_a_verification_that_repairs_waits_for_the_backfill_to_leave_the_target() -> None:
    repair = {"repair": {"deletes": "asked"}, "approval": {"roles": ["user/bob"]}, "locks": "numbers"}
    world = world_of(drifted(), check(**repair))
    run = world.ask()
    execution = world.execution(run)
    while execution.told is None or execution.told["do"] != "verify":
        world._turn(execution)
    by = verifier(world, run)
    repairing = world.execution(by)
    approve(world, world.wait(repairing))
    for _ in range(5):
        world._turn(repairing)
    assert ("lag", "repair") == (repairing.told["do"], repairing.told["at"]["phase"])  # type: ignore[index]
    go_on(world)
    assert (RunStatus.SUCCEEDED, "DRIFT") == (world.run(run.run_id).status, told(world, run).verdict)
    assert "REPAIRED" == world.run(by.run_id).reason
    assert world.rows is not None
    assert same() == sorted(world.rows["target"], key=lambda row: row["id"])


def test_a_lock_that_another_run_holds_still_ends_a_repair() -> None:
    repair = {"repair": {"deletes": "asked"}, "approval": {"roles": ["user/bob"]}, "locks": "numbers"}
    world = world_of(drifted(), check(**repair))
    run = world.ask()
    go_on(world)
    by = verifier(world, run)
    other = world.ask(requestId="r-2", keys=["z"])
    world.ledger.locks.take(other)
    approve(world, world.wait(world.execution(by)))
    world.play(world.execution(by))
    assert RunStatus.FAILED is world.run(by.run_id).status
    assert f"Run {other.run_id} holds" in (world.run(by.run_id).reason or "")


# What is handed on

DAYS = Window(kind="date", low="2013-01-01", high="2013-02-01")
PARAMS = {"bucket": "b", "table": "t", "depth": 3, "day": "monday"}


@pytest.mark.parametrize(
    ("given", "covered", "expected"),
    [
        ({}, DAYS, {"table": "t"}),
        ({"table": "{bucket}-{table}"}, DAYS, {"table": "b-t"}),
        (
            {"since": "{from}", "until": "{to}"},
            DAYS,
            {"table": "t", "since": "2013-01-01", "until": "2013-02-01"},
        ),
        ({"since": "{from}"}, Window(kind="list", items=("a",)), {"table": "t"}),
        ({"level": "{depth}"}, DAYS, {"table": "t", "level": 3}),
        ({"level": "at {depth}", "most": 7}, DAYS, {"table": "t", "level": "at 3", "most": 7}),
        ({"table": "{absent}"}, DAYS, {"table": "t"}),
    ],
)
def test_what_both_jobs_have_is_handed_on_and_what_the_job_file_says(
    given: dict[str, Any], covered: Window, expected: dict[str, Any]
) -> None:
    by = check(parameters=TABLES)
    assert expected == handed_on(Verify(job=CHECK, params=given), by, PARAMS, covered)


def test_the_verification_compares_what_the_backfill_was_asked_for() -> None:
    by = check(
        parameters={**TABLES, "required": ["side"], "properties": {**TABLES["properties"], "side": {}}}
    )
    verify = {"job": CHECK, "params": {"side": "{table} of {shelf}"}}
    properties = {"table": {"type": "string"}, "shelf": {"type": "integer"}}
    world = world_of(same(), by, verify=verify, parameters={"type": "object", "properties": properties})
    run = world.ask(params={"table": "mine", "shelf": 4})
    go_on(world)
    assert {"table": "mine", "side": "mine of 4"} == verifier(world, run).params


@pytest.mark.parametrize(
    ("verify", "says"),
    [
        (
            {"job": "numbers-chek"},
            "no reconcile job is called that. Did you mean `numbers-check`?",
        ),
        ({"job": "numbers"}, "`verify` names numbers, and no reconcile job is called that."),
        (
            {"job": CHECK, "params": {"tabel": "x"}},
            "params.tabel: numbers-check has no such parameter",
        ),
    ],
)
def test_a_run_that_could_not_be_verified_is_refused_before_anything_is_created(
    verify: dict[str, Any], says: str
) -> None:
    world = world_of(same(), check(parameters=TABLES), verify=verify)
    with pytest.raises(RequestError) as refused:
        world.ask()
    assert says in str(refused.value)
    assert [] == list(world.ledger.runs.newest())
    assert "numbers" == world.ask(dryRun=True).job  # nothing is written, and nothing verified


# The command line


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world behind a socket; runs go to their end between two looks."""
    world = world_of(same())
    be(monkeypatch, "AKIAANN")
    with serving(api_of(world), lambda: go_on(world)) as url:
        monkeypatch.setenv("TRUEUP_API", url)
        yield world


@pytest.mark.parametrize(
    ("target", "verdict", "code"),
    [
        (same(), "CLEAN", 0),
        (drifted(), "DRIFT", 1),
        ([*same(), ONE_MORE], "INCOMPLETE", 4),
        (None, "ERROR", 4),
    ],
)
def test_start_status_and_report_exit_with_what_the_verification_found(
    served: World,
    target: list[dict[str, Any]] | None,
    verdict: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert served.rows is not None
    served.rows["target"][:] = target or []  # type: ignore[index]
    started = ["start", "numbers", "--wait", "--every", "0", "--keys", "a,b,c"]
    if target is None:
        _forget_the_job_once_it_is_asked_for(served)
    assert code == main(started)
    out = capsys.readouterr().out.splitlines()
    run_id, last = out[0], out[-1]
    assert f"SUCCEEDED: 3 of 3 partitions; verified by {CHECK}: {verdict}" in last
    assert code == main(["status", run_id])
    assert f"verified by {CHECK}: {verdict}" in capsys.readouterr().out
    assert code == main(["report", run_id, "--html", str(tmp_path / "page.html")])
    assert f"verified by {CHECK}: {verdict}" in capsys.readouterr().out
    assert f"By {CHECK}: {verdict}" in (tmp_path / "page.html").read_text()
    assert code == main(["report", run_id, "--json"])
    assert verdict == json.loads(capsys.readouterr().out)["verification"]["verdict"]


def _forget_the_job_once_it_is_asked_for(world: World) -> None:
    """It is deployed when the run is asked for, and not any more when that is through."""
    create = world.start.starter.create

    def create_and_forget(*args: Any, **options: Any) -> Run:
        made = create(*args, **options)
        world.jobs.pop(CHECK, None)
        return made

    world.start.starter.create = create_and_forget  # type: ignore[method-assign]


def test_a_run_that_is_closed_takes_no_verdict() -> None:
    world = world_of(same())
    run = world.ask()
    world.table.write(Write(keys.run(run.run_id), sets={"status": "CANCELLED"}))
    with pytest.raises(Exception, match="changed while 'verified' was written"):
        world.ledger.runs.verify(run, VerifiedBy(job=CHECK, verdict="CLEAN"), who="x")
