"""What speaks against a word at a gate, and what a refused write of one means."""

from __future__ import annotations

from collections.abc import Iterable

from trueup.errors import (
    AlreadyDecided,
    ApprovalExpired,
    GateRefused,
    NotAnApprover,
    NotApproved,
    OtherRun,
    OtherSubject,
    OwnRequest,
    Stale,
)
from trueup.ledger.table import Clause, ConditionFailed, Item
from trueup.model.gate import Gate
from trueup.model.people import is_one_of, person
from trueup.model.states import GateStatus

_G = GateStatus

UNDECIDED = Clause("nobody decided yet", "status", "=", _G.OPEN.value)
APPROVED = Clause("it is approved, and not used yet", "status", "=", _G.APPROVED.value)


def own(run_id: str) -> Clause:
    """The gate was not copied from another run."""
    return Clause("the gate is this run's", "runId", "=", run_id)


def about(sha256: str) -> Clause:
    """The gate asks about what the caller names."""
    return Clause("this hash is what is asked about", "sha256", "=", sha256)


def said_before(gate: Gate, to: GateStatus, who: str, sha256: str) -> bool:
    """Whether this person decided so before, about the same."""
    same = (_G.APPROVED, _G.SPENT) if to is _G.APPROVED else (_G.REJECTED,)
    by = person(gate.decided_by or "")
    return gate.status in same and gate.sha256 == sha256 and by == person(who)


def check_person(gate: Gate, who: str, to: GateStatus, *, roles: tuple[str, ...], requester: str) -> None:
    """Whoever asked for a run may take it back, and not approve it. Raises OwnRequest, NotAnApprover."""
    if to is not _G.APPROVED and person(who) == person(requester):
        return
    check_second_person(
        who,
        requester,
        roles,
        own=f"{who} asked for run {gate.run_id}, and so cannot approve it.",
        stranger=f"{who} is none of those whose word counts at gate {gate.name} of run {gate.run_id}.",
        found=gate.document(),
    )


def check_second_person(
    who: str, requester: str, roles: tuple[str, ...], *, own: str, stranger: str, found: Item | None = None
) -> None:
    """Who signs is not who asked, and has one of the roles where there are any.

    `own` and `stranger` say so of whoever is not. Raises OwnRequest, NotAnApprover.
    """
    if person(who) == person(requester):
        raise OwnRequest(
            own,
            clause="approver and requester are two people",
            wanted=who,
            found=found,
            remedy="Ask somebody else to look at it.",
        )
    check_role(who, roles, stranger=stranger, found=found)


def check_role(who: str, roles: tuple[str, ...], *, stranger: str, found: Item | None = None) -> None:
    """Who signs has one of the roles where there are any; `stranger` says so of whoever has not.

    Raises NotAnApprover.
    """
    if roles and not is_one_of(who, roles):
        raise NotAnApprover(
            stranger,
            clause="the decider has a role that the job lists",
            wanted=who,
            found=found,
            remedy=f"Ask one of {', '.join(roles)}.",
        )


def _error(
    kind: type[GateRefused], refusal: ConditionFailed, wanted: str, what: str, remedy: str = ""
) -> GateRefused:
    return kind(what, clause=str(refusal), wanted=wanted, found=refusal.old, remedy=remedy)


def decided(found: Item, *, wanted: str, clause: str = UNDECIDED.name) -> AlreadyDecided:
    """The error for a gate that does not wait any more."""
    by = f" by {found['decidedBy']}" if found.get("decidedBy") else ""
    return AlreadyDecided(
        f"Gate {found.get('name')} of run {found.get('runId')} is {found.get('status')}{by}.",
        clause=clause,
        wanted=wanted,
        found=found,
        remedy="It does not wait any more: an approval serves once.",
    )


def moved(gate: Gate, refusal: ConditionFailed) -> Stale:
    """The error for a gate that is not as it was read."""
    return Stale(
        f"Gate {gate.name} of run {gate.run_id} changed meanwhile.",
        clause=str(refusal),
        wanted=gate.sha256,
        found=refusal.old,
        remedy="Read it again and decide again.",
    )


def refused(gate: Gate, sha256: str, refusal: ConditionFailed, waiting: Iterable[Gate]) -> GateRefused:
    """What it means that a write to a gate was refused for this hash; `waiting` are all gates that wait."""
    found, clause = refusal.old or {}, refusal.clause
    asked = clause.attribute if clause else ""
    name = f"gate {gate.name} of run {gate.run_id}"
    if asked == "runId":
        said = f"The approval at {name} was given to run {found.get('runId')}."
        return _error(OtherRun, refusal, sha256, said, "Find out who wrote the gate; start the run again.")
    if asked == "sha256":
        return _other_subject(gate, sha256, refusal, waiting)
    if asked == "expiresAt":
        said = f"The time of {name} was over at {found.get('expiresAt')}."
        return _error(ApprovalExpired, refusal, sha256, said, "Start the run again.")
    if clause is APPROVED and found.get("status") in (_G.OPEN.value, _G.REJECTED.value):
        said = f"{name} is {found.get('status')}: nobody approved it."
        return _error(NotApproved, refusal, sha256, said, f"See `trueup gates {gate.run_id}`.")
    return decided(found, wanted=sha256, clause=str(refusal))


def _other_subject(gate: Gate, sha256: str, refusal: ConditionFailed, waiting: Iterable[Gate]) -> GateRefused:
    look = f"Look at what waits with `trueup gates {gate.run_id}`, and name its hash."
    for other in waiting:
        if other.sha256 == sha256 and other.run_id != gate.run_id:
            said = f"{sha256[:12]} is the {other.kind.value} of run {other.run_id}, not of {gate.run_id}."
            return _error(OtherRun, refusal, sha256, said, look)
    said = f"Gate {gate.name} of run {gate.run_id} asks about {_hash(refusal)}, not about {sha256[:12]}."
    return _error(OtherSubject, refusal, sha256, said, look)


def _hash(refusal: ConditionFailed) -> str:
    return str((refusal.old or {}).get("sha256"))[:12]
