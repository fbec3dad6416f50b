"""Gates: asked for, decided once by a person, spent once by the run; each in a transaction with its audit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from trueup.clock import Clock
from trueup.errors import GateRefused, NotApproved, NotFound, NotOnTrail
from trueup.ledger import keys
from trueup.ledger.audit import Audit
from trueup.ledger.gate_rules import (
    APPROVED,
    UNDECIDED,
    about,
    check_person,
    decided,
    moved,
    own,
    refused,
    said_before,
)
from trueup.ledger.runs import closed, open_clauses
from trueup.ledger.table import Clause, ConditionFailed, Item, Table, TransactionFailed, Write
from trueup.model.gate import Asked, Gate
from trueup.model.ledger import Run
from trueup.model.states import DECISIONS, RUN_ENDS, GateStatus, RunStatus, gate_may_become

_G = GateStatus
_VERBS = {_G.APPROVED: "approve", _G.REJECTED: "reject"}
_ENDINGS = {_G.EXPIRED: "expire", _G.SUPERSEDED: "supersede", _G.WITHDRAWN: "withdraw"}


class Gates:
    """The GATE items of runs, and the list of those that wait."""

    def __init__(self, table: Table, clock: Clock, audit: Audit) -> None:
        self._table = table
        self._clock = clock
        self._audit = audit

    def find(self, run_id: str, name: str) -> Gate | None:
        """A gate as it stands; None where it was never asked for."""
        item = self._table.get(keys.gate(run_id, name))
        return None if item is None else _read(item)

    def get(self, run_id: str, name: str) -> Gate:
        """A gate as it stands. Raises NotFound where it was never asked for."""
        gate = self.find(run_id, name)
        if gate is None:
            raise NotFound(
                f"Run {run_id} has no gate {name}.", remedy=f"See what it has with `trueup gates {run_id}`."
            )
        return gate

    def of(self, run_id: str) -> Iterator[Gate]:
        """All gates that a run came to, by name."""
        return map(_read, self._table.query(keys.run(run_id)[0], "GATE#"))

    def waiting(self) -> Iterator[Gate]:
        """Every gate of every run that nobody decided yet, by run."""
        listed = [(one["runId"], one["name"]) for one in self._table.query(keys.GATES, "ID#")]
        found = self._table.get_many([keys.gate(*one) for one in listed])
        gates = [_read(found[key]) for one in listed if (key := keys.gate(*one)) in found]
        return (gate for gate in gates if gate.is_waiting)

    def open(self, run: Run, asked: Asked) -> Gate:
        """Ask for a decision, and let the run wait for it. Asked again about the same, the gate as it stands.

        About something else it is asked anew: an approval goes by what it names. Raises RunClosed; Stale
        where another asked meanwhile, AlreadyDecided where the gate's end was the run's.
        """
        found = self.find(run.run_id, asked.name)
        if found is not None and found.subject == asked.subject:
            return found
        if found is not None and not gate_may_become(found.status, _G.OPEN):
            raise decided(found.document(), wanted=asked.subject.sha256)
        gate = self._asked(run, asked)
        try:
            self._table.transact(self._asking(run, gate, found))
        except TransactionFailed as failed:
            shut = failed.of(keys.run(run.run_id))
            if shut is not None:
                raise closed(run.run_id, shut) from failed
            raise moved(gate, failed.refusals[0]) from failed
        return gate

    def _asked(self, run: Run, asked: Asked) -> Gate:
        now = self._clock.now().replace(microsecond=0)
        return Gate(
            run_id=run.run_id,
            name=asked.name,
            job=run.job,
            kind=asked.subject.kind,
            key=asked.subject.key,
            sha256=asked.subject.sha256,
            roles=asked.roles,
            requester=run.requester,
            opened_at=now,
            expires_at=now + timedelta(seconds=max(1, round(asked.hours * 3600))),
            generation=run.generation,
        )

    def _asking(self, run: Run, gate: Gate, found: Gate | None) -> list[Write]:
        unasked = Clause("the gate is new", "status", "absent")
        waits = {
            "waitsAt": gate.name,
            "openSeconds": int(run.open_for(self._clock.now())),
            "passed": {name: sha256 for name, sha256 in run.passed.items() if name != gate.name},
        }
        return [
            Write(
                keys.gate(run.run_id, gate.name),
                item=_stored(gate),
                clauses=(unasked,) if found is None else _as_read(found),
            ),
            Write(keys.run(run.run_id), sets=waits, clauses=open_clauses(run.generation)),
            Write(keys.waiting(run.run_id, gate.name), item={"runId": run.run_id, "name": gate.name}),
            self._trail(gate, found, "ask", who="trueup:gate"),
        ]

    def wait(self, run: Run, name: str, sha256: str, token: str) -> Gate:
        """Remember what wakes the execution that waits, in the place of an earlier one.

        Raises AlreadyDecided, OtherSubject; Stale where a later generation waits.
        """
        newest = Clause("no later generation waits", "generation", "<=", run.generation)
        write = Write(
            keys.gate(run.run_id, name),
            sets={"token": token, "generation": run.generation},
            clauses=(about(sha256), UNDECIDED, newest),
        )
        try:
            old = self._table.write(write)
        except ConditionFailed as refusal:
            if refusal.clause is newest:
                raise moved(_read(refusal.old or {}), refusal) from refusal
            raise self._refused(_read(refusal.old or {}), sha256, refusal) from refusal
        return _read(write.applied_to(old) or {})

    def decide(
        self, run_id: str, name: str, to: GateStatus, *, who: str, sha256: str, comment: str = ""
    ) -> Gate:
        """Approve or reject what has this hash. The same word of the same person again changes nothing.

        Raises NotFound, NotAnApprover, OwnRequest, OtherSubject, OtherRun, AlreadyDecided, ApprovalExpired;
        RunClosed where the run has ended. ValueError for what is no decision.
        """
        if to not in DECISIONS:
            raise ValueError(f"{to} is no decision")
        gate = self.get(run_id, name)
        check_person(gate, who, to, roles=gate.roles, requester=gate.requester)
        if said_before(gate, to, who, sha256):
            return gate
        return self._decide(gate, to, who, sha256, comment)

    def _decide(self, gate: Gate, to: GateStatus, who: str, sha256: str, comment: str) -> Gate:
        key, run_key = keys.gate(gate.run_id, gate.name), keys.run(gate.run_id)
        now = self._clock.now()
        decided = {"status": to, "decided_by": who, "decided_at": now, "comment": comment}
        after = gate.model_copy(update={**decided, "sha256": sha256})
        told = {name: after.document()[name] for name in ("status", "decidedBy", "decidedAt", "comment")}
        status = sorted(one.value for one in RunStatus if one not in RUN_ENDS)
        alive = Clause("the run has not ended", "status", "in", status)
        clauses = (about(sha256), UNDECIDED, self._in_time())
        try:
            self._table.transact(
                [
                    Write(key, sets=told, clauses=clauses),
                    Write(run_key, clauses=(alive,)),
                    Write(keys.waiting(gate.run_id, gate.name), delete=True),
                    self._trail(after, gate, _VERBS[to], who=who, why=comment),
                ]
            )
        except TransactionFailed as failed:
            refusal = failed.of(key)
            if refusal is None:
                raise closed(gate.run_id, failed.refusals[0]) from failed
            found = _read(refusal.old or {})
            if said_before(found, to, who, sha256):
                return found
            raise self._refused(gate, sha256, refusal) from failed
        return after

    def spend(self, run: Run, name: str, sha256: str, roles: tuple[str, ...]) -> Gate:
        """Use the approval of what has this hash: the run goes on, in this and all later generations.

        Everything is asked again, by the job's own roles and the run's own requester and not by what the
        gate says of them. Raises RunClosed, NotApproved, OtherRun, OtherSubject, ApprovalExpired,
        NotAnApprover, OwnRequest, NotOnTrail, AlreadyDecided.
        """
        gate = self.get(run.run_id, name)
        if _is_passed(run, gate, sha256):
            return gate
        self._check_approval(run, gate, roles)
        now = self._clock.now()
        after = gate.model_copy(
            update={"status": _G.SPENT, "spent_by": run.generation, "spent_at": now, "sha256": sha256}
        )
        told = {one: after.document()[one] for one in ("status", "spentBy", "spentAt")}
        goes_on = {"passed": {**run.passed, name: sha256}, "openedAt": _text(now)}
        write = Write(
            keys.gate(run.run_id, name),
            sets=told,
            removes=("token",),
            clauses=(own(run.run_id), about(sha256), APPROVED, self._in_time()),
        )
        on_run = Write(
            keys.run(run.run_id), sets=goes_on, removes=("waitsAt",), clauses=open_clauses(run.generation)
        )
        self._spend(run, gate, write, on_run, self._trail(after, gate, "spend", who="trueup:gate"))
        return after

    def _spend(self, run: Run, gate: Gate, write: Write, on_run: Write, trail: Write) -> None:
        try:
            self._table.transact([write, on_run, trail])
        except TransactionFailed as failed:
            refusal = failed.of(write.key)
            if refusal is None:
                raise closed(run.run_id, failed.refusals[0]) from failed
            wanted = str(write.clauses[1].value)
            raise self._refused(gate, wanted, refusal) from failed

    def check_passed(self, run: Run, name: str, sha256: str) -> None:
        """For whatever begins behind a gate: that the run passed it, with this hash. Raises NotApproved."""
        gate = self.find(run.run_id, name)
        if gate is None or not _is_passed(run, gate, sha256):
            raise NotApproved(
                f"Run {run.run_id} did not pass its gate {name} for {sha256[:12]}.",
                clause="the run passed the gate with this hash",
                wanted=sha256,
                found=None if gate is None else gate.document(),
                remedy="Nothing is written before somebody approved it; look at `trueup gates`.",
            )

    def end(self, gate: Gate, to: GateStatus, *, who: str, why: str, by: str | None = None) -> Gate:
        """Let a gate end without a person's word; `by` names the run that superseded it.

        Asked again, nothing changes. Raises Stale where somebody decided meanwhile.
        """
        if gate.status is to:
            return gate
        if to not in _ENDINGS or not gate_may_become(gate.status, to):
            raise ValueError(f"gate {gate.name} of {gate.run_id} is {gate.status} and cannot become {to}")
        after = gate.model_copy(update={"status": to, "superseded_by": by})
        sets = {"status": to.value} if by is None else {"status": to.value, "supersededBy": by}
        write = Write(keys.gate(gate.run_id, gate.name), sets=sets, clauses=_as_read(gate))
        unlisted = Write(keys.waiting(gate.run_id, gate.name), delete=True)
        try:
            self._table.transact([write, unlisted, self._trail(after, gate, _ENDINGS[to], who=who, why=why)])
        except TransactionFailed as failed:
            (refusal,) = failed.refusals
            found = _read(refusal.old or {})
            if found.status is to:
                return found
            raise moved(gate, refusal) from failed
        return after

    def _trail(self, after: Gate, before: Gate | None, verb: str, *, who: str, why: str = "") -> Write:
        return self._audit.entry(
            after.run_id,
            who=who,
            verb=verb,
            subject=f"gate {after.name}",
            why=why,
            before=before and {"status": before.status.value, "sha256": before.sha256},
            after={"status": after.status.value, "sha256": after.sha256},
        )

    def _in_time(self) -> Clause:
        # Both to the second, so that texts compare as instants do.
        now = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
        return Clause("the gate's time is not over", "expiresAt", ">", now)

    def _check_approval(self, run: Run, gate: Gate, roles: tuple[str, ...]) -> None:
        if gate.status is not _G.APPROVED or gate.decided_by is None:
            return  # The write's own clauses refuse it.
        check_person(gate, gate.decided_by, _G.APPROVED, roles=roles, requester=run.requester)
        if not self._is_on_trail(gate):
            raise NotOnTrail(
                f"Gate {gate.name} of run {run.run_id} says that {gate.decided_by} approved "
                f"{gate.sha256[:12]}, and the audit trail does not.",
                clause="the audit trail tells of the approval",
                wanted=gate.sha256,
                found=gate.document(),
                remedy="Find out who wrote the gate; cancel the run, and start it again.",
            )

    def _is_on_trail(self, gate: Gate) -> bool:
        told = (_VERBS[_G.APPROVED], f"gate {gate.name}", gate.decided_by, gate.sha256)
        for entry in self._audit.of(gate.run_id):
            after = entry.after if isinstance(entry.after, dict) else {}
            if told == (entry.verb, entry.subject, entry.who, after.get("sha256")):
                return True
        return False

    def _refused(self, gate: Gate, sha256: str, refusal: ConditionFailed) -> GateRefused:
        return refused(gate, sha256, refusal, self.waiting())


def _is_passed(run: Run, gate: Gate, sha256: str) -> bool:
    """Both say so, which one transaction wrote."""
    return run.passed.get(gate.name) == gate.sha256 == sha256 and gate.status is _G.SPENT


def _as_read(gate: Gate) -> tuple[Clause, ...]:
    return (
        Clause("the gate stands as it was read", "status", "=", gate.status.value),
        Clause("it is about what was read", "sha256", "=", gate.sha256),
    )


def _text(now: Any) -> str:
    return str(now.isoformat().replace("+00:00", "Z"))


def _stored(gate: Gate) -> Item:
    return {name: value for name, value in gate.document().items() if value is not None}


def _read(item: Item) -> Gate:
    return Gate.model_validate({name: value for name, value in item.items() if name != "SK"})
