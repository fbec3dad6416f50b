"""What the page of a reconciliation says after its findings: what was signed, done and seen later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from trueup.model.evidence import GateEvidence
from trueup.model.reconciled import ItemLine, Reconciled
from trueup.model.repair import OutcomeLine, RepairOutcome, RepairReport, Verification
from trueup.model.states import RUN_ENDS, GateStatus
from trueup.reporting.markup import facts, figure, instant, table

_OUTCOMES: Mapping[str, str] = {
    RepairOutcome.APPLIED: "the target holds what was intended, by this run's own write",
    RepairOutcome.STALE_TRUTH: "the truth was not as it was signed; nothing was changed",
    RepairOutcome.STALE_TARGET: "the target was not as it was signed; nothing was changed",
    RepairOutcome.FAILED: "the target did not take the row",
    RepairOutcome.INTENDED: "the run ended before it was told whether the target took the row",
}
_VERIFICATIONS: Mapping[str, str] = {
    Verification.VERIFIED: "right at a later look",
    Verification.REAPPEARED: "differs again",
    Verification.UNTOUCHED: "differs still: the row is as it was before it was to be changed",
}
_NO_GATE = "No person was asked for anything."
_WAITS = {
    GateStatus.OPEN: "Nothing was repaired so far: the gate {name} waits for a person until {until}.",
    GateStatus.APPROVED: "Nothing was repaired so far: the gate {name} is approved, and not passed yet.",
    GateStatus.SPENT: "The repair was approved and goes on; what it came to is told when it is through.",
}


def gates(found: Reconciled) -> Iterator[str]:
    """Each gate: who asked, who decided, when, about which hash."""
    yield "<h2>Approval</h2>"
    if not found.gates:
        yield f"<p>{_NO_GATE}</p>"
    for gate in found.gates:
        yield f"<h3>Gate {escape(gate.name)}: {gate.status.value}</h3>"
        yield from facts(_told(gate, found))


def _told(gate: GateEvidence, found: Reconciled) -> dict[str, str]:
    decided = "nobody"
    if gate.decided_by and gate.decided_at:
        said = f": {gate.comment}" if gate.comment else ""
        decided = f"{gate.decided_by} at {instant(gate.decided_at)}{said}"
    told = {
        "Asks about": f"{_subject(gate, found)}, SHA-256 {gate.subject_sha256}",
        "Asked by": f"{gate.requester} at {instant(gate.opened_at)}",
        "May decide": ", ".join(gate.roles) or "everybody but the requester",
        "Decided by": decided,
        "Good until": instant(gate.expires_at),
    }
    return told | ({"Used at": instant(gate.spent_at)} if gate.spent_at else {})


def _subject(gate: GateEvidence, found: Reconciled) -> str:
    if found.undoes:
        return f"the repair of run {found.undoes}"
    if gate.subject_sha256 == found.report_sha256:
        return "this report"
    return f"another {gate.kind.value} than this one"


def repair(found: Reconciled) -> Iterator[str]:
    """What was done, and what was seen later; or that nothing was."""
    yield f"<h2>{'What was taken back' if found.undoes else 'Repair'}</h2>"
    if found.repair is None:
        yield f"<p>{escape(_why_not(found))}</p>"
        return
    yield from _figures(found.repair)
    yield from _reasons(found.repair)
    yield _counted("What became of the items", found.repair.outcomes, _OUTCOMES)
    if found.repair.verified:
        yield _counted("What a later look said of them", found.repair.verified, _VERIFICATIONS)
    else:
        yield "<p>Nothing was looked at again.</p>"
    yield from _items(found)
    yield from _undo(found)


def _why_not(found: Reconciled) -> str:
    for gate in found.gates:
        if found.status not in RUN_ENDS and gate.status in _WAITS:
            return _WAITS[gate.status].format(name=gate.name, until=instant(gate.expires_at))
    return "Nothing was repaired."


def _figures(report: RepairReport) -> Iterator[str]:
    applied = _number(report.outcomes, RepairOutcome.APPLIED)
    untold = _number(report.outcomes, RepairOutcome.INTENDED)
    verified = _number(report.verified, Verification.VERIFIED)
    yield '<dl class="figures">'
    yield figure("Items", f"{report.items:,}", "that were approved")
    yield figure("Applied", f"{applied:,}", f"of {report.items:,}")
    yield figure("Verified", f"{verified:,}", f"of {applied + untold:,}")
    yield figure("Reappeared", f"{_number(report.verified, Verification.REAPPEARED):,}", "differ again")
    yield "</dl>"


def _number(lines: list[OutcomeLine], outcome: str) -> int:
    return sum(line.items for line in lines if line.outcome == outcome)


def _reasons(report: RepairReport) -> Iterator[str]:
    if report.reasons:
        yield "<ul>"
        yield from (f"<li>{escape(reason)}</li>" for reason in report.reasons)
        yield "</ul>"


def _counted(caption: str, lines: list[OutcomeLine], meanings: Mapping[str, str]) -> str:
    rows = [[line.outcome, line.action.value, meanings.get(line.outcome, ""), line.items] for line in lines]
    return table(caption, ["Outcome", "Action", "Meaning", "Items"], rows)


def _items(found: Reconciled) -> Iterator[str]:
    if found.changed:
        yield "<p>Not all items can be shown, since what they were kept in is not what it was:</p><ul>"
        yield from (f"<li>{escape(one)}</li>" for one in found.changed)
        yield "</ul>"
    if found.items:
        columns = ["Key", "Action", "Outcome", "Later", "Detail"]
        yield table("The first items of each outcome", columns, map(_item, found.items))


def _item(one: ItemLine) -> list[str]:
    later = one.later.value if one.later else "not looked at"
    return [", ".join(one.key), one.action.value, one.outcome.value, later, one.detail]


def _undo(found: Reconciled) -> Iterator[str]:
    if found.undoes:
        return
    yield "<h3>Taking it back</h3>"
    if not found.undone_by:
        yield "<p>No run took this repair back.</p>"
        command = f"trueup start {found.job} --undo {found.run_id}"
        yield f"<p><code>{escape(command)}</code> asks for it, with an approval of its own.</p>"
        return
    rows = [[one.run_id, one.status.value, one.reason] for one in found.undone_by]
    yield table("Runs that were asked to take it back", ["Run", "State", "Reason"], rows)


def ran(found: Reconciled) -> Iterator[str]:
    """Which code wrote, and where all of it lies."""
    report, repaired = found.report, found.repair
    read, write = report.code if report else None, repaired.code if repaired else None
    told = {
        "Asked for at": instant(found.created_at),
        "Repair ended at": instant(repaired.finished_at) if repaired and repaired.finished_at else "none",
        "Plan": f"SHA-256 {sha}" if (sha := _plan(found)) else "none",
        "Code that compared": f"{read.task_definition}, {read.image_digest}" if read else "none",
        "Code that wrote": f"{write.task_definition}, {write.image_digest}" if write else "none",
        "Evidence": _evidence(found),
    }
    yield "<h2>What ran, and the evidence</h2>"
    yield from facts(told)


def _plan(found: Reconciled) -> str:
    one = found.report or found.repair
    return one.plan_sha256 if one else ""


def _evidence(found: Reconciled) -> str:
    if found.evidence is None:
        return "kept when the run has ended"
    return f"{found.evidence}, SHA-256 {found.evidence_sha256}; trueup evidence {found.run_id} checks it"


def sign_off(found: Reconciled) -> Iterator[str]:
    """What is signed, by its hashes, and room for a name, a date and a signature."""
    hashes = {
        "Report": found.report_sha256,
        "Repair": found.repair_sha256,
        "Evidence": found.evidence_sha256,
    }
    yield '<section class="sign" aria-labelledby="sign-off">'
    yield '<h2 id="sign-off">Sign-off</h2>'
    signed = f"Signed is run {found.run_id} with the verdict {found.verdict}, as these hashes name it."
    yield f"<p>{escape(signed)}</p>"
    yield from facts({name: f"SHA-256 {sha}" for name, sha in hashes.items() if sha})
    yield '<dl class="blanks">'
    for name in ("Name", "Date", "Signature"):
        yield f'<div><dt>{name}</dt><dd><span class="unseen">to be filled in by hand</span></dd></div>'
    yield "</dl>"
    yield "</section>"
