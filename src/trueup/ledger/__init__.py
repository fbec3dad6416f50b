"""The ledger: runs, checkpoints, gates, locks and the audit trail, in one table (design, section 6).

Decisions read consistently and are written conditionally; a refusal carries both sides.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from trueup.clock import Clock, SystemClock
from trueup.ledger.audit import Audit
from trueup.ledger.gates import Gates
from trueup.ledger.history import History
from trueup.ledger.known import KnownDifferences
from trueup.ledger.locks import Locks
from trueup.ledger.partitions import Owner, Partitions, Taken
from trueup.ledger.rates import Rates
from trueup.ledger.runs import Runs
from trueup.ledger.table import Table
from trueup.ledger.tasks import Tasks
from trueup.ledger.verdicts import Decision, Verdicts

__all__ = ["Decision", "Ledger", "Owner", "Taken"]


def _unique() -> str:
    return uuid.uuid4().hex[:8]


class Ledger:
    """Everything that trueup remembers. `unique` draws what sets two audit entries of one instant apart."""

    def __init__(self, table: Table, clock: Clock | None = None, unique: Callable[[], str] = _unique) -> None:
        clock = clock or SystemClock()
        self.audit = Audit(table, clock, unique)
        self.runs = Runs(table, clock, self.audit)
        self.tasks = Tasks(table, clock)
        self.partitions = Partitions(table, clock)
        self.verdicts = Verdicts(table, clock, self.audit)
        self.gates = Gates(table, clock, self.audit)
        self.locks = Locks(table)
        self.history = History(table)
        self.known = KnownDifferences(table, clock, self.audit)
        self.rates = Rates(table)
