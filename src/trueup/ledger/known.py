"""Differences that were signed as known: each word, and its withdrawal, with an entry on the trail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from trueup.clock import Clock
from trueup.errors import AlreadyDecided, NotFound, NotOnTrail
from trueup.ledger import keys
from trueup.ledger.audit import Audit
from trueup.ledger.gate_rules import check_role, check_second_person
from trueup.ledger.table import Clause, Item, Key, Table, TransactionFailed, Write
from trueup.model.known import Known, Withdrawal
from trueup.model.ledger import Run

_VERB = "sign-known"
_BACK = "withdraw-known"


class KnownDifferences:
    """The KNOWN items of jobs. What was signed never changes; it counts until it expires or is withdrawn."""

    def __init__(self, table: Table, clock: Clock, audit: Audit) -> None:
        self._table = table
        self._clock = clock
        self._audit = audit

    def of(self, job: str, at: datetime, scope: str | None = None) -> Iterator[Known]:
        """The words about a job's differences, or about those of one scope, that are valid at an instant."""
        for item in self._table.query(keys.known(job, "")[0], "ID#"):
            known = _read(item)
            if at < known.until and known.withdrawn is None and scope in (None, known.scope):
                yield known

    def get(self, job: str, run_id: str, known_id: str) -> Known:
        """A word about a run's report, also one that does not count any more. Raises NotFound."""
        item = self._table.get(keys.known(job, known_id))
        if item is None or item["runId"] != run_id:
            raise NotFound(
                f"Nobody signed known differences {known_id} of run {run_id}.",
                remedy=f"`trueup known {job}` lists what is known, with the runs.",
            )
        return _read(item)

    def sign(self, run: Run, known: Known, roles: tuple[str, ...]) -> Known:
        """Store a word about a run's report. The same again changes nothing: it has the same id.

        `roles` are the patterns of those whose word counts. Raises OwnRequest, NotAnApprover; AlreadyDecided
        where this very word was withdrawn.
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
            self._table.transact([Write(key, item=_stored(known), clauses=(new,)), entry])
        except TransactionFailed as failed:
            return _counting(_found(failed, key))
        return known

    def withdraw(self, known: Known, *, who: str, why: str, roles: tuple[str, ...]) -> Known:
        """Take a word back: it counts for no run that is planned from now on. Asked again, nothing changes.

        `roles` are the patterns of those whose word counts. It lets nothing pass, so that one person is
        enough, and it may be whoever asked for the run. Raises NotAnApprover.
        """
        check_role(
            who, roles, stranger=f"{who} is none of those whose word counts about the reports of {known.job}."
        )
        back = Withdrawal(who=who, at=self._clock.now(), why=why)
        key = keys.known(known.job, known.known_id)
        entry = self._audit.entry(
            known.run_id,
            who=who,
            verb=_BACK,
            subject=_subject(known),
            why=why,
            before={"sha256": known.hash(), "until": known.document()["until"], "number": known.number},
        )
        stands = Clause("the word was not withdrawn", "withdrawn", "absent")
        there = Clause("the word is there", "knownId", "=", known.known_id)
        sets = {"withdrawn": back.document()}
        try:
            self._table.transact([Write(key, sets=sets, clauses=(there, stands)), entry])
        except TransactionFailed as failed:
            return _found(failed, key)
        return known.model_copy(update={"withdrawn": back})

    def check(self, known: Known) -> None:
        """Raises NotOnTrail where the audit trail does not tell of a word just as it stands.

        That is so, too, where the trail tells that it was withdrawn.
        """
        told = (_VERB, _subject(known), known.who, known.hash())
        entries = list(self._audit.of(known.run_id))
        if any((_BACK, _subject(known)) == (entry.verb, entry.subject) for entry in entries):
            raise NotOnTrail(
                f"The audit trail says that the known differences {known.known_id} of run {known.run_id} "
                "were withdrawn, and the ledger does not say it any more.",
                clause="the word was not withdrawn",
                wanted=known.hash(),
                found=known.document(),
                remedy="Find out who wrote to the ledger, and delete the item; then start the run again.",
            )
        for entry in entries:
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


def _read(item: Item) -> Known:
    return Known.model_validate({name: value for name, value in item.items() if name != "SK"})


def _stored(known: Known) -> Item:
    # An attribute that is not there is one that can still be written once.
    return {name: value for name, value in known.document().items() if name != "withdrawn"}


def _found(failed: TransactionFailed, key: Key) -> Known:
    """The word that was there already. Raises the failure again where none was."""
    refusal = failed.of(key)
    if refusal is None or refusal.old is None:
        raise failed
    return _read(refusal.old)


def _counting(known: Known) -> Known:
    """The word, if nobody took it back."""
    if (back := known.withdrawn) is None:
        return known
    raise AlreadyDecided(
        f"The known differences {known.known_id} were withdrawn by {back.who}: {back.why}",
        clause="the word was not withdrawn",
        wanted=known.hash(),
        found=known.document(),
        remedy="Sign them with the reason for which they are known again.",
    )


def _subject(known: Known) -> str:
    return f"known {known.known_id}"
