"""The page of a reconciliation: what was found, signed, done and seen later, for whoever signs it off."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from trueup.artifacts import comparison_key, evidence_key, repair_key
from trueup.artifacts.findings import listed
from trueup.artifacts.store import place
from trueup.model.base import sha256
from trueup.model.reconciled import Reconciled
from trueup.model.repair import RepairOutcome
from trueup.model.states import GateStatus, Phase
from trueup.reporting import Reports, comparison_page, reconciled
from trueup.testing import LocalRun
from trueup.testing.suites.support import a_run

from .reconcile_cases import damaged, job, rows, run_of
from .test_handlers_reconcile import drifted, world_of
from .test_handlers_repair import ASKS, BOB, approve, waiting
from .test_repair import repair_of, undo_of
from .test_reporting import RECONCILED, SAMPLES, Outline


def sample(name: str) -> Reconciled:
    """A reconciliation that is checked in."""
    return Reconciled.model_validate_json((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def said(found: Reconciled) -> str:
    """What a page says, without its elements."""
    return " ".join(" ".join(Outline(comparison_page(found)).text).split())


def of(run: LocalRun) -> Reconciled:
    reports = Reports(run.ledger, run.artifacts)
    reports.leave(run.run_id)
    return reports.reconciled(run.run_id)


def test_the_samples_can_be_told_apart() -> None:
    clean, drift = map(sample, RECONCILED)
    assert clean.report is not None
    assert drift.report is not None
    assert drift.repair is not None
    assert ("CLEAN", None, []) == (clean.report.verdict, clean.repair, clean.gates)
    assert ("DRIFT", "UNREPAIRED") == (drift.report.verdict, drift.repair.verdict)
    assert {RepairOutcome.APPLIED, RepairOutcome.STALE_TRUTH, RepairOutcome.STALE_TARGET} == {
        one.outcome for one in drift.items
    }


def test_the_page_says_who_signed_which_hash_until_when_and_what_was_done() -> None:
    found = sample("reconciled-drift")
    text = said(found)
    (gate,) = found.gates
    assert found.repair is not None
    assert found.report is not None
    assert found.report_sha256 == gate.subject_sha256
    assert f"Asks about this report, SHA-256 {found.report_sha256}" in text
    assert f"Asked by {gate.requester} at {gate.opened_at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert f"Decided by {gate.decided_by} at {gate.decided_at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert f"Good until {gate.expires_at:%Y-%m-%d %H:%M:%S} UTC" in text
    for line in [*found.repair.outcomes, *found.repair.verified]:
        assert any(f"{line.outcome} {line.action.value} {rest} {line.items}" in text for rest in MEANINGS)
    for one in found.items:
        later = one.later.value if one.later else "not looked at"
        assert f"{one.key[0]} {one.action.value} {one.outcome.value} {later}" in text
    assert str(found.repair.code.image_digest) in text
    assert f"{found.evidence}, SHA-256 {found.evidence_sha256}" in text
    for one in [*found.report.lists, *found.repair.lists]:
        assert one.location in text


MEANINGS = (
    "the target holds what was intended, by this run's own write",
    "the truth was not as it was signed; nothing was changed",
    "the target was not as it was signed; nothing was changed",
    "right at a later look",
)


def test_where_nothing_was_repaired_the_page_says_so() -> None:
    text = said(sample("reconciled-clean"))
    assert "Repair Nothing was repaired." in text
    assert "Approval No person was asked for anything." in text
    assert "Code that wrote none" in text
    text = said(of(_ended(run_of(damaged()[0]))))
    assert "Repair Nothing was repaired." in text
    assert "APPLIED" not in text


def _ended(run: LocalRun) -> LocalRun:
    run.run()
    return run


@pytest.mark.parametrize("name", RECONCILED)
def test_it_is_signed_off_by_its_hashes_with_a_name_and_a_date(name: str) -> None:
    found = sample(name)
    text = said(found).partition("Sign-off")[2]
    assert f"run {found.run_id} with the verdict {found.verdict}" in text
    for sha in filter(None, (found.report_sha256, found.repair_sha256, found.evidence_sha256)):
        assert sha in text
    for blank in ("Name", "Date", "Signature"):
        assert f"{blank} to be filled in by hand" in text


def test_the_hashes_are_those_of_what_is_stored() -> None:
    run = _ended(repair_of(damaged()[0]))
    found, store = of(run), run.artifacts.store
    keys = (comparison_key(run.run_id, "json"), repair_key(run.run_id), evidence_key(run.run_id))
    assert [sha256(store.get(key)) for key in keys] == [
        found.report_sha256,
        found.repair_sha256,
        found.evidence_sha256,
    ]
    assert store.location(keys[2]) == found.evidence


@pytest.mark.parametrize("name", RECONCILED)
def test_the_page_needs_nothing_from_elsewhere_and_can_be_read_without_seeing_it(name: str) -> None:
    outline = Outline(comparison_page(sample(name)))
    assert [] == outline.open
    assert {"script", "link", "img", "iframe"}.isdisjoint(tag for tag, _ in outline.tags)
    assert not [one for _, one in outline.tags if {"src", "href", "onload", "onclick"} & one.keys()]
    assert [{"lang": "en"}] == outline.of("html")
    assert (1, 1) == (len(outline.of("h1")), len(outline.of("main")))
    assert len(outline.of("table")) == len(outline.of("caption"))
    assert all("scope" in head for head in outline.of("th"))
    (section,) = outline.of("section")
    assert [section["aria-labelledby"]] == [one["id"] for one in outline.of("h2") if "id" in one]


def test_whatever_people_and_tables_wrote_stays_text() -> None:
    evil = "<script>alert('&')</script>"
    found = sample("reconciled-drift")
    gate = found.gates[0].model_copy(update={"comment": evil, "decided_by": evil, "requester": evil})
    item = found.items[0].model_copy(update={"key": (evil,), "detail": evil})
    changes = {"comment": evil, "requester": evil, "gates": [gate], "items": [item], "changed": [evil]}
    outline = Outline(comparison_page(found.model_copy(update=changes)))
    assert not outline.of("script")
    assert " ".join(outline.text).count(evil) >= 7


def test_a_page_that_is_looked_at_before_the_decision_says_what_it_waits_for() -> None:
    world, run, execution, gate = waiting()
    text = said(world.reports.reconciled(run.run_id))
    until = f"{gate.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"Nothing was repaired so far: the gate {gate.name} waits for a person until {until}." in text
    assert "Decided by nobody" in text
    assert "May decide user/bob" in text
    approve(world, gate)
    assert "is approved, and not passed yet" in said(world.reports.reconciled(run.run_id))
    world.play(execution)
    text = said(world.reports.reconciled(run.run_id))
    assert "REPAIRED DRIFT was found" in text
    assert f"Decided by {BOB}" in text


def test_what_was_rejected_was_not_repaired() -> None:
    world, run, execution, gate = waiting()
    world.gating.wake(
        world.ledger.gates.decide(
            run.run_id, gate.name, GateStatus.REJECTED, who=BOB, sha256=gate.sha256, comment="not these"
        )
    )
    world.play(execution)
    text = said(world.reports.reconciled(run.run_id))
    assert f"Gate {gate.name}: REJECTED" in text
    assert "not these" in text
    assert "Repair Nothing was repaired." in text


def test_an_approval_of_another_hash_is_not_called_this_reports() -> None:
    found = sample("reconciled-drift").model_copy(update={"report_sha256": "a" * 64})
    assert "Asks about another report than this one" in said(found)


def test_a_repair_that_was_taken_back_says_by_which_run_and_that_run_says_of_what() -> None:
    both, _ = damaged()
    first = _ended(repair_of(both))
    assert "No run took this repair back." in said(of(first))
    undo = _ended(undo_of(first, both))
    text = said(of(first))
    assert f"{undo.run_id} SUCCEEDED UNDONE" in text
    text = said(of(undo))
    assert f"taking back the repair of {first.run_id}" in text
    assert f"Asks about the repair of run {first.run_id}" in text
    assert "What was taken back" in text
    assert "--undo" not in text


def test_the_run_that_took_a_repair_back_is_told_however_many_were_started_since() -> None:
    both, _ = damaged()
    first = _ended(repair_of(both))
    undo = _ended(undo_of(first, both))
    for _ in range(1_100):
        first.ledger.runs.create(a_run())
    assert f"{undo.run_id} SUCCEEDED UNDONE" in said(of(first))


def test_the_first_items_of_each_outcome_are_shown_and_the_counts_stay_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciled, "SHOWN_OF_EACH", 2)
    both, wrong = damaged()
    run = repair_of(both)
    while run.phase is not Phase.REPAIR:
        assert run.step() is not None
    stale = [key for key, kind in wrong.items() if kind == "MISMATCHED"][:3]
    for row in both["truth"]:
        if row["id"] in stale:
            row["v"] = "later"
    run.run()
    found = of(run)
    shown = Counter(one.outcome.value for one in found.items)
    assert {"APPLIED": 2, "STALE_TRUTH": 2} == shown
    assert RepairOutcome.STALE_TRUTH is found.items[0].outcome
    assert found.repair is not None
    assert len(wrong) == sum(one.items for one in found.repair.outcomes)


def test_items_whose_object_was_changed_are_told_and_not_shown() -> None:
    run = _ended(repair_of(damaged()[0]))
    first = next(
        one
        for found in run.repaired.lists
        if found.phase is Phase.REPAIR
        for one in listed(run.artifacts, found)
        if b'"outcome"' in _bytes(run, one.location)
    )
    told = {tuple(json.loads(line)["key"]) for line in _bytes(run, first.location).splitlines()}
    run.artifacts.store.put(place(first.location)[1], b"")
    found = of(run)
    assert [True] == [first.location.partition("memory/")[2] in one for one in found.changed]
    assert told
    assert told.isdisjoint(one.key for one in found.items)
    assert len(found.items) > 0
    assert "what they were kept in is not what it was" in said(found)


def _bytes(run: LocalRun, location: str) -> bytes:
    return run.artifacts.store.get(place(location)[1])


def test_before_anything_is_compared_there_is_no_page_and_then_there_is() -> None:
    world = world_of(drifted(), **ASKS)
    run = world.ask(keys=None)
    assert (None, None) == (world.reports.repair_page(run.run_id), world.reports.comparison_page(run.run_id))
    clean: Any = _ended(run_of(rows(), job()))
    assert Reports(clean.ledger, clean.artifacts).comparison_page(clean.run_id)
