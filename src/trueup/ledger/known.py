"""Differences that were signed as known: each word in one transaction with its entry on the trail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from trueup.clock import Clock
from trueup.errors import NotOnTrail
from trueup.ledger import keys
from trueup.ledger.audit import Audit
from trueup.ledger.gate_rules import check_second_person
from trueup.ledger.table import Clause, Table, TransactionFailed, Write
from trueup.model.known import Known
from trueup.model.ledger import Run

_VERB = "sign-known"


class KnownDifferences:
    """The KNOWN items of jobs. They are never changed; each counts until its time is over."""

    def __init__(self, table: Table, clock: Clock, audit: Audit) -> None:
        self._table = table
        self._clock = clock
        self._audit = audit

    def of(self, job: str, at: datetime, scope: str | None = None) -> Iterator[Known]:
        """The words about a job's differences, or about those of one scope, that are valid at an instant."""
        for item in self._table.query(keys.known(job, "")[0], "ID#"):
            known = Known.model_validate({name: value for name, value in item.items() if name != "SK"})
            if at < known.until and scope in (None, known.scope):
                yield known

    def sign(self, run: Run, known: Known, roles: tuple[str, ...]) -> Known:
        """Store a word about a run's report. The same again changes nothing: it has the same id.

        `roles` are the patterns of those whose word counts. Raises OwnRequest, NotAnApprover.
        """
        check_second_person(
            known.who,
            run.requester,
            roles,
            own=f"{known.who} asked for run {run.run_id}, and so cannot sign what it found.",
            stranger=f"{known.who} is none of those whose word counts about the reports of {run.job}.",
        )
        new = Clause("the word is new", "knownId", "absent")
        key = keys.known(known.job, known.known_id)
        entry = self._audit.entry(
            run.run_id,
            who=known.who,
            verb=_VERB,
            subject=_subject(known),
            why=known.why,
            after={"sha256": known.hash(), "until": known.document()["until"], "number": known.number},
        )
        try:
            self._table.transact([Write(key, item=known.document(), clauses=(new,)), entry])
        except TransactionFailed as failed:
            refusal = failed.of(key)
            if refusal is None or refusal.old is None:
                raise
            return Known.model_validate(refusal.old)
        return known

    def check(self, known: Known) -> None:
        """Raises NotOnTrail where the audit trail does not tell of a word just as it stands."""
        told = (_VERB, _subject(known), known.who, known.hash())
        for entry in self._audit.of(known.run_id):
            after = entry.after if isinstance(entry.after, dict) else {}
            if told == (entry.verb, entry.subject, entry.who, after.get("sha256")):
                return
        raise NotOnTrail(
            f"The ledger says that {known.who} signed the known differences {known.known_id} of run "
            f"{known.run_id}, and the audit trail does not say it so.",
            clause="the audit trail tells of the word",
            wanted=known.hash(),
            found=known.document(),
            remedy="Find out who wrote to the ledger, and delete the item; then start the run again.",
        )


def _subject(known: Known) -> str:
    return f"known {known.known_id}"
