"""A repair through the handlers: asked for, approved by a second person, done, verified; or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trueup.artifacts import comparison_key, evidence_key, repair_key
from trueup.artifacts.findings import listed
from trueup.artifacts.store import place
from trueup.cli import main
from trueup.errors import GateRefused
from trueup.handling.moves import Position
from trueup.jobs import Reconcile
from trueup.model.base import canonical, sha256
from trueup.model.gate import Gate
from trueup.model.ledger import Run
from trueup.model.reconcile_job import Reconciliation
from trueup.model.states import GateStatus, Phase, RunStatus
from trueup.reporting.repairs import Repairs
from trueup.schemas import published_report
from trueup.testing.rows import MemoryRows

from .api_cases import Client, api_of
from .api_server import be, serving
from .handler_fakes import WRITE, Execution
from .handler_world import World, resumed
from .test_handlers_reconcile import JOB, drifted, same, world_of

BOB = "arn:aws:iam::123456789012:user/bob"
EVE = "arn:aws:iam::123456789012:user/eve"
ASKS: dict[str, Any] = {"repair": {"deletes": "asked"}, "approval": {"roles": ["user/bob"]}}


def waiting(**changes: Any) -> tuple[World, Run, Execution, Gate]:
    """A run that waits for its report to be approved."""
    world = world_of(drifted(), **{**ASKS, **changes})
    run = world.ask(keys=None)
    execution = world.execution(run)
    return world, world.run(run.run_id), execution, world.wait(execution)


def approve(world: World, gate: Gate, who: str = BOB) -> None:
    world.gating.wake(
        world.ledger.gates.decide(gate.run_id, gate.name, GateStatus.APPROVED, who=who, sha256=gate.sha256)
    )


def untouched(world: World) -> bool:
    assert world.rows is not None
    no_writer = all(task.order.phase is not Phase.REPAIR for task in world.ecs.tasks.values())
    return no_writer and drifted() == world.rows["target"]


@pytest.mark.parametrize(("asked", "deleted"), [("asked", "1 rows"), ("refused", "0 rows")])
def test_the_gate_shows_what_will_be_changed_where_and_by_which_code(asked: str, deleted: str) -> None:
    world, run, _, _ = waiting(repair={"deletes": asked})
    (gate,) = Client(api_of(world)).get(f"/runs/{run.run_id}/gates")["gates"]
    facts = {fact["name"]: fact["value"] for fact in gate["facts"]}
    assert "DRIFT" == facts["verdict"]
    assert ("1 rows", deleted) == (facts["puts"], facts["deletes"])
    assert facts["writes"].startswith(f"{run.target}, each row only where both sides are still")
    assert f"{WRITE.task_definition} {WRITE.image_digest}" == facts["code"]


def test_what_a_second_person_approved_is_repaired_and_verified() -> None:
    world, run, execution, gate = waiting()
    report = world.artifacts.store.get(comparison_key(run.run_id, "json"))
    assert ("repair-and-delete", "report", sha256(report)) == (gate.name, gate.kind, gate.sha256)
    assert untouched(world)
    assert run.epoch == 0
    approve(world, gate)
    world.play(execution)
    ended = world.run(run.run_id)
    assert (RunStatus.SUCCEEDED, "REPAIRED") == (ended.status, ended.reason)
    assert world.rows is not None
    assert same() == sorted(world.rows["target"], key=lambda row: row["id"])
    phases = [task.order.phase for task in world.ecs.tasks.values()]
    assert [Phase.COMPARE, Phase.CONFIRM, Phase.REPAIR, Phase.VERIFY] == list(dict.fromkeys(phases))
    assert ended.epoch > 0
    assert {} == world.ledger.locks.get("numbers").holders
    repaired = Repairs(world.ledger, world.artifacts).of(ended)
    assert repaired is not None
    assert (BOB, WRITE) == (repaired.approved_by, repaired.code)


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that is to be deleted makes its partition fail for good, before it is touched."""
    whole = MemoryRows.apply

    def apply(rows: MemoryRows, change: Any) -> Any:
        if change.key == ("99",):
            raise RuntimeError("the target is on fire")
        return whole(rows, change)

    monkeypatch.setattr(MemoryRows, "apply", apply)


FAILED = (
    "1 of 2 partitions did not make it in the phase repair; UNREPAIRED: 1 items: INTENDED; "
    "looked at again: 1 UNTOUCHED, 1 VERIFIED"
)


def to_the_look(world: World, execution: Execution) -> None:
    """On to where the machine waits for the lag before it looks again."""
    while (execution.told or {}).get("at", {}).get("phase") != "verify":
        world._turn(execution)


def test_what_was_touched_is_looked_at_though_a_partition_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch)
    world, run, execution, gate = waiting()
    approve(world, gate)
    world.play(execution)
    ended = world.run(run.run_id)
    assert (RunStatus.FAILED, FAILED, "FAILED") == (ended.status, ended.reason, execution.status)
    phases = [task.order.phase for task in world.ecs.tasks.values()]
    assert [Phase.COMPARE, Phase.CONFIRM, Phase.REPAIR, Phase.VERIFY] == list(dict.fromkeys(phases))
    assert {} == world.ledger.locks.get("numbers").holders
    report = world.reports.of(run.run_id)
    assert report is not None
    assert (Phase.REPAIR, ["key=20.."]) == (report.phase, [one.partition_id for one in report.troubles])
    kinds = {one.kind for one in world.reports.evidence(run.run_id).manifest.objects}
    assert {"verification", "before-images and outcomes"} <= kinds


def test_the_lag_is_waited_for_also_where_nobody_told_of_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch)
    world, run, execution, gate = waiting()
    assert world.rows is not None
    world.rows["truth"][0]["v"] = "newer"  # type: ignore[index]
    approve(world, gate)
    to_the_look(world, execution)
    assert ("lag", 90) == (execution.told["do"], execution.told["seconds"])  # type: ignore[index]
    world.play(execution)
    assert "looked at again: 1 UNTOUCHED" in str(world.run(run.run_id).reason)


def test_a_run_that_is_paused_while_it_looks_at_a_failed_repair_goes_on_with_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch)
    world, run, execution, gate = waiting()
    approve(world, gate)
    while all(task.order.phase is not Phase.VERIFY for task in world.ecs.tasks.values()):
        world._turn(execution)
    world.ledger.runs.stop(run.run_id, RunStatus.PAUSED, who="ann", why="lunch")
    world.play(execution)
    paused = world.run(run.run_id)
    assert (RunStatus.PAUSED, "SUCCEEDED") == (paused.status, execution.status)
    assert run.run_id in world.ledger.locks.get("numbers").holders
    world.play(resumed(world, paused))
    ended = world.run(run.run_id)
    assert (RunStatus.FAILED, 2, FAILED) == (ended.status, ended.generation, ended.reason)
    repaired = Repairs(world.ledger, world.artifacts).of(ended)
    assert repaired is not None
    assert ["UNTOUCHED delete 1", "VERIFIED insert 1"] == [
        f"{one.outcome} {one.action} {one.items}" for one in repaired.verified
    ]


def test_a_job_that_repairs_nothing_ends_with_its_report() -> None:
    world = world_of(drifted())
    run = world.ask(keys=None)
    world.play(world.execution(run))
    assert "DRIFT: 2 differences are confirmed" == world.run(run.run_id).reason
    assert untouched(world)


def test_waking_the_token_without_a_decision_repairs_nothing() -> None:
    world, run, execution, gate = waiting()
    for _ in range(3):
        world.people.wake(str(execution.token))
        world.wait(execution)
    assert untouched(world)
    assert GateStatus.OPEN is world.ledger.gates.get(run.run_id, gate.name).status


@pytest.mark.parametrize("who", ["ann", EVE])
def test_the_requester_and_who_has_no_role_cannot_approve(who: str) -> None:
    world, _, execution, gate = waiting()
    with pytest.raises(GateRefused):
        approve(world, gate, who)
    world.people.wake(str(execution.token))
    world.wait(execution)
    assert untouched(world)


def test_a_rejected_report_repairs_nothing() -> None:
    world, run, execution, gate = waiting()
    told = world.ledger.gates.decide(
        run.run_id, gate.name, GateStatus.REJECTED, who=BOB, sha256=gate.sha256, comment="no"
    )
    world.gating.wake(told)
    world.play(execution)
    assert RunStatus.CANCELLED is world.run(run.run_id).status
    assert untouched(world)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["report", "list", "findings"])
def test_what_was_changed_around_the_signature_stops_the_run(when: str, what: str) -> None:
    world, run, execution, gate = waiting()
    store = world.artifacts.store
    report = world.reports.comparison(run.run_id)
    assert report is not None
    if what == "report":
        key = comparison_key(run.run_id, "json")
        data = canonical(report.model_copy(update={"reasons": []}).document())
    else:
        key = place(report.lists[-1].location)[1]
        if what == "findings":
            key = place(listed(world.artifacts, report.lists[-1])[-1].location)[1]
        data = store.get(key).replace(b"MISSING", b"EXTRA ") + b"\n"
    if when == "before":
        store.put(key, data)
    approve(world, gate)
    if when == "after":
        store.put(key, data)
    world.play(execution)
    ended = world.run(run.run_id)
    assert RunStatus.FAILED is ended.status
    assert "SHA-256" in (ended.reason or "")
    assert untouched(world)


@pytest.mark.parametrize(("second", "status"), [("a", "SUPERSEDED"), ("b", "OPEN")])
def test_a_newer_report_supersedes_one_about_the_same_part_of_the_target(second: str, status: str) -> None:
    table = {"kind": "postgres", "table": "numbers_{part}"}
    parameters = {"type": "object", "properties": {"part": {"type": "string"}}}
    of = Reconciliation.of({**JOB, **ASKS, "target": table, "parameters": parameters})
    world = World(Reconcile, of, rows={"truth": same(), "target": drifted()})
    gates = []
    for number, part in enumerate(("a", second)):
        run = world.ask(keys=None, params={"part": part}, requestId=f"r-{number}")
        gates.append(world.wait(world.execution(run)))
        world.clock.pass_(60)
    older, newer = (world.ledger.gates.get(gate.run_id, gate.name) for gate in gates)
    assert (status, "OPEN") == (older.status, newer.status)


def newer(target: list[dict[str, Any]], **changes: Any) -> tuple[World, Gate, Run]:
    """A run whose report nobody signed, and another one about the same that found the target so later."""
    world, _, execution, gate = waiting(**changes)
    world.clock.pass_(60)
    assert world.rows is not None
    world.rows["target"][:] = target  # type: ignore[index]
    run = world.ask(keys=None, requestId="r-2")
    second = world.execution(run)
    world.go_on(second)
    world.go_on(execution)
    return world, world.ledger.gates.get(gate.run_id, gate.name), world.run(run.run_id)


@pytest.mark.parametrize(
    ("target", "found"), [(same(), "CLEAN"), (same()[1:], None)], ids=["nothing", "nothing to delete"]
)
def test_a_newer_report_that_asks_for_less_supersedes_one_that_nobody_signed(
    target: list[dict[str, Any]], found: str | None
) -> None:
    world, gate, run = newer(target)
    assert (found, None if found else "repair") == (run.reason, run.waits_at)
    assert (GateStatus.SUPERSEDED, run.run_id) == (gate.status, gate.superseded_by)
    assert RunStatus.CANCELLED is world.run(gate.run_id).status


def test_a_newer_report_of_what_could_not_be_compared_supersedes_nothing() -> None:
    _, gate, run = newer([*same(), *same()])
    assert str(run.reason).startswith("INCOMPLETE")
    assert GateStatus.OPEN is gate.status


def test_an_older_report_supersedes_no_newer_one_when_its_execution_comes_back() -> None:
    world = world_of(same(), **ASKS)
    clean = world.ask(keys=None)
    execution = world.execution(clean)
    world.play(execution)
    assert world.rows is not None
    world.rows["target"][:] = drifted()  # type: ignore[index]
    gate = world.wait(world.execution(world.ask(keys=None, requestId="r-2")))
    world.clock.pass_(60)
    at = Position(phase=Phase.CONFIRM).document()
    world.settle.handle({"runId": clean.run_id, "generation": 1, "at": at})
    assert GateStatus.OPEN is world.ledger.gates.get(gate.run_id, gate.name).status


@pytest.mark.parametrize("by", ["told again", "asked"])
def test_evidence_that_was_not_made_with_the_report_is_made_by_whoever_comes_next(by: str) -> None:
    world, run, execution, gate = waiting()
    approve(world, gate)
    world.play(execution)
    made = world.reports.evidence(run.run_id)
    store: Any = world.artifacts.store
    store._objects.pop(evidence_key(run.run_id))  # as after one who died between the two
    if by == "told again":
        world.reports.leave(run.run_id)
        assert store.get(evidence_key(run.run_id))
    assert made == world.reports.evidence(run.run_id)


def test_the_evidence_names_everything_by_its_hash_and_tells_what_was_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, run, execution, gate = waiting()
    approve(world, gate)
    world.play(execution)
    found = world.reports.evidence(run.run_id)
    assert {} == found.changed
    manifest = found.manifest
    assert ("REPAIRED", WRITE) == (manifest.verdict, manifest.write_code)
    assert [(gate.name, "report", gate.sha256, "ann", ("user/bob",), BOB)] == [
        (one.name, one.kind, one.subject_sha256, one.requester, one.roles, one.decided_by)
        for one in manifest.gates
    ]
    assert [(gate.opened_at, gate.expires_at)] == [(one.opened_at, one.expires_at) for one in manifest.gates]
    assert set(world.ecs.tasks) == set(manifest.tasks)
    for name, key in (("repair", repair_key(run.run_id)), ("evidence", evidence_key(run.run_id))):
        validator = Draft202012Validator(json.loads(published_report(name)))
        assert [] == list(validator.iter_errors(json.loads(world.artifacts.store.get(key))))
    kinds = {"plan", "report", "repair", "findings", "repair plan", "verification"}
    assert {*kinds, "before-images and outcomes"} == {one.kind for one in manifest.objects}
    be(monkeypatch, "AKIAANN")
    with serving(api_of(world)) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        assert 0 == main(["evidence", run.run_id])
        assert gate.sha256 in capsys.readouterr().out
        for one in manifest.objects:
            key = place(one.location)[1]
            before = world.artifacts.store.get(key)
            world.artifacts.store.put(key, before + b"\n")
            assert [one.location] == list(world.reports.evidence(run.run_id).changed)
            world.artifacts.store.put(key, before)
        world.artifacts.store.put(key, b"")
        assert 1 == main(["evidence", run.run_id])
        assert "CHANGED" in capsys.readouterr().out


# What people see of it.


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with drift behind a socket, called by ann; what needs no person goes on between two calls."""
    world = world_of(drifted(), **ASKS)

    def go_on() -> None:
        for execution in list(world.steps.executions.values()):
            world.go_on(execution)

    be(monkeypatch, "AKIAANN")
    with serving(api_of(world), go_on) as address:
        monkeypatch.setenv("TRUEUP_API", address)
        yield world


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    """What a command prints, and how it exits."""
    assert code == main(list(words)), capsys.readouterr()
    return capsys.readouterr().out


def approved(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, run_id: str) -> str:
    """Bob approves what a run waits for; the gate as it was."""
    (gate,) = json.loads(said(capsys, "gates", run_id, "--json", code=3))["gates"]
    be(monkeypatch, "AKIABOB")
    said(capsys, "approve", run_id, gate["name"], "--sha", gate["sha256"][:8], code=0)
    be(monkeypatch, "AKIAANN")
    return str(gate["sha256"])


def test_commands_exit_with_3_while_a_report_waits_and_with_0_once_it_is_repaired(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id = said(capsys, "start", "numbers", "--wait", "--every", "0", code=3).splitlines()[0]
    said(capsys, "status", run_id, code=3)
    said(capsys, "gates", code=3)
    assert f"{run_id}  DRIFT" in said(capsys, "report", run_id, code=1)
    sha = approved(capsys, monkeypatch, run_id)
    said(capsys, "status", run_id, "--watch", "--every", "0", code=0)
    said(capsys, "gates", run_id, code=0)
    page = tmp_path / "page.html"
    told = said(capsys, "report", run_id, "--html", str(page), code=0)
    assert f"{run_id}  DRIFT" in told
    assert f"{run_id}  REPAIRED" in told
    assert "gate repair-and-delete approved by user/bob at 2026-01-01" in told
    assert sha in told
    assert "APPLIED insert 1" in told
    assert "VERIFIED delete 1" in told
    assert "APPLIED" in page.read_text()
    document = json.loads(said(capsys, "report", run_id, "--json", code=0))
    assert ("DRIFT", "REPAIRED") == (document["verdict"], document["repair"]["verdict"])


def test_commands_exit_with_1_for_a_repair_that_failed_and_show_what_was_seen(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing(monkeypatch)
    run_id = said(capsys, "start", "numbers", "--wait", "--every", "0", code=3).splitlines()[0]
    approved(capsys, monkeypatch, run_id)
    assert FAILED in said(capsys, "status", run_id, "--watch", "--every", "0", code=1)
    assert "FAILED" in said(capsys, "partitions", run_id, code=0)
    page = tmp_path / "page.html"
    told = said(capsys, "report", run_id, "--html", str(page), code=1)
    for line in (f"{run_id}  UNREPAIRED", "INTENDED delete 1", "UNTOUCHED delete 1", "VERIFIED insert 1"):
        assert line in told
    assert "the target is on fire" in told
    shown = page.read_text()
    assert "differs still: the row is as it was before it was to be changed" in shown
    (item,) = [row for row in shown.split("<tr>") if ">99<" in row and ">INTENDED<" in row]
    assert ">UNTOUCHED<" in item


def test_commands_exit_with_4_where_all_was_repaired_that_could_be_compared(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served.rows is not None
    served.rows["truth"].append({"id": 5, "v": "v5"})  # type: ignore[attr-defined]
    run_id = said(capsys, "start", "numbers", "--wait", "--every", "0", code=3).splitlines()[0]
    said(capsys, "report", run_id, code=4)
    approved(capsys, monkeypatch, run_id)
    said(capsys, "status", run_id, "--watch", "--every", "0", code=4)
    told = said(capsys, "report", run_id, code=4)
    assert f"{run_id}  PARTIAL" in told
    assert "VERIFIED insert 1" in told


def test_what_a_person_rejected_is_drift_still(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = said(capsys, "start", "numbers", "--wait", "--every", "0", code=3).splitlines()[0]
    said(capsys, "evidence", run_id, code=2)
    (gate,) = json.loads(said(capsys, "gates", run_id, "--json", code=3))["gates"]
    be(monkeypatch, "AKIABOB")
    words = ("reject", run_id, gate["name"], "--sha", gate["sha256"][:8])
    said(capsys, *words, code=2)
    said(capsys, *words, "--reason", "not these", code=0)
    said(capsys, "status", run_id, "--watch", "--every", "0", code=1)
    said(capsys, "report", run_id, code=1)
    said(capsys, "evidence", run_id, code=0)
    assert untouched(served)


def test_a_repair_that_was_taken_back_has_a_report_of_its_own(
    served: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id = said(capsys, "start", "numbers", "--wait", "--every", "0", code=3).splitlines()[0]
    approved(capsys, monkeypatch, run_id)
    said(capsys, "status", run_id, "--watch", "--every", "0", code=0)
    words = ("start", "numbers", "--undo", run_id, "--wait", "--every", "0")
    undo = said(capsys, *words, code=3).splitlines()[0]
    said(capsys, "report", undo, code=4)
    approved(capsys, monkeypatch, undo)
    said(capsys, "status", undo, "--watch", "--every", "0", code=0)
    page = tmp_path / "page.html"
    told = said(capsys, "report", undo, "--html", str(page), code=0)
    assert f"{undo}  UNDONE" in told
    assert f"takes back what {run_id} repaired" in told
    assert f"taking back the repair of {run_id}" in page.read_text()
    assert undo == json.loads(said(capsys, "report", undo, "--json", code=0))["runId"]
    client = Client(api_of(served))
    assert 404 == client.problem("GET", f"/runs/{undo}/comparison")[0]
    assert 2 == main(["start", "numbers", "--undo", run_id])
    assert f"{run_id} was taken back by {undo}: nothing is left of it." in capsys.readouterr().err


def test_a_run_that_repaired_nothing_has_no_repair() -> None:
    world = world_of(drifted())
    run = world.ask(keys=None)
    status, _, _, told = Client(api_of(world)).problem("GET", f"/runs/{run.run_id}/repair")
    assert (404, True) == (status, f"Run {run.run_id} repaired nothing." in told)


def test_a_repair_that_may_still_come_is_pending() -> None:
    world, run, _, _ = waiting()
    assert 202 == Client(api_of(world)).call("GET", f"/runs/{run.run_id}/repair")[0]
