"""The trail: every verb leaves who, what, why, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from trueup.clock import Clock
from trueup.ledger import keys
from trueup.ledger.table import Clause, Table, TransactionFailed, Write
from trueup.model.base import cut, sha256
from trueup.model.ledger import AuditEntry
from trueup.model.result import LONGEST_MESSAGE


class Audit:
    """Entries are written in the transaction of the change that they tell of."""

    def __init__(self, table: Table, clock: Clock, unique: Callable[[], str]) -> None:
        self._table = table
        self._clock = clock
        self._unique = unique

    def entry(
        self,
        run_id: str,
        *,
        who: str,
        verb: str,
        subject: str,
        why: str = "",
        before: object = None,
        after: object = None,
    ) -> Write:
        """The write that belongs into the verb's own transaction."""
        at = self._clock.now()
        why = cut(why, LONGEST_MESSAGE)
        entry = AuditEntry(at=at, who=who, verb=verb, subject=subject, why=why, before=before, after=after)
        return Write(
            keys.audit(run_id, at, self._unique()),
            item=entry.document(),
            clauses=(Clause("the audit entry is new", "at", "absent"),),
        )

    def launch_ended(
        self, run_id: str, launch: int, *, subject: str, how: str, answer: str, who: str = "trueup:accept"
    ) -> bool:
        """Tell how a launch ended and what was decided, once: the first to tell it is believed.

        Gives whether it was told now, and not before.
        """
        entry = self.entry(run_id, who=who, verb="launch-ended", subject=subject, why=how, after=answer)
        untold = Clause("the end was not told before", "answer", "absent")
        told = {"launch": launch, "answer": answer, "how": how}
        mark = Write(keys.ended(run_id, launch), sets=told, clauses=(untold,))
        try:
            self._table.transact([mark, entry])
        except TransactionFailed:
            return False
        return True

    def downloaded(
        self, run_id: str, digest: str, *, who: str, subject: str, location: str, begins: bool
    ) -> None:
        """Tell that somebody reads the evidence of a hash: whenever they begin, and not with each part.

        Whoever goes on without having begun is told of, too, once.
        """
        after = {"sha256": digest, "location": location}
        entry = self.entry(run_id, who=who, verb="read-evidence", subject=subject, after=after)
        untold = Clause("the reading was not told before", "at", "absent")
        mark = Write(
            keys.downloaded(run_id, digest, sha256(who.encode())[:16]),
            sets={"at": self._clock.now().isoformat(), "who": who},
            clauses=() if begins else (untold,),
        )
        with suppress(TransactionFailed):
            self._table.transact([mark, entry])

    def of(self, run_id: str) -> Iterator[AuditEntry]:
        """The trail of a run, oldest first."""
        for entry, _ in self.after(run_id, ""):
            yield entry

    def after(self, run_id: str, mark: str) -> Iterator[tuple[AuditEntry, str]]:
        """The entries behind a mark, each with the mark that goes on behind it."""
        for item in self._table.query(keys.run(run_id)[0], "AUDIT#", mark):
            mark = item.pop("SK")
            yield AuditEntry.model_validate(item), mark
